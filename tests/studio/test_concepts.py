"""Concepts: the map, the threshold, near-duplicates, judged pairs, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select, Static

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from curation.calibration import read_judgements
from curation.landscape import kept_landscape
from pipeline.catalog import Catalog
from pipeline.model import Author, AuthorKind, Part
from studio.app import Studio
from studio.screens.ask import AskScreen
from studio.screens.choose import ChooseScreen
from studio.screens.concepts import ConceptsScreen
from studio.screens.duplicates import DuplicatesScreen
from studio.screens.judge import JudgeScreen
from studio.screens.new_run import NewRunScreen
from studio.widgets.concept_map import ASIDE, ConceptMap
from studio.widgets.source import Source
from tests.studio.conftest import studio_on, until
from tests.studio.landscapes import measured

PERSON = Author(AuthorKind.person, "ada")


@pytest.fixture(autouse=True)
def all_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the screen run where only what it uses here is installed."""
    monkeypatch.setattr("curation.extras.missing", lambda extra: ())


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A measured workspace that tests only look at."""
    return measured(tmp_path_factory.mktemp("seen") / "ws")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A measured workspace of the test's own."""
    return measured(tmp_path / "ws")


@asynccontextmanager
async def concepts_on(
    path: Path, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[Studio, Pilot[None], ConceptsScreen]]:
    """The Concepts screen, once its map is coloured."""
    async with studio_on(path, size=size) as (studio, pilot):
        await pilot.press("3")
        screen = studio.screen
        assert isinstance(screen, ConceptsScreen)
        await until(pilot, lambda: screen.cut and screen.grid.rows)
        yield studio, pilot, screen


def said(screen, where: str) -> str:
    return str(screen.query_one(where, Static).render())


def current(screen: ConceptsScreen) -> str:
    return screen.copy_text()


async def settled(pilot: Pilot[None], screen: ConceptsScreen, concepts: int) -> None:
    await until(pilot, lambda: screen.cut and len(screen.cut.names) == concepts)


# The map and the threshold


async def test_it_says_how_many_concepts_there_are_and_how_different(seen: Path) -> None:
    async with concepts_on(seen) as (_, _, screen):
        head = said(screen, "#concepts-head")
        assert "24 environments" in head
        assert "view all" in head
        assert "1 near-duplicate to decide" in head
        landscape = kept_landscape(seen)
        assert landscape is not None
        assert screen.cut is not None
        assert f"Vendi {landscape.vendi:.1f}, {screen.cut.vendi:.1f} with one environment a concept" in head
        assert len(screen.cut.names) == 3
        assert [row[1] for row in screen.grid.rows] == [8, 8, 8]


async def test_the_threshold_moves_and_figures_follow(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        assert screen.slider.value == 0.4
        await pilot.press("right_square_bracket")
        assert screen.slider.value == 0.41
        await pilot.press(*["right_curly_bracket"] * 11)
        assert screen.slider.value == 0.95
        await until(pilot, lambda: screen.cut.threshold == 0.95)
        many = len(screen.cut.names)
        assert many > 3
        assert len(screen.grid.rows) == many
        await pilot.press(*["left_curly_bracket"] * 20, "left_square_bracket")
        assert screen.slider.value == 0.05
        await settled(pilot, screen, 1)
        assert "Vendi" in said(screen, "#concepts-head")


async def test_the_mouse_drags_the_threshold(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        await pilot.mouse_down("#threshold", offset=(60, 0))
        await pilot.hover("#threshold", offset=(100, 0))
        await pilot.mouse_up("#threshold", offset=(100, 0))
        assert screen.slider.value > 0.8
        assert not screen.slider.has_focus


async def test_arrows_go_from_point_to_point(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        places = screen.map._places
        assert len(places) == len(set(places.values())) == 24, "every environment has a cell of its own"
        for key, axis, sign in (("right", 0, 1), ("down", 1, 1), ("left", 0, -1), ("up", 1, -1)):
            before = places[screen.map.cursor]
            await pilot.press(key)
            after = places[screen.map.cursor]
            assert (after[axis] - before[axis]) * sign > 0, key
        point = screen.query_one("#point", Source).text
        assert point.startswith(current(screen))
        assert "Nearest" in point
        assert "Of this concept: 8 environments" in point


async def test_a_click_goes_to_the_nearest_point_and_the_wheel_zooms(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        wanted = 20
        await pilot.click("#map", offset=screen.map._places[wanted])
        assert screen.map.cursor == wanted
        await pilot.press("plus", "plus")
        assert screen.map.zoom == pytest.approx(2.25)
        assert wanted in screen.map._places, "zooming keeps the cursor in sight"
        await pilot.press("minus", "minus", "minus")
        assert screen.map.zoom == 1


async def test_zoomed_in_the_map_follows_the_cursor(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        await pilot.press(*["plus"] * 6)
        out_of_sight = next(n for n in range(24) if n not in screen.map._places)
        screen.map.cursor = out_of_sight
        assert out_of_sight in screen.map._places
        await pilot.press("0")
        assert len(screen.map._places) == 24


async def test_tab_lights_up_one_concept_after_the_other(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        lit = []
        for _ in range(3):
            await pilot.press("tab")
            lit.append(screen.map.spotlight)
            assert screen.map.concept == screen.map.spotlight
        assert sorted(lit) == [0, 1, 2]
        await pilot.press("shift+tab")
        assert screen.map.spotlight == lit[1]
        await pilot.press("escape")
        assert screen.map.spotlight is None


async def test_the_list_of_concepts_and_the_map_follow_one_another(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        await pilot.press("enter")
        assert screen.grid.has_focus
        await pilot.press("end")
        assert screen.map.concept == screen.grid.cursor == 2
        await pilot.press("escape")
        assert screen.map.has_focus
        await pilot.press("tab")
        assert screen.grid.cursor == screen.map.concept


async def test_in_a_narrow_terminal_the_list_takes_the_place_of_the_map(seen: Path) -> None:
    async with concepts_on(seen, (80, 24)) as (_, pilot, screen):
        assert not screen.query_one("#concept-side").display
        await pilot.press("enter")
        assert screen.query_one("#concept-side").display
        assert not screen.map.display
        await pilot.press("escape")
        assert screen.map.display


async def test_the_environment_under_the_cursor_is_a_key_away(seen: Path) -> None:
    async with concepts_on(seen) as (studio, pilot, screen):
        await pilot.press("right", "down")
        wanted = current(screen)
        await pilot.press("o")
        await until(pilot, lambda: studio.current_mode == "environments")
        assert studio.screen.current.name == wanted


async def test_more_points_than_cells_are_counted(seen: Path) -> None:
    async with concepts_on(seen) as (_, pilot, screen):
        screen.map.show([(0.0, 0.0)] * 500)
        screen.map.colour([0] * 500)
        drawn = len(screen.map._places)
        last = screen.map.render_line(screen.map.size.height - 1).text
        assert f"{500 - drawn} more are under these" in last
        await pilot.pause()


# Measuring


async def test_where_nothing_is_measured_it_says_what_to_press(
    small_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(Studio, "start_run", lambda self, *arguments: started.append(arguments))
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("3")
        screen = studio.screen
        await until(pilot, lambda: screen.query_one(ConceptMap).empty)
        text = "\n".join("".join(piece for piece, _ in line) for line in screen.query_one(ConceptMap).empty)
        assert "Nothing is measured yet" in text
        assert "4 environments" in text
        await pilot.press("d")
        assert not isinstance(studio.screen, DuplicatesScreen)
        await pilot.press("r")
        await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: started)
        assert started == [("diversity", "--keep", "--view", "tasks")]


async def test_what_changed_since_is_counted(own: Path) -> None:
    async with concepts_on(own) as (_, pilot, screen):
        assert not screen.query_one("#concepts-note").display
        with Catalog.open(own / "catalog.db") as catalog:
            catalog.put("farm_ashby", Part.tasks, json.dumps(["Something else."]), author=PERSON)
        await until(pilot, lambda: "1 environment came, went or changed" in said(screen, "#concepts-note"))
        assert "r measures again" in said(screen, "#concepts-note")


async def test_a_run_that_measures_is_told_and_its_result_is_shown_by_itself(own: Path) -> None:
    import os

    from pipeline.workspace import Workspace
    from tests.studio.landscapes import measure

    async with concepts_on(own) as (_, pilot, screen):
        before = screen.landscape
        with Workspace.open(own) as workspace:
            run = workspace.catalog.add_run("diversity", {"view": "all"})
            workspace.catalog.update_run(run, state="running", pid=os.getpid())
            workspace.catalog.add_event(run, "progress", {"done": 128, "total": 245})
            await until(pilot, lambda: "128 of 245 texts" in said(screen, "#concepts-note"))
            measure(workspace)
            workspace.catalog.update_run(run, state="done", pid=None)
        await until(pilot, lambda: screen.landscape is not before)
        assert not screen.query_one("#concepts-note").display


async def test_without_the_extra_it_says_what_to_install(seen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.extras.missing", lambda extra: ("umap",))
    async with studio_on(seen) as (studio, pilot):
        await pilot.press("3")
        screen = studio.screen
        await until(pilot, lambda: "umap, which is not installed" in said(screen, "#concepts-head"))
        assert "make install-all" in said(screen, "#concepts-head")


# What is done about it


async def test_sparse_places_come_one_after_the_other_and_a_synthesis_is_told(
    seen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(Studio, "start_run", lambda self, *arguments: started.append(arguments))
    async with concepts_on(seen) as (studio, pilot, screen):
        crowding = screen.landscape.crowding()
        await pilot.press("g")
        first = screen.map.cursor
        assert crowding[first] == crowding.min()
        await pilot.press("g")
        assert crowding[first] <= crowding[screen.map.cursor] <= sorted(crowding)[2]
        words = screen.cut.names[screen.map.concept]
        await pilot.press("n")
        await until(pilot, lambda: isinstance(studio.screen, NewRunScreen))
        form = studio.screen
        assert words in form.query_one("#new-hint", Input).value
        form.query_one("#maker", Select).value = "offline"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "choose a model" in str(form.query_one("#new-problem", Static).render()))
        form.query_one("#maker", Select).value = "usual"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: started)
        [arguments] = started
        assert words in arguments[arguments.index("--hint") + 1]


async def test_near_duplicates_are_merged_dropped_kept_and_undone(own: Path) -> None:
    async with concepts_on(own) as (studio, pilot, screen):
        await pilot.press("d")
        await until(pilot, lambda: isinstance(studio.screen, DuplicatesScreen) and studio.screen.grid.rows)
        pairs = studio.screen
        assert (pairs.grid.row.a, pairs.grid.row.b) == ("farm_gresham", "farm_halden")
        assert "harvest" in pairs.query_one("#left", Source).text
        assert pairs.query_one("#right", Source).text.startswith("farm_halden")

        def aside() -> dict[str, str]:
            with Catalog.open(own / "catalog.db") as catalog:
                return {row.name: row.aside for row in catalog.summaries() if row.aside}

        await pilot.press("m")
        await until(pilot, lambda: pairs.grid.row.said == "= farm_halden merged")
        assert aside() == {"farm_halden": "merged"}
        await pilot.press("s", "x")
        await until(pilot, lambda: pairs.grid.row.said == "× farm_gresham dropped")
        assert aside() == {"farm_gresham": "dropped"}
        await pilot.press("b")
        await until(pilot, lambda: pairs.grid.row.said == "✓ both kept")
        await pilot.press("u")
        await until(pilot, lambda: pairs.grid.row.said == "")
        assert aside() == {}
        await pilot.press("X")
        await until(pilot, lambda: pairs.grid.row.said == "× farm_gresham dropped")
        await pilot.press("escape")
        dropped = screen.landscape.names.index("farm_gresham")
        await until(pilot, lambda: screen.map._glyph(dropped) == ASIDE)
        assert "0 near-duplicates to decide" in said(screen, "#concepts-head")
        screen.map.cursor = dropped
        await until(pilot, lambda: "subsets leave it out" in screen.query_one("#point", Source).text)


async def test_judged_pairs_are_kept_in_the_order_of_the_answers(own: Path) -> None:
    async with concepts_on(own) as (studio, pilot, _):
        await pilot.press("p")
        await until(
            pilot,
            lambda: isinstance(studio.screen, JudgeScreen) and "Pair 1 of 50" in said(studio.screen, "#concepts-head"),
        )
        screen = studio.screen
        asked = [screen._pairs[number][:2] for number in (0, 1, 3)]
        await pilot.press("s", "d", "space", "s")
        await until(pilot, lambda: "3 judged" in said(screen, "#calibrated"))
        assert [(j.a, j.b, j.same) for j in read_judgements(own)] == [
            (*asked[0], True), (*asked[1], False), (*asked[2], True),
        ]  # fmt: skip
        await pilot.press("u", "d")
        await until(pilot, lambda: [j.same for j in read_judgements(own)] == [True, False, False])


async def test_enough_judged_pairs_move_the_threshold(own: Path) -> None:
    async with concepts_on(own) as (studio, pilot, screen):
        await pilot.press("p")
        await until(pilot, lambda: isinstance(studio.screen, JudgeScreen) and studio.screen._pairs)
        await pilot.press(*["s"] * 30, *["d"] * 20)
        await until(pilot, lambda: "50 judged, 30 the same: threshold" in said(studio.screen, "#calibrated"))
        await pilot.press("escape")
        await until(pilot, lambda: screen.slider.value != 0.4)
        assert screen.cut is not None
        await until(pilot, lambda: screen.cut.threshold == screen.slider.value)


async def test_concepts_are_written_to_the_catalog_when_asked(own: Path) -> None:
    async with concepts_on(own) as (_, pilot, screen):
        await pilot.press("w")

        def concepts() -> set[str | None]:
            with Catalog.open(own / "catalog.db") as catalog:
                return {row.concept for row in catalog.summaries()}

        await until(pilot, lambda: concepts() == set(screen.cut.names))


@pytest.mark.parametrize(("name", "needs"), [("map.html", "plotly"), ("map.png", "PIL")])
async def test_the_map_is_saved_as_a_page_or_a_picture(seen: Path, tmp_path: Path, name: str, needs: str) -> None:
    pytest.importorskip(needs)
    async with concepts_on(seen) as (studio, pilot, _):
        await pilot.press("S")
        await until(pilot, lambda: isinstance(studio.screen, AskScreen))
        studio.screen.query_one(Input).value = str(tmp_path / name)
        await pilot.press("enter")
        await until(pilot, (tmp_path / name).exists)
