"""The screens, one file each, and the modes that lead to them.

A new screen is a file here and an entry in MODES: its key, its name in the top line, its palette entry and its help
all follow from that.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class Mode:
    """A screen one key away. `screen` is `module:Class` below this package, imported when first opened."""

    name: str
    key: str
    title: str
    screen: str
    help: str

    def open(self) -> Screen[None]:
        """Import and make the screen."""
        module, name = self.screen.split(":")
        return getattr(importlib.import_module(f"studio.screens.{module}"), name)()


MODES = (
    Mode("pipeline", "1", "Pipeline", "pipeline:PipelineScreen", "Watch and steer the making of environments"),
    Mode("environments", "2", "Environments", "environments:EnvironmentsScreen", "Look at environments and try them"),
    Mode("concepts", "3", "Concepts", "concepts:ConceptsScreen", "How many there really are: a map, near-duplicates"),
    Mode("subsets", "4", "Subsets", "subsets:SubsetsScreen", "What to train on: build, compare, export"),
    Mode("train", "5", "Train", "train:TrainScreen", "Start and watch trainings: curves, rollouts, comparisons"),
    Mode("evaluate", "6", "Evaluate", "evaluate:EvaluateScreen", "How good a model is: suites, results, comparisons"),
    Mode("activity", "7", "Activity", "activity:ActivityScreen", "Runs of this workspace: progress, stop, results"),
    Mode("settings", "8", "Settings", "settings:SettingsScreen", "Theme, model endpoint, limits"),
)
"""In the order of their keys."""

FIRST = "environments"
"""The mode the studio opens with."""
