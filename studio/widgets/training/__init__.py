"""What the Train screen is made of: curves, the rollouts of a step, settings side by side, the log."""
