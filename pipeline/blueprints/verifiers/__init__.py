"""Verifiers in both modes, written from what a task means."""
