"""The Audit tab, probes, the review queue and remedies as pictures, at three sizes. `make snapshots` accepts changes."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from curation.review import Decision, decide, queue
from pipeline.catalog import Catalog
from pipeline.settings import Settings
from studio.app import Studio
from studio.screens.choose import ChooseScreen
from studio.screens.environments import EnvironmentsScreen
from studio.screens.fixes import Fixes, FixesScreen
from studio.screens.probes import ProbesScreen
from studio.screens.review import ReviewScreen
from studio.widgets.source import Source
from tests.studio.conftest import until
from tests.studio.test_snapshots import LARGE, SMALL, USUAL, Steps, opened

WHEN = "2026-01-02T10:20:30+00:00"


@pytest.fixture(scope="module")
def still_trust(trust_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audited workspace with two decisions, in which nothing says what time it is now."""
    folder = shutil.copytree(trust_world, tmp_path_factory.mktemp("still-trust") / "workspace")
    with Catalog.open(folder / "catalog.db") as catalog:
        for entry in queue(catalog):
            if entry.item.environment == "museum_loans":
                reason = "no task reads these rows"
                decide(catalog, "museum_loans", entry.item.key, Decision.waive, reviewer="ada", reason=reason)
            elif entry.item.code == "part_missing":
                decide(catalog, entry.item.environment, entry.item.key, Decision.fix, reviewer="ada")
    with sqlite3.connect(folder / "catalog.db") as connection:
        for table in ("versions", "checks", "audits", "reviews"):
            connection.execute(f"UPDATE {table} SET created_at = '{WHEN}'")
    connection.close()
    return folder


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One time zone, no blinking."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(Input, "cursor_blink", False)
    yield
    monkeypatch.undo()
    time.tzset()


async def desk(pilot: Pilot[None]) -> EnvironmentsScreen:
    """The audited desk under the cursor."""
    await opened(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, EnvironmentsScreen)
    await pilot.press("end")
    await until(pilot, lambda: screen.detail.dossier and screen.detail.dossier.env.name == "ticket_desk")
    return screen


def audit(*keys: str, shows: str) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        screen = await desk(pilot)
        pane = screen.detail.open("audit")
        if screen.has_class("-narrow"):
            screen.zoomed = True
        await pilot.pause()
        screen.detail.enter()
        await pilot.press(*keys)
        await until(pilot, lambda: shows in pane.query_one(Source).text)
        await pilot.pause()

    return steps


def probes(kind: str, *keys: str, shows: str) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        await audit(shows="accepts_too_many")(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ProbesScreen) and pilot.app.screen.probes)
        screen = pilot.app.screen
        assert isinstance(screen, ProbesScreen)
        screen.grid.go_to(lambda probe: probe.outcome.trial.kind == kind)
        await until(pilot, lambda: shows in screen.query_one("#said", Source).text)
        await pilot.press(*keys)
        await pilot.pause()

    return steps


def review(*keys: str) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReviewScreen) and pilot.app.screen.grid.rows)
        await pilot.press(*keys)
        await pilot.pause()

    return steps


async def rubric(pilot: Pilot[None]) -> None:
    await review("enter")(pilot)
    await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
    await pilot.pause()


async def fixes(pilot: Pilot[None]) -> None:
    await desk(pilot)
    await pilot.press("f")
    await until(
        pilot, lambda: isinstance(pilot.app.screen, FixesScreen) and pilot.app.screen.query_one(Fixes).grid.rows
    )
    await until(pilot, lambda: "We''ll" in pilot.app.screen.query_one(Fixes).source.text)


async def overview(pilot: Pilot[None]) -> None:
    await opened(pilot)
    await pilot.press("slash", *"review", "colon", *"fix,waive", "enter", "home")
    screen = pilot.app.screen
    assert isinstance(screen, EnvironmentsScreen)
    await until(pilot, lambda: screen.detail.dossier and screen.detail.dossier.env.name == "museum_loans")
    await pilot.pause()


NEVER = "It never looked at note"
SCENES: dict[str, tuple[tuple[int, int], str, Steps]] = {
    "audit_small": (SMALL, "dark", audit(shows="accepts_too_many")),
    "audit_usual": (USUAL, "light", audit(shows="accepts_too_many")),
    "audit_large": (LARGE, "dark", audit("end", shows="save the calls")),
    "probes_small": (SMALL, "light", probes("collateral", shows=NEVER)),
    "probes_usual": (USUAL, "dark", probes("collateral", "right_square_bracket", shows=NEVER)),
    "probes_large": (LARGE, "colour-blind", probes("row_extra", "f", shows="ticket: 1 changed")),
    "review_small": (SMALL, "dark", review()),
    "review_usual": (USUAL, "light", review("d", "home")),
    "review_large": (LARGE, "dark", review("d")),
    "rubric_small": (SMALL, "high-contrast", rubric),
    "fixes_small": (SMALL, "dark", fixes),
    "fixes_usual": (USUAL, "light", fixes),
    "list_reviewed": (USUAL, "dark", overview),
}


@pytest.mark.parametrize("scene", SCENES)
def test_picture(scene: str, still_trust: Path, snap_compare) -> None:
    size, theme, steps = SCENES[scene]
    studio = Studio(still_trust, settings=Settings(theme=theme, workers=4))
    assert snap_compare(studio, terminal_size=size, run_before=steps)
