"""A run from seeds to environments: right at once, after corrections, never, and with everything that goes wrong."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pipeline.engine.board import State
from pipeline.engine.report import summary
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.llm.profiles import Prices
from pipeline.model import Part
from pipeline.runtime.host import LoadFailed
from tests import scripted_model
from tests.llm_server import PAGE, Drop, Raw, Say, Server, Status
from tests.scripted_model import Model

from .conftest import Studio


def states(studio: Studio) -> list[list[str]]:
    return [[cell.state.value for cell in row.cells.values()] for row in studio.board.wanted]


async def test_right_at_once(studio: Studio):
    model = Model()
    with Server(model) as server:
        studio.start(server, count=2)
        board = await studio.work()
    assert (board.state, board.why) == ("done", "")
    assert states(studio) == [["done"] * 5] * 2
    figures = summary(board, studio.workspace.catalog, studio.run.id)
    assert {stage["first_try"] for stage in figures["stages"].values()} == {1.0}
    assert figures["stages"]["verification"]["attempts"] == 12
    assert figures["means"] | {"tokens": 0} == {"tables": 2, "rows": 10, "tools": 4, "lines": 87, "tokens": 0}
    for name in board.rows:
        environment = studio.workspace.catalog.environment(name)
        assert environment.missing == ()
        assert len(environment.verifiers) == 6


async def test_versions_say_who_made_them_from_what_and_what_they_cost(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, models={"interface": {"model": "big", "prices": Prices(input=1, output=10)}})
        await studio.work()
    catalog, name = studio.workspace.catalog, studio.only_name()
    current = {(v.part, v.slot): v for v in catalog.current(name)}
    assert current[Part.schema, ""].author.name == "m"
    code = current[Part.code, ""]
    assert code.author.name == "big"
    assert set(code.parents) == {current[Part.schema, ""].id, current[Part.spec, ""].id}
    assert code.cost is not None and code.cost.usd is not None
    assert code.cost.usd == pytest.approx((code.cost.tokens_in + 10 * code.cost.tokens_out) / 1e6)
    schema = current[Part.schema, ""].cost
    assert schema is not None and schema.usd is None and schema.tokens_out == 200


async def test_right_after_a_correction_that_tells_what_the_execution_showed(studio: Studio):
    broken = scripted_model.CODE.replace("return shown(mine(session, id))", "return session.get(Item, 1).nothing")

    def wrong(step: str, about: str, before: int) -> Any:
        return Say(f"```python\n{broken}```") if step == "code" and before == 0 else None

    with Server(Model(wrong)) as server:
        studio.start(server)
        board = await studio.work()
    assert board.state == "done"
    (row,) = board.wanted
    first, second = row.cells["interface"].step("code").attempts
    assert (first.right, second.right) == (False, True)
    correction = next(r for r in server.requests if "was checked by executing it" in r["messages"][-1]["content"])
    assert "get_item answers plausible arguments with a server error" in correction["messages"][-1]["content"]
    assert "return session.get(Item, 1).nothing" in correction["messages"][-1]["content"]
    assert broken in correction["messages"][-2]["content"]
    assert summary(board, studio.workspace.catalog, studio.run.id)["stages"]["interface"]["first_try"] == 0.0
    assert studio.versions(row.name, "code") == [("model", "m")]  # the broken one was never the environment's


async def test_never_right_fails_with_the_facts_and_the_others_go_on(studio: Studio):
    lost = json.loads(json.dumps(scripted_model.SCHEMA))
    lost["tables"][1]["ddl"] = "CREATE TABLE items (id INTEGER PRIMARY KEY;"
    doomed: list[str] = []

    def wrong(step: str, about: str, before: int) -> Any:
        if step == "schema" and not doomed:
            doomed.append(about)
        return Say(json.dumps(lost)) if step == "schema" and about in doomed else None

    with Server(Model(wrong)) as server:
        studio.start(server, count=2)
        board = await studio.work()
    assert board.state == "incomplete"
    rows = {row.title: row for row in board.wanted}
    failed = rows.pop(doomed[0])
    assert failed.state is State.failed
    assert re.match(r"schema was never right in 4 attempts: .*items could not be created", failed.cells["database"].why)
    assert [row.state for row in rows.values()] == [State.done]
    assert Part.schema in studio.workspace.catalog.environment(failed.name).missing


@pytest.mark.parametrize(
    ("modes", "state"), [(("verifier/sql",), State.done), (("verifier/code", "verifier/sql"), State.failed)]
)
async def test_a_task_needs_one_good_verifier(studio: Studio, modes: tuple[str, ...], state: State):
    def wrong(step: str, about: str, before: int) -> Any:
        return Say("no function") if step in modes and about.startswith("Return") else None

    with Server(Model(wrong)) as server:
        studio.start(server, attempts=2)
        board = await studio.work()
    (row,) = board.wanted
    assert row.state is state
    if state is State.failed:
        assert "no verifier could be made for task 0" in row.cells["verification"].why


# what goes wrong with the server, in one stage of one scenario


INVALID = Say('{"tables": [}')


@pytest.mark.parametrize(
    ("answer", "state", "told"),
    [
        (Status(401, "no such key"), State.waiting, "refuses the key"),
        (Status(404, "no such model"), State.waiting, "knows no model 'm'"),
        (PAGE, State.waiting, "web page"),
        (Status(503, "overloaded"), State.waiting, "overloaded"),
        (Drop(), State.waiting, "broke off"),
        (Raw(b"data: {nonsense\n\n"), State.waiting, "cannot be read"),
        (Status(400, "maximum context length is 8192 tokens"), State.failed, "context"),
        (INVALID, State.failed, "JSON"),
        (Say(""), State.failed, "empty reply"),
        (Say(refusal="I would rather not."), State.failed, "refuses to answer"),
        (Say('{"tables"', finish="length"), State.failed, "token limit"),
    ],
)  # fmt: skip
async def test_a_fault_is_told_with_its_stage_and_its_remedy_and_the_others_go_on(
    studio: Studio, answer: Any, state: State, told: str
):
    doomed: list[str] = []

    def wrong(step: str, about: str, before: int) -> Any:
        if step == "sample" and not doomed:
            doomed.append(about)
        return answer if step == "sample" and about in doomed else None

    with Server(Model(wrong)) as server:
        studio.start(server, count=2, models={"database": {"max_tokens": 8, "max_tokens_ceiling": 8}})
        board = await studio.work()
    rows = {row.title: row for row in board.wanted}
    failed = rows.pop(doomed[0])
    assert failed.cells["database"].state is state
    assert told in failed.cells["database"].why
    assert board.state == ("waiting" if state is State.waiting else "incomplete")
    assert told in board.why or state is State.failed
    shared = failed.cells["database"].fault in ("wrong_key", "unknown_model", "html")
    (other,) = rows.values()
    assert other.state in ((State.waiting, State.done) if shared else (State.done,))


async def test_what_waited_for_a_server_goes_on_when_it_is_started_again(studio: Studio):
    def wrong(step: str, about: str, before: int) -> Any:
        return Status(503) if step == "code" and before < 2 else None

    with Server(Model(wrong)) as server:
        studio.start(server)
        assert (await studio.work()).state == "waiting"
        asked = len(server.requests)
        assert (await studio.work()).state == "done"
        assert len(server.requests) == asked + 1 + 6  # the file and the verifiers, nothing twice


async def test_a_server_that_refuses_everyone_is_asked_once_not_once_a_scenario(studio: Studio):
    def wrong(step: str, about: str, before: int) -> Any:
        return Status(401, "bad key") if step == "tasks" else None

    model = Model(wrong)
    with Server(model) as server:
        studio.start(server, count=10, models={"tasks": {"concurrency": 1}})
        board = await studio.work()
    assert board.counts()[State.waiting] == 10
    assert model.asked["tasks"] < 10


async def test_no_key_is_told_before_anything_is_sent(studio: Studio, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with Server(Model()) as server:
        elsewhere = {"base_url": "http://models.example/v1", "api_key_env": "NO_SUCH_KEY"}
        studio.start(server, models={"scenario": elsewhere})
        board = await studio.work()
        assert server.requests == []
    assert board.state == "waiting"
    assert "NO_SUCH_KEY" in board.why


async def test_a_catalog_that_cannot_be_written_ends_the_engine_and_nothing_is_lost(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
):
    catalog, left = studio.workspace.catalog, iter(range(20))

    def full(*arguments: Any, **options: Any) -> int:
        if next(left, None) is None:
            raise UserError("The catalog cannot grow: the disk is full.")
        return type(catalog).add_event(catalog, *arguments, **options)

    with Server(model := Model()) as server:
        studio.start(server)
        with monkeypatch.context() as patch:
            patch.setattr(catalog, "add_event", full)
            with pytest.raises(ExceptionGroup) as caught:
                await studio.work()
            assert caught.group_contains(UserError, match="the disk is full")
        assert (await studio.work()).state == "done"
    assert model.asked["schema"] == 1


async def test_a_mistake_of_our_own_fails_one_scenario_and_is_logged(studio: Studio, monkeypatch: pytest.MonkeyPatch):
    from pipeline.stages import database

    built = database.check_schema
    victims: list[str] = []

    def mistaken(environment: Any, host: Any) -> Any:
        victims.append(environment.name)
        if environment.name == victims[0]:
            raise ZeroDivisionError("division by zero")
        return built(environment, host)

    monkeypatch.setattr(database, "check_schema", mistaken)
    with Server(Model()) as server:
        studio.start(server, count=2)
        board = await studio.work()
    failed = board.rows.pop(victims[0])
    assert "a mistake of awm-studio itself: ZeroDivisionError" in failed.cells["database"].why
    assert "in mistaken" in (studio.workspace.logs / f"run-{studio.run.id}-mistakes.log").read_text()
    assert [row.state for row in board.rows.values()] == [State.done]


async def test_rows_that_hang_their_worker_are_sent_back(studio: Studio, monkeypatch: pytest.MonkeyPatch):
    finding = Finding("build_crash", "error", "sample", "the build ended its process")

    def crash(environment: Any, host: Any) -> Any:
        monkeypatch.undo()
        raise LoadFailed(environment, finding.code, finding.where, finding.message)

    from pipeline.stages import database

    monkeypatch.setattr(database, "check_sample", crash)
    with Server(Model()) as server:
        studio.start(server)
        board = await studio.work()
    assert board.state == "done"
    (row,) = board.wanted
    assert [tried.right for tried in row.cells["database"].step("sample").attempts] == [False, True]


async def test_a_full_disk_is_told_and_nothing_is_lost(studio: Studio, monkeypatch: pytest.MonkeyPatch):
    from pipeline.llm.replies import Replies

    opened = Replies.__init__

    def tiny(self: Replies, path: Any) -> None:
        opened(self, path)
        self._db.execute("PRAGMA max_page_count = 14")

    with Server(Model()) as server:
        studio.start(server)
        with monkeypatch.context() as patch:
            patch.setattr(Replies, "__init__", tiny)
            board = await studio.work()
        assert board.state == "waiting"
        assert "replies.db cannot be written" in board.why
        assert (await studio.work()).state == "done"


# money


async def test_a_budget_stops_the_run_before_it_is_passed_and_raising_it_goes_on(studio: Studio):
    prices = Prices(input=1, output=100)
    with Server(Model()) as server:
        models = {stage: {"prices": prices, "max_tokens": 1000} for stage in studio_stages()}
        studio.start(server, models=models, budget=0.3)
        board = await studio.work()
        assert board.state == "waiting"
        assert 0.1 < board.spent <= 0.3
        assert "budget of $0.3" in board.why
        studio.workspace.catalog.add_event(studio.run.id, "changed", {"budget": 5.0})
        board = await studio.work()
    assert board.state == "done"
    assert board.spent == pytest.approx(sum(row.usd or 0 for row in board.wanted) + (board.source.usd or 0))


async def test_a_budget_of_nothing_asks_nothing(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, models={"scenario": {"prices": Prices(input=1, output=1)}}, budget=0.0)
        board = await studio.work()
        assert server.requests == []
    assert "budget of $0" in board.why


def studio_stages() -> tuple[str, ...]:
    return ("scenario", "tasks", "database", "interface", "verification")


# stage 1


async def test_ten_rounds_with_nothing_new_end_the_search_and_say_so(studio: Studio):
    same = json.dumps({"scenarios": [{"name": "Port Office", "category": "harbours", "description": "again " * 40}]})

    def wrong(step: str, about: str, before: int) -> Any:
        return (
            Say(same)
            if step == "scenario"
            else Say(json.dumps({"scores": [{"name": "x", "score": 9, "reason": ""}]}))
            if step == "score"
            else None
        )

    model = Model(wrong)
    with Server(model) as server:
        studio.start(server, count=5)
        board = await studio.work()
    assert len(board.rounds) == 10
    assert model.asked["scenario"] == 10
    assert "10 rounds brought nothing new: 0 of 5" in board.why
    assert board.rounds[1].refused[0]["why"] == "there is one of that name"


async def test_no_scenario_is_made_twice_in_a_workspace(studio: Studio):
    with Server(Model()) as server:
        studio.start(server, count=2)
        first = await studio.work()
        studio.start(server, count=2)
        second = await studio.work()
    assert not first.rows.keys() & second.rows.keys()
    assert len(studio.workspace.catalog.names()) == 4
