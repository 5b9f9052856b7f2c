"""One rollout of an evaluation, step by step."""

from __future__ import annotations

from studio.screens.train_rollout import RolloutScreen


class EvaluatedRolloutScreen(RolloutScreen):
    """A rollout as on the Train screen, in this mode."""

    MODE = "evaluate"
