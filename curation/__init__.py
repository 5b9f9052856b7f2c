"""Judges environments and picks the ones worth training on."""
