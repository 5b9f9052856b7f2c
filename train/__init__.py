"""Learns from environments and measures what was learnt."""
