"""Artifacts of a real run of the upstream pipeline, served as if a model had written them, through all five stages.

What upstream accepted with a table lost, rows lost, two operations on one route or a verifier that accepts the
untouched database is caught here, sent back with the facts, and reported.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.board import Board, State
from pipeline.engine.report import summary
from pipeline.model import Part, normalise
from tests.llm_server import Answer, Say, Server

from .conftest import Studio

PARTS = {"tasks": ("gen_tasks", "tasks"), "schema": ("gen_db", "db_schema"), "sample": ("gen_sample", "sample_data"),
         "spec": ("gen_spec", "api_spec"), "code": ("gen_envs", "full_code")}  # fmt: skip
CORRECTED = "was checked by executing it"


class Upstream:
    """Answers with what the upstream pipeline made, by the service's name; `mend` corrects some of it when asked to."""

    def __init__(self, folder: Path, names: tuple[str, ...], mend: dict[str, Any] | None = None) -> None:
        def rows(file: str) -> list[dict[str, Any]]:
            return [json.loads(line) for line in (folder / f"{file}.jsonl").read_text("utf-8").splitlines()]

        self.mend = mend or {}
        self.corrections: list[tuple[str, str, str]] = []
        self.scenarios = [row for row in rows("gen_scenario") if normalise(row["name"]) in names]
        self.parts = {
            (normalise(row["scenario"]), step): row[key] for step, (file, key) in PARTS.items() for row in rows(file)
        }
        self.verifiers = {
            row["task"]: row["verification"]["code"] for row in rows("gen_verifier") if row["scenario"] in names
        }

    def __call__(self, body: dict[str, Any]) -> Answer:
        system, prompt = (message["content"] for message in body["messages"][:2])
        corrected = CORRECTED in body["messages"][-1]["content"]
        if system.startswith("You invent"):
            return Say(json.dumps({"scenarios": [row | {"category": "real"} for row in self.scenarios]}))
        if system.startswith("You judge"):
            scores = [{"name": row["name"], "score": 9, "reason": "real"} for row in self.scenarios]
            return Say(json.dumps({"scores": scores}))
        if "verifier" in system or "evidence" in system:
            return Say(self._verifier(re.findall(r"^The task: (.*)$", prompt, re.M)[-1], sql="evidence" in system))
        step = next(s for s in PARTS if system.startswith(_OPENINGS[s]))
        name = normalise(re.search(r"^The service: (.*)$", prompt, re.M)[1])  # type: ignore[index]
        if corrected:
            self.corrections.append((name, step, body["messages"][-1]["content"]))
        value = self.parts[name, step]
        if corrected and step in self.mend:
            value = self.mend[step](value)
        return Say(
            f"```python\n{value}\n```" if step == "code" else json.dumps({"tasks": value} if step == "tasks" else value)
        )

    def _verifier(self, task: str, *, sql: bool) -> str:
        if sql:
            tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
            return (
                "def verify_task(initial_db_path, final_db_path, final_answer=None):\n    import sqlite3\n"
                f"    return {{'tables': sqlite3.connect(final_db_path).execute(\"{tables}\").fetchall()}}\n"
            )
        return f"```python\n{self.verifiers[task]}\n```"


_OPENINGS = {
    "tasks": "You write tasks",
    "schema": "You design the SQLite",
    "sample": "You fill the SQLite",
    "spec": "You design the API",
    "code": "You write the FastAPI",
}


@pytest.fixture(autouse=True)
def three_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real scenarios have ten tasks."""
    monkeypatch.setattr("pipeline.stages.tasks.TASKS", 10)
    monkeypatch.setattr("pipeline.stages.scenario.unnamed", lambda name, text: text)


async def made(studio: Studio, upstream: Upstream) -> Board:
    with Server(upstream) as server:
        studio.start(server, count=len(upstream.scenarios), attempts=3)
        return await studio.work()


async def test_a_lost_table_that_upstream_accepted_is_caught_sent_back_and_reported(studio: Studio, awm_real: Path):
    upstream = Upstream(awm_real, ("surveymonkey_apply",))
    board = await made(studio, upstream)
    (row,) = board.wanted
    assert row.state is State.failed
    assert "the table form_questions could not be created" in row.cells["database"].why
    told = [text for name, step, text in upstream.corrections if step == "schema"]
    assert len(told) == 2
    assert 'near ";": syntax error' in told[0]
    assert "CREATE TABLE form_questions" in told[0]
    assert "submission_answers.question_id refers to the table form_questions, which does not exist" in told[0]
    assert "do not fall back into them" in told[1]
    assert Part.schema in studio.workspace.catalog.environment(row.name).missing


async def test_once_the_table_is_mended_the_scenario_goes_on_with_its_other_faults_on_record(
    studio: Studio, awm_real: Path
):
    def close_bracket(schema: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(schema)
        broken = next(t["ddl"] for t in schema["tables"] if t["name"] == "form_questions")
        return json.loads(text.replace(json.dumps(broken), json.dumps(broken.rstrip().removesuffix(";") + ");")))

    upstream = Upstream(awm_real, ("surveymonkey_apply",), {"schema": close_bracket})
    board = await made(studio, upstream)
    (row,) = board.wanted
    assert [row.cells[stage].state for stage in ("database", "interface")] == [State.done, State.done]
    assert [tried.right for tried in row.cells["database"].step("schema").attempts] == [False, True]
    environment = studio.workspace.catalog.environment(row.name)
    assert "form_questions" in {table.name for table in environment.schema}
    # Tools that fail or store ids of nobody may stay, each on record with the tasks it blocks; so may a task that
    # exports a file.
    assert {finding["code"] for finding in row.cells["interface"].findings} == {
        "tool_server_error",
        "accepts_unknown_id",
    }
    assert [finding["code"] for finding in row.cells["tasks"].findings] == ["task_needs_file"]


async def test_three_more_go_through_and_what_upstream_missed_is_told(studio: Studio, awm_real: Path):
    def own_route(spec: dict[str, Any]) -> dict[str, Any]:
        seen: set[tuple[str, str]] = set()
        for group in spec["api_groups"]:
            for endpoint in group["endpoints"]:
                if (place := (endpoint["method"], endpoint["path"])) in seen:
                    endpoint["path"] += "/other"
                seen.add(place)
        return spec

    def routes_apart(code: str) -> str:
        head, mark, tail = code.rpartition('"/api/donation_intents"')
        return head + '"/api/donation_intents/other"' + tail if mark else code

    def doubled(sample: dict[str, Any]) -> dict[str, Any]:
        for table in sample["tables"]:
            table["insert_statements"] = [
                re.sub(r"(?<=\w)\\?'(?=(?:t|s|ll|re|d)\b)", "''", text) for text in table["insert_statements"]
            ]
        return sample

    names = ("etsy_digital_downloads", "gofundme", "doordash_drive_delivery_tracking")
    upstream = Upstream(awm_real, names, {"spec": own_route, "code": routes_apart, "sample": doubled})
    board = await made(studio, upstream)
    assert {row.name: row.cells["interface"].state for row in board.wanted} == dict.fromkeys(names, State.done), [
        (row.name, cell.why) for row in board.wanted for cell in row.cells.values() if cell.why
    ]
    told = {(name, step): text for name, step, text in reversed(upstream.corrections)}
    assert 'near "t": syntax error' in told["doordash_drive_delivery_tracking", "sample"]  # an apostrophe
    assert "share POST /api/donation_intents" in told["gofundme", "spec"]
    assert "asks for 'Help Maya’s Recovery' to be made, and campaigns has it already" in told["gofundme", "sample"]
    assert ("etsy_digital_downloads", "schema") not in told
    figures = summary(board, studio.workspace.catalog, studio.run.id)
    sizes = {each["name"]: (each["tables"], each["tools"], each["lines"]) for each in figures["environments"]}
    assert sizes == {
        "doordash_drive_delivery_tracking": (18, 21, 987),
        "etsy_digital_downloads": (21, 18, 1074),
        "gofundme": (12, 11, 826),
    }


async def test_a_verifier_that_accepts_the_untouched_database_is_sent_back(studio: Studio, awm_real: Path):
    upstream = Upstream(awm_real, ("samsara_fleet_asset_maintenance_management",))
    with Server(upstream) as server:
        studio.start(server, count=1, attempts=2)
        board = await studio.work()
        sent = [
            r["messages"][-1]["content"]
            for r in server.requests
            if "the verifier calls" in r["messages"][-1]["content"]
        ]
    (row,) = board.wanted
    assert len(sent) == 2  # tasks 2 and 8
    assert row.state is State.done  # each has its sql verifier, so the tasks can be judged
    environment = studio.workspace.catalog.environment(row.name)
    assert {v.task for v in environment.verifiers if v.mode == "code"} == set(range(10)) - {2, 8}
