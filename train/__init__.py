"""Learns and measures: agents in instances, rewards, and training on what they did."""
