"""Rows in memory: drawn, kept to the rules, and tried with what actions would do to them."""
