"""A pretended BFCL: the parts of it that the studio's launcher touches, on tasks whose right answer is "right"."""
