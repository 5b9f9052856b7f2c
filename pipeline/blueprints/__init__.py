"""Environments made by rules: a domain file in, the same artifacts out as a model would write."""
