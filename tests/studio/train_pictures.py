"""The picture of the Train screen: the trainings of `make bench-train`, from the events they wrote (docs/learning)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

from pipeline.settings import Settings
from pipeline.workspace import Workspace
from studio.app import Studio
from studio.screens.train import TrainScreen
from tests.studio.conftest import until
from train.config import TrainConfig
from train.training_run import CONFIG, KIND

LEARNING = Path(__file__).resolve().parents[2] / "docs" / "learning"
ORDER = ("warm-start", "habit", "control", "seed-3", "seed-2", "seed-1")
"""The oldest first: the newest is the one that is shown."""
SIZE = (120, 34)
MOMENT = "2026-01-05T09:30:00+00:00"


def make_workspace(folder: Path) -> None:
    """A workspace with the trainings that were kept."""
    with Workspace.open(folder, create=True) as workspace:
        for name in (name for name in ORDER if (LEARNING / name).is_dir()):
            config = TrainConfig.model_validate_json((LEARNING / name / CONFIG).read_bytes())
            steps = config.grpo.steps * config.grpo.updates
            about = {"preset": "cpu-tiny", "subset": "simple", "steps": steps}
            number = workspace.catalog.add_run(KIND, about | {"model": config.model.name or "tiny"})
            place = workspace.runs / str(number)
            shutil.copytree(LEARNING / name, place)
            (place / "status.json").write_text(json.dumps({"state": "done", "phase": "training"}))
            workspace.catalog.update_run(number, state="done")
    with sqlite3.connect(folder / "catalog.db") as connection:
        connection.execute("UPDATE runs SET created_at = ?, updated_at = ?", (MOMENT, MOMENT))
    connection.close()


async def take(folder: Path, temporary: Path) -> None:
    """The curves of the first seed, beside those of the control."""
    workspace = temporary / "trainings"
    make_workspace(workspace)
    studio = Studio(workspace, settings=Settings(theme="dark"))
    async with studio.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: studio.workspace and studio.runs)
        await pilot.press("5")
        await until(pilot, lambda: isinstance(studio.screen, TrainScreen) and studio.screen.detail.charts.charts)
        await pilot.pause(0.5)
        studio.save_screenshot("train.svg", str(folder))
