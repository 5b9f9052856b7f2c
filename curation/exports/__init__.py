"""Subsets in the formats of those who use them, one module a format; `curation.exporters` has AWM's own layout.

Every export is a new folder that appears whole or not at all, holds `subset.json` (recipe, pairs, contents, card) and
a `README.md` beside the data, and nothing about the machine it was made on.
"""
