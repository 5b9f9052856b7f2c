"""Audits, probes, reviews, remedies and solutions in the studio: what a person sees and what the keys do."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Select, TabbedContent

from pipeline.catalog import Catalog
from pipeline.model import AuthorKind, Call, Part
from studio.app import Studio
from studio.screens.ask import AskScreen
from studio.screens.choose import ChooseScreen
from studio.screens.environments import EnvironmentsScreen
from studio.screens.finish import FinishScreen
from studio.screens.fixes import Fixes, FixesScreen
from studio.screens.probes import ProbesScreen
from studio.screens.review import ReviewScreen
from studio.widgets.changes import Changes
from studio.widgets.environment.audit import Audit
from studio.widgets.environment.tasks import Tasks
from studio.widgets.grid import Grid
from studio.widgets.source import Source
from tests.studio.conftest import studio_on, until
from tests.studio.test_calling import call, calling, fill_in

DESK = "ticket_desk"


@pytest.fixture
def desk(trust_world: Path, tmp_path: Path) -> Path:
    """A copy of the audited workspace, to be written to."""
    return shutil.copytree(trust_world, tmp_path / "ws")


@asynccontextmanager
async def on_desk(path: Path, tab: str = "audit") -> AsyncIterator[tuple[Studio, Pilot[None], EnvironmentsScreen]]:
    """The studio with the desk under the cursor and this tab open."""
    async with studio_on(path) as (studio, pilot):
        screen = studio.screen
        assert isinstance(screen, EnvironmentsScreen)
        await pilot.press("end")
        await until(pilot, lambda: screen.detail.dossier and screen.detail.dossier.env.name == DESK)
        screen.detail.open(tab)
        screen.detail.enter()
        await pilot.pause()
        yield studio, pilot, screen


# The list and the Audit tab


async def test_the_list_has_verdicts_and_filters_by_them(trust_world: Path) -> None:
    async with studio_on(trust_world) as (studio, pilot):
        screen = studio.screen
        assert isinstance(screen, EnvironmentsScreen)
        assert "audit" in {column.key for column, _ in screen.grid._layout}
        await pilot.press("slash", *"audit", "colon", *"loose", "space", *"check", "colon", *"fail")
        assert [row.name for row in screen.grid.rows] == [DESK]


async def test_verdicts_sort_by_how_bad_they_are_waived_ones_too(desk: Path) -> None:
    with Catalog.open(desk / "catalog.db") as catalog:
        catalog.set_standing("film_festival", check="waived", audit="waived", review="waive")
    async with studio_on(desk) as (studio, _):
        screen = studio.screen
        assert isinstance(screen, EnvironmentsScreen)
        screen._sort_by("check")
        checks = [row.check for row in screen.grid.rows]
        assert checks == ["fail", "fail", "waived", "pass", None]
        screen._sort_by("audit")
        assert [row.audit for row in screen.grid.rows] == ["loose", "waived", None, None, None]


async def test_the_audit_tab_has_counts_and_intervals_and_says_what_to_do(trust_world: Path) -> None:
    async with on_desk(trust_world) as (_, pilot, screen):
        audit = screen.detail.pane
        assert isinstance(audit, Audit)
        cells = [[column.cell(one) for column in audit.COLUMNS] for one in audit.grid.rows]
        assert [(row[0], row[2]) for row in cells] == [
            ("0", ("! loose", "warn")),
            ("1", ("✓ trusted", "ok")),
            ("2", ("· unproven", "muted")),
        ]
        assert cells[0][3] == ("6/16", "fail")
        assert cells[0][4] == ("18–61%", "muted")
        assert cells[2][5] == ("", ""), "nothing could be tried, which is not the same as nothing went wrong"
        await until(pilot, lambda: "accepts_too_many" in audit.source.text)
        for evidence in ("ticket 12 ('T-12') is changed as well → complete", "Looks at", "a guard"):
            assert evidence in audit.source.text
        await pilot.press("end")
        await until(pilot, lambda: "no known solution" in audit.source.text)
        assert "save the calls as the task's solution" in audit.source.text


async def test_a_audits_in_a_process_of_its_own_and_the_verdict_appears(desk: Path) -> None:
    with Catalog.open(desk / "catalog.db") as catalog:
        catalog.put(DESK, Part.tasks, '["Close ticket T-11."]', author=catalog.current(DESK)[0].author)
    async with on_desk(desk) as (studio, pilot, screen):
        assert screen.current is not None
        assert screen.current.audit == "stale"
        screen.grid.focus()
        await pilot.press("a")
        await until(pilot, lambda: screen.current and screen.current.audit == "loose", seconds=90)
        await until(pilot, lambda: [(run.kind, run.state) for run in studio.runs] == [("audit", "done")])


# Probes


async def test_enter_on_a_verifier_tries_it_again_probe_by_probe(trust_world: Path) -> None:
    async with on_desk(trust_world) as (studio, pilot, screen):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(studio.screen, ProbesScreen) and studio.screen.probes)
        probes = studio.screen
        assert isinstance(probes, ProbesScreen)
        assert "23 probes, 6 count against it" in str(probes.query_one("#probed").render())
        await pilot.press("w")
        assert len(probes.grid.rows) == 6
        await pilot.press("end")
        said, changes = probes.query_one("#said", Source), probes.query_one(Changes)
        await until(pilot, lambda: "It never looked at note" in said.text)
        for evidence in ("this one complete", "close_ticket(ticket_id=11)", "note: 2 removed", "line 5"):
            assert evidence in said.text
        assert [(row.what, row.before) for row in changes.rows if row.column == "body"] == [
            ("removed", "Arrived"),
            ("removed", "Asked for a price"),
        ]
        await pilot.press("t")
        await until(pilot, lambda: {row.table for row in changes.rows} == {"ticket", "note", "log"})
        await pilot.press("escape", "escape")
        await until(pilot, lambda: studio.screen is screen)


async def test_f_goes_to_the_line_that_looked_at_what_was_changed_or_says_that_none_did(trust_world: Path) -> None:
    async with on_desk(trust_world) as (studio, pilot, _):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(studio.screen, ProbesScreen) and studio.screen.probes)
        probes = studio.screen
        assert isinstance(probes, ProbesScreen)
        probes.grid.go_to(lambda probe: probe.outcome.trial.kind == "row_extra")
        await until(pilot, lambda: probes._lines == (5,))
        await pilot.press("f")
        assert probes.query_one("#probe-tabs", TabbedContent).active == "verifier"
        assert probes.query_one("#verifier-source", Source).marked == 5
        probes.grid.go_to(lambda probe: probe.outcome.trial.kind == "collateral")
        await until(pilot, lambda: probes._lines == ())
        await pilot.press("f")
        await until(pilot, lambda: any("speaks of what was changed" in n.message for n in studio._notifications))


# Reviews


@asynccontextmanager
async def reviewing(path: Path) -> AsyncIterator[tuple[Studio, Pilot[None], ReviewScreen]]:
    async with studio_on(path) as (studio, pilot):
        await pilot.press("r")
        await until(pilot, lambda: isinstance(studio.screen, ReviewScreen) and studio.screen.grid.rows)
        assert isinstance(studio.screen, ReviewScreen)
        yield studio, pilot, studio.screen


def codes(screen: ReviewScreen) -> list[tuple[str, str]]:
    return [(entry.item.environment, entry.item.code) for entry in screen.grid.rows]


async def test_the_queue_has_what_needs_a_person_the_gravest_first(trust_world: Path) -> None:
    async with reviewing(trust_world) as (_, pilot, screen):
        assert codes(screen)[:3] == [
            ("museum_loans", "foreign_key_broken"),
            (DESK, "insert_failed"),
            (DESK, "loose"),
        ]
        assert codes(screen)[-1] == (DESK, "unproven")
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(screen.studio.screen, AskScreen))
        await pilot.press(*"desk", "space", *"loose", "enter")
        await until(pilot, lambda: codes(screen) == [(DESK, "loose")])


async def test_a_waiver_asks_why_and_the_item_leaves_the_queue_and_the_status(desk: Path) -> None:
    async with reviewing(desk) as (studio, pilot, screen):
        await pilot.press("w")
        await until(pilot, lambda: isinstance(studio.screen, AskScreen))
        await pilot.press("enter")
        await until(pilot, lambda: studio.screen is screen)
        assert codes(screen)[0] == ("museum_loans", "foreign_key_broken"), "no reason, no waiver"
        await pilot.press("w")
        await until(pilot, lambda: isinstance(studio.screen, AskScreen))
        await pilot.press(*"old", "enter")
        await until(pilot, lambda: codes(screen)[0] == (DESK, "insert_failed"))
        await pilot.press("d")
        waived = screen.grid.rows[0]
        assert (waived.review.reason, waived.decision) == ("old", "waive")
        await pilot.press("home", "u")
        await until(pilot, lambda: screen.grid.rows[0].review is None)
    with Catalog.open(desk / "catalog.db") as catalog:
        assert [review.decision for review in catalog.reviews()] == ["waive", "reopen"]
        assert catalog.summary("museum_loans").check == "fail"


async def test_enter_shows_the_rubric_and_decides(desk: Path) -> None:
    async with reviewing(desk) as (studio, pilot, screen):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
        options = studio.screen.query_one(OptionList)
        prompts = [str(options.get_option_at_index(number).prompt) for number in range(options.option_count)]
        assert [prompt.split()[0] for prompt in prompts] == ["accept", "waive", "fix", "drop"]
        assert "no fault" in prompts[0]
        await pilot.press("enter")
        await until(
            pilot, lambda: studio.screen is screen and ("museum_loans", "foreign_key_broken") not in codes(screen)
        )
    with Catalog.open(desk / "catalog.db") as catalog:
        assert catalog.summary("museum_loans").check == "waived"


async def test_a_dropped_environment_says_so_in_the_list(desk: Path) -> None:
    async with reviewing(desk) as (studio, pilot, _):
        await pilot.press("D")
        await until(pilot, lambda: isinstance(studio.screen, AskScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(studio.screen, ReviewScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen))
        environments = studio.screen
        assert isinstance(environments, EnvironmentsScreen)
        await pilot.press("slash", *"review", "colon", *"drop")
        await until(pilot, lambda: [row.name for row in environments.grid.rows] == ["museum_loans"])


async def test_the_queue_is_written_to_a_file(desk: Path, tmp_path: Path) -> None:
    async with reviewing(desk) as (studio, pilot, _):
        await pilot.press("E")
        await until(pilot, lambda: isinstance(studio.screen, AskScreen))
        studio.screen.query_one(Input).value = str(tmp_path / "out.csv")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "out.csv").is_file)
    assert (tmp_path / "out.csv").read_text().startswith("environment,item,source,severity,code,")


async def test_o_goes_to_the_environment_at_the_finding(trust_world: Path) -> None:
    async with reviewing(trust_world) as (studio, pilot, screen):
        screen.grid.go_to(lambda entry: entry.item.code == "loose")
        await pilot.press("o")
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen))
        environments = studio.screen
        assert isinstance(environments, EnvironmentsScreen)
        await until(pilot, lambda: environments.detail.dossier and environments.detail.dossier.env.name == DESK)
        assert isinstance(environments.detail.pane, Audit)


# Remedies


async def test_a_remedy_is_shown_as_a_difference_and_made_by_the_person(desk: Path) -> None:
    async with on_desk(desk, "findings") as (studio, pilot, screen):
        findings = screen.detail.pane
        await until(pilot, lambda: "f looks for an edit" in findings.query_one(Source).text)
        await pilot.press("f")
        await until(pilot, lambda: isinstance(studio.screen, FixesScreen) and studio.screen.query_one(Fixes).grid.rows)
        listing = studio.screen.query_one(Fixes)
        assert [fix.code for fix in listing.grid.rows] == ["insert_failed", "guard"]
        await until(
            pilot, lambda: "+INSERT INTO note VALUES (3, 14, 'We''ll deliver it', NULL);" in listing.source.text
        )
        await pilot.press("ctrl+s")
        await until(pilot, lambda: studio.screen is screen)
        with Catalog.open(desk / "catalog.db") as catalog:
            newest = catalog.versions(DESK, Part.sample)[-1]
        assert (newest.number, newest.author.kind) == (2, AuthorKind.person)
        await until(pilot, lambda: studio.runs and studio.runs[0].state == "done", seconds=90)
        await until(pilot, lambda: "insert_failed" not in {f.code for f in screen.detail.dossier.findings})


async def test_f_on_a_verifier_shows_its_guard(trust_world: Path) -> None:
    async with on_desk(trust_world) as (studio, pilot, _):
        await pilot.press("f")
        await until(pilot, lambda: isinstance(studio.screen, FixesScreen) and studio.screen.query_one(Fixes).grid.rows)
        listing = studio.screen.query_one(Fixes)
        await until(pilot, lambda: listing.grid.row.code == "guard" and "+MAY_CHANGE = {" in listing.source.text)


async def test_fix_in_the_queue_opens_the_remedy_or_notes_that_there_is_work(desk: Path) -> None:
    async with reviewing(desk) as (studio, pilot, screen):
        screen.grid.go_to(lambda entry: entry.item.code == "insert_failed")
        await pilot.press("f")
        await until(pilot, lambda: isinstance(studio.screen, FixesScreen) and studio.screen.query_one(Fixes).grid.rows)
        await pilot.press("escape")
        await until(pilot, lambda: studio.screen is screen)
        screen.grid.go_to(lambda entry: entry.item.code == "part_missing")
        await pilot.press("f")
        await until(pilot, lambda: screen.current and screen.current.decision == "fix")


# Solutions


async def test_calls_in_the_form_become_the_solution_that_the_audit_uses(desk: Path) -> None:
    name = "airline_lost_baggage"
    async with calling(desk, "create_claim") as (studio, pilot, screen):
        fill_in(screen, bag_id="99", amount="250")
        await call(pilot, screen, 1)
        fill_in(screen, bag_id="2", amount="250")
        await call(pilot, screen, 2)
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(studio.screen, FinishScreen))
        studio.screen.query_one("#task", Select).value = 0
        await pilot.press("ctrl+s")
        await until(pilot, lambda: any("Saved as the solution" in n.message for n in studio._notifications))
        await pilot.press("escape", "escape")  # nothing is asked: the calls are kept
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen))
        environments = studio.screen
        assert isinstance(environments, EnvironmentsScreen)
        tasks = environments.detail.open("tasks")
        assert isinstance(tasks, Tasks)
        await until(pilot, lambda: tasks.grid.row and tasks.grid.row.solution)
        assert tasks.grid.row.solution.calls == (Call("create_claim", {"bag_id": 2, "amount": 250}),), (
            "what was refused is left out"
        )
        environments.grid.focus()
        await pilot.press("a")
        await until(pilot, lambda: environments.current and environments.current.audit, seconds=90)
        await until(pilot, lambda: environments.detail.dossier and environments.detail.dossier.audit)
        assert environments.detail.dossier.env.name == name
        (judged,) = environments.detail.dossier.audit.verifiers
        assert judged.solutions[0].startswith("person ")


async def test_a_column_that_nothing_is_known_for_is_left_out(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, _):
        grid = studio.screen.query_one("#list", Grid)
        assert {"audit", "review"}.isdisjoint(column.key for column in grid.columns)
