"""What a person does to a run while it works: each command, sent by one process and carried out by another."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pipeline.engine.board import Board, State
from pipeline.llm.profiles import Prices
from pipeline.model import STAGES, Part
from tests import scripted_model
from tests.llm_server import Hold, Say, Server
from tests.scripted_model import Model, reply

from .conftest import Studio

OTHER_SCHEMA = json.dumps(scripted_model.SCHEMA).replace("price REAL NOT NULL", "price REAL NOT NULL, note TEXT")


def at(stage: str, state: State) -> Callable[[Board], bool]:
    """The run's first scenario stands so at a stage."""
    return lambda board: any(row.cells[stage].state is state for row in board.rows.values())


def deed(*steps: Callable[[Studio], Awaitable[Any]]) -> Callable[[Studio], Awaitable[None]]:
    async def do(studio: Studio) -> None:
        for step in steps:
            await step(studio)

    return do


def see(true_of: Callable[[Board], bool]) -> Callable[[Studio], Awaitable[Any]]:
    return lambda studio: studio.until(true_of)


def told(do: str, **data: Any) -> Callable[[Studio], Awaitable[Any]]:
    async def tell(studio: Studio) -> None:
        scenario = data.pop("scenario", None) or studio.only_name()
        ok, said = await studio.tell(do, scenario, **data)
        assert ok, said

    return tell


def told_run(do: str, **data: Any) -> Callable[[Studio], Awaitable[Any]]:
    async def tell(studio: Studio) -> None:
        ok, said = await studio.tell(do, **data)
        assert ok, said

    return tell


# gates


async def test_a_gated_stage_waits_until_it_is_approved(studio: Studio):
    with Server(model := Model()) as server:
        studio.start(server, gates={"database": "all"})
        wait = see(at("database", State.waiting))

        async def look(studio: Studio) -> None:
            assert model.asked["spec"] == 0
            assert Part.sample not in studio.workspace.catalog.environment(studio.only_name()).missing

        board = await studio.work(deed(wait, look, told("approve")))
    assert board.state == "done"


async def test_a_gate_for_warnings_holds_only_what_has_some(studio: Studio):
    empty = json.loads(json.dumps(scripted_model.SAMPLE))
    empty["tables"][0]["insert_statements"] = empty["tables"][0]["insert_statements"][1:]  # nobody has id 1

    def wrong(step: str, about: str, before: int) -> Any:
        return Say(json.dumps(empty)) if step == "sample" else None

    with Server(Model(wrong)) as server:
        studio.start(server, gates={"database": "warn", "tasks": "warn"}, attempts=1)

        async def look(studio: Studio) -> None:
            (row,) = studio.board.wanted
            assert row.cells["tasks"].state is State.done
            assert {finding["code"] for finding in row.cells["database"].findings} >= {"user_missing"}

        board = await studio.work(deed(see(at("database", State.waiting)), look, told("approve", stage="database")))
    assert board.state == "done"


async def test_all_that_waits_can_be_approved_at_once(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, count=2, gates={"tasks": "all"})
        both = see(lambda board: len(list(board.waiting())) == 2)
        board = await studio.work(deed(both, told_run("approve")))
    assert board.state == "done"


async def test_a_rejected_scenario_is_replaced(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, gates={"scenario": "all"})
        await studio.work(
            deed(
                see(at("scenario", State.waiting)),
                told("reject", reason="too much like our own"),
                see(lambda board: len(board.rows) == 2),
                told_run("approve"),
            )
        )
    first, second = studio.board.rows.values()
    assert (first.dropped, second.dropped, second.state) == (True, False, State.done)
    assert studio.workspace.catalog.names() == [second.name]  # nothing of the first one was kept


# sending back


async def test_a_rejected_stage_goes_back_with_the_reason_and_the_version(studio: Studio):
    def wrong(step: str, about: str, before: int) -> Any:
        return Say(f"```python\n{scripted_model.CODE}# shorter now\n```") if step == "code" and before else None

    with Server(Model(wrong)) as server:
        studio.start(server, gates={"interface": "all"})
        wait = see(at("interface", State.waiting))
        again = see(
            lambda board: at("interface", State.waiting)(board) and board.wanted[0].cells["interface"].generation == 1
        )
        board = await studio.work(
            deed(wait, told("reject", reason="name the handlers in French"), again, told("approve"))
        )
    assert board.state == "done"
    assert studio.versions(studio.only_name(), "code") == [("model", "m")] * 2
    sent = [r["messages"] for r in server.requests if "in French" in r["messages"][-1]["content"]]
    assert len(sent) == 1
    assert scripted_model.CODE in sent[0][-2]["content"]


async def test_a_failed_stage_is_retried_with_a_hint_and_keeps_what_was_right(studio: Studio):
    def wrong(step: str, about: str, before: int) -> Any:
        return Say("nonsense") if step == "code" and before < 2 else None

    with Server(model := Model(wrong)) as server:
        studio.start(server, attempts=2)
        assert (await studio.work()).state == "incomplete"
        board = await studio.work(told("retry", stage="interface", hint="use plain SQL where you can"))
    assert board.state == "done"
    assert (model.asked["code"], model.asked["spec"]) == (3, 1)
    hinted = [r for r in server.requests if "use plain SQL" in r["messages"][-1]["content"]]
    assert len(hinted) == 1


async def test_everything_that_failed_is_retried_at_once(studio: Studio):
    def wrong(step: str, about: str, before: int) -> Any:
        return Say("nonsense") if step == "tasks" and before < 1 else None

    with Server(Model(wrong)) as server:
        studio.start(server, count=2, attempts=1)
        assert (await studio.work()).counts()[State.failed] == 2
        board = await studio.work(told_run("retry"))
    assert board.state == "done"


async def test_a_search_that_ran_dry_is_taken_up_again(studio: Studio):
    def wrong(step: str, about: str, before: int) -> Any:
        return Say("nonsense") if step == "scenario" and model.asked["scenario"] <= 10 else None

    with Server(model := Model(wrong)) as server:
        studio.start(server, attempts=1)
        assert "10 rounds brought nothing new" in (await studio.work()).why
        board = await studio.work(told_run("retry"))
    assert board.state == "done"


async def test_a_stage_is_made_again_from_a_chosen_version(studio: Studio):
    def wrong(step: str, about: str, before: int) -> Any:
        return Say(OTHER_SCHEMA) if step == "schema" and before else None

    with Server(Model(wrong)) as server:
        studio.start(server, gates={"verification": "all"})
        wait = see(at("verification", State.waiting))

        async def remake(studio: Studio) -> None:
            ok, said = await studio.tell("retry", studio.only_name(), stage="database", part="schema", version=1)
            assert (ok, said) == (False, "Say what should be different from that version: --hint.")
            await told("retry", stage="database", part="schema", version=1, hint="add notes")(studio)

        again = see(lambda b: at("verification", State.waiting)(b) and b.wanted[0].cells["database"].generation == 1)
        board = await studio.work(deed(wait, remake, again, told("approve")))
    assert board.state == "done"
    catalog, name = studio.workspace.catalog, studio.only_name()
    assert "note TEXT" in catalog.environment(name).schema[1].ddl
    assert [len(catalog.versions(name, part)) for part in ("schema", "sample", "code")] == [2, 1, 1]  # the same again


# editing


async def test_an_edit_is_a_version_by_a_person_and_what_depends_on_it_is_made_again(studio: Studio):
    with Server(model := Model()) as server:
        studio.start(server, gates={"verification": "all"})
        wait = see(at("verification", State.waiting))
        edit = told("edit", stage="database", part="schema", content=OTHER_SCHEMA)
        again = see(lambda b: at("verification", State.waiting)(b) and b.wanted[0].cells["interface"].generation == 1)
        board = await studio.work(deed(wait, edit, again, told("approve")))
    assert board.state == "done"
    assert studio.versions(studio.only_name(), "schema") == [("model", "m"), ("person", "ada")]
    assert {step: model.asked[step] for step in ("tasks", "schema", "sample", "spec", "code")} == {
        "tasks": 1, "schema": 1, "sample": 2, "spec": 2, "code": 2
    }  # fmt: skip
    assert any("note TEXT" in r["messages"][1]["content"] for r in server.requests)


async def test_what_depends_on_an_edit_is_kept_if_it_is_still_valid(studio: Studio):
    with Server(model := Model()) as server:
        studio.start(server, gates={"verification": "all"})
        edit = told("edit", stage="database", part="schema", content=OTHER_SCHEMA, keep=True)
        again = see(lambda b: at("verification", State.waiting)(b) and b.wanted[0].cells["interface"].generation == 1)
        board = await studio.work(deed(see(at("verification", State.waiting)), edit, again, told("approve")))
    assert board.state == "done"
    assert (model.asked["sample"], model.asked["spec"], model.asked["code"]) == (2, 1, 1)


async def test_what_an_edit_breaks_is_not_kept(studio: Studio):
    other = json.dumps(scripted_model.SCHEMA).replace("price REAL NOT NULL", "cost REAL NOT NULL DEFAULT 0")

    def answer(step: str, about: str, before: int) -> Any:
        if step == "sample" and before:
            return Say(json.dumps(scripted_model.SAMPLE).replace("name, price)", "name, cost)"))
        if step == "spec" and before:
            return Say(json.dumps(scripted_model.SPEC).replace('"state", "price"]', '"state", "cost"]'))
        if step == "code" and before:
            return Say(
                f"```python\n{scripted_model.CODE.replace('price = Column(', 'price = Column(chr(99) + chr(111) + chr(115) + chr(116), ')}```"
            )
        return None

    with Server(model := Model(answer)) as server:
        studio.start(server, gates={"interface": "all"})
        edit = told("edit", stage="database", part="schema", content=other, keep=True)
        again = see(lambda b: at("interface", State.waiting)(b) and b.wanted[0].cells["interface"].generation == 1)
        await studio.work(deed(see(at("interface", State.waiting)), edit, again, told_run("stop")))
    assert (model.asked["sample"], model.asked["spec"]) == (2, 2)


async def test_a_faulty_edit_waits_with_the_facts_and_can_be_edited_again(studio: Studio):
    faulty = json.dumps(
        {"tables": [{"name": "items", "ddl": "CREATE TABLE items (id INTEGER PRIMARY KEY;", "indexes": []}]}
    )
    with Server(Model()) as server:
        studio.start(server, gates={"database": "all"})

        async def look(studio: Studio) -> None:
            ok, said = await studio.tell("edit", studio.only_name(), stage="database", part="schema", content=faulty)
            assert ok
            assert "faults in what ada wrote" in said and "items" in said
            (row,) = studio.board.wanted
            assert row.cells["database"].state is State.waiting

        mend = told("edit", stage="database", part="schema", content=json.dumps(scripted_model.SCHEMA))
        again = see(lambda b: b.wanted[0].cells["database"].generation == 2 and at("database", State.waiting)(b))
        board = await studio.work(deed(see(at("database", State.waiting)), look, mend, again, told("approve")))
    assert board.state == "done"
    assert studio.versions(studio.only_name(), "schema") == [("model", "m"), ("person", "ada"), ("person", "ada")]


async def test_an_edited_last_part_needs_no_approval_of_its_own_author(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, gates={"tasks": "all"})
        mine = json.dumps(
            ['Mark the item "Item 3" as done.', 'Mark the item "Item 4" as done.', scripted_model.TASKS[0]]
        )
        board = await studio.work(deed(see(at("tasks", State.waiting)), told("edit", stage="tasks", content=mine)))
    assert board.state == "done"
    assert studio.workspace.catalog.environment(studio.only_name()).tasks[0] == 'Mark the item "Item 3" as done.'


async def test_one_verifier_is_edited_without_touching_the_others(studio: Studio):
    source = "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    return {'result': 'others'}\n"
    with Server(model := Model()) as server:
        studio.start(server, gates={"verification": "all"})
        edit = told("edit", stage="verification", part="verifier", slot="1/code", content=source)
        board = await studio.work(deed(see(at("verification", State.waiting)), edit))
    assert board.state == "done"
    assert (model.asked["verifier/code"], model.asked["verifier/sql"]) == (3, 3)
    name = studio.only_name()
    assert studio.versions(name, "verifier", "1/code")[-1] == ("person", "ada")
    assert studio.versions(name, "verifier", "0/code") == [("model", "m")]


async def test_a_person_s_description_remakes_everything_after_it(studio: Studio):
    with Server(model := Model()) as server:
        studio.start(server, gates={"verification": "all"})

        async def edit(studio: Studio) -> None:
            (row,) = studio.board.wanted
            content = json.dumps({"name": row.title, "description": "A place where items of one kind are kept."})
            await told("edit", stage="scenario", content=content)(studio)

        again = see(lambda b: at("verification", State.waiting)(b) and b.wanted[0].cells["tasks"].generation == 1)
        await studio.work(deed(see(at("verification", State.waiting)), edit, again, told("approve")))
    assert model.asked["tasks"] == 2
    assert studio.workspace.catalog.environment(studio.only_name()).description.startswith("A place where")


@pytest.mark.parametrize(
    ("data", "told_why"),
    [
        ({"stage": "database", "part": "schema", "content": "CREATE TABLE"}, "not JSON"),
        ({"stage": "database", "content": "{}"}, "schema or sample"),
        ({"stage": "database", "part": "code", "content": "x"}, "not code"),
        ({"stage": "cooking", "content": "x"}, "no stage 'cooking'"),
        ({"stage": "verification", "part": "verifier", "slot": "9/code", "content": "x"}, "no verifier '9/code'"),
        ({"stage": "scenario", "content": '{"name": "Another", "description": "d"}'}, "normalise"),
    ],
)
async def test_an_edit_that_makes_no_sense_changes_nothing(studio: Studio, data: dict[str, Any], told_why: str):
    with Server(Model()) as server:
        studio.start(server, gates={"database": "all"})

        async def refused(studio: Studio) -> None:
            before = studio.workspace.catalog.newest_version()
            ok, said = await studio.tell("edit", studio.only_name(), **data)
            assert not ok
            assert told_why in said
            assert studio.workspace.catalog.newest_version() == before

        await studio.work(deed(see(at("database", State.waiting)), refused, told_run("stop")))


# pausing, stopping, dropping, changing


async def test_a_paused_run_takes_in_what_is_on_its_way_and_asks_nothing_more(studio: Studio):
    release = threading.Event()

    def hold(step: str, about: str, before: int) -> Any:
        return Hold(release, Say(reply("tasks", "Write exactly 3 tasks"))) if step == "tasks" else None

    with Server(model := Model(hold)) as server:
        studio.start(server)

        async def pause(studio: Studio) -> None:
            while not model.asked["tasks"]:
                await asyncio.sleep(0.005)
            await told_run("pause")(studio)
            release.set()
            await studio.until(at("tasks", State.done))
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert model.asked["schema"] == 0
            assert studio.board.paused

        board = await studio.work(deed(pause, told_run("resume")))
    assert board.state == "done"


async def test_one_scenario_pauses_while_the_others_go_on(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, count=2, gates={"tasks": "all"})

        async def pause(studio: Studio) -> None:
            await studio.until(lambda board: len(list(board.waiting())) == 2)
            first, second = studio.board.rows
            await told("pause", scenario=first)(studio)
            await told_run("approve")(studio)
            await studio.until(lambda board: board.rows[second].state is State.done)
            assert studio.board.rows[first].cells["database"].state is State.queued
            await told("resume", scenario=first)(studio)

        board = await studio.work(pause)
    assert board.state == "done"


async def test_a_stopped_run_can_be_gone_on_with(studio: Studio):
    with Server(model := Model()) as server:
        studio.start(server, gates={"database": "all"})
        board = await studio.work(deed(see(at("database", State.waiting)), told_run("stop")))
        assert board.state == "stopped"
        board = await studio.work(told("approve"))
    assert board.state == "done"
    assert model.asked["schema"] == 1


async def test_a_dropped_scenario_is_left_out_and_not_replaced(studio: Studio):
    with Server(model := Model()) as server:
        studio.start(server, count=2, gates={"tasks": "all"})

        async def drop(studio: Studio) -> None:
            await studio.until(lambda board: len(list(board.waiting())) == 2)
            await told("drop", scenario="2")(studio)
            assert "was dropped" in (await studio.tell("approve", "2"))[1]
            await told_run("approve")(studio)

        board = await studio.work(drop)
    assert board.state == "done"
    assert [row.state for row in board.wanted] == [State.done]
    assert model.asked["schema"] == 1


async def test_the_count_is_raised_while_it_works(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, gates={"tasks": "all"})
        raise_it = deed(see(at("tasks", State.waiting)), told_run("set", count=2, gates={}), told_run("approve"))
        board = await studio.work(raise_it)
    assert len(board.wanted) == 2
    assert board.state == "done"


async def test_a_model_is_changed_in_flight(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, gates={"database": "all"})

        async def change(studio: Studio) -> None:
            await studio.until(at("database", State.waiting))
            other = studio.board.models["interface"] | {"model": "other"}
            await told_run("set", models={"interface": other})(studio)
            await told("approve")(studio)

        await studio.work(change)
    catalog, name = studio.workspace.catalog, studio.only_name()
    authors = {v.part: v.author.name for v in catalog.current(name)}
    assert (authors[Part.schema], authors[Part.code], authors[Part.verifier]) == ("m", "other", "m")


async def test_a_raised_budget_lets_what_waited_for_it_go_on(studio: Studio):
    models = {stage: {"prices": Prices(input=1, output=100), "max_tokens": 1000} for stage in STAGES}
    with Server(Model()) as server:
        studio.start(server, models=models, budget=1.0, gates={"scenario": "all", "tasks": "all"})

        async def run_out(studio: Studio) -> None:
            await studio.until(at("scenario", State.waiting))
            await told_run("set", budget=0.0)(studio)
            await told("approve", stage="scenario")(studio)

        board = await studio.work(run_out)
        assert (board.state, board.wanted[0].cells["tasks"].fault) == ("waiting", "budget")
        # An engine that starts with a raised budget goes on by itself; one that works is told.
        raise_it = told_run("set", budget=10.0)
        board = await studio.work(deed(raise_it, see(at("tasks", State.waiting)), told_run("approve")))
    assert board.state == "done"


async def test_a_command_that_makes_no_sense_is_answered_with_a_sentence(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, gates={"tasks": "all"})

        async def nonsense(studio: Studio) -> None:
            await studio.until(at("tasks", State.waiting))
            name = studio.only_name()
            for do, scenario, data, said in (
                ("approve", "nobody", {}, "no scenario 'nobody'"),
                ("approve", name, {"stage": "database"}, "Nothing of"),
                ("reject", name, {}, "Say why"),
                ("reject", None, {"reason": "x"}, "Say which scenario"),
                ("retry", name, {"stage": "scenario"}, "reject it"),
                ("retry", name, {"stage": "tasks", "version": 7, "hint": "x"}, "no version 7"),
                ("retry", None, {}, "Nothing has failed"),
                ("drop", None, {}, "Say which scenario"),
                ("set", None, {}, "Say what to change"),
                ("set", None, {"count": 0}, "already"),
            ):
                assert (answer := await studio.tell(do, scenario, **data))[0] is False, do
                assert said in answer[1]

        await studio.work(deed(nonsense, told_run("stop")))
