"""The language of domain files: from text to a typed `Domain`, with every complaint at its line."""
