"""A synthesis as its log tells it, in every state that a board shows, written without the seconds an engine takes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from pipeline.engine.config import Config
from pipeline.engine.live import LiveText, live_file
from pipeline.engine.start import create
from pipeline.llm.profiles import Prices, Profile
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.llm.request import Message, Reply, Request, Usage
from pipeline.model import STAGES, Author, AuthorKind, Part, normalise
from pipeline.workspace import Workspace
from tests import scripted_model

MODEL = Profile(model="scribe", api_key_env="", prices=Prices(input=1, output=8))
BY_MODEL = Author(AuthorKind.model, MODEL.model)
MOMENT = "2026-01-02T10:20:30+00:00"
BROKEN_CODE = scripted_model.CODE.replace("return shown(mine(session, id))", "return session.get(Item, 1).nothing")
LOST = {"code": "table_lost", "severity": "error", "where": "items", "message": "the table items could not be created",
        "evidence": 'near ";": syntax error', "remedy": "close the bracket", "tasks": (0,)}  # fmt: skip
STUCK = {"code": "server_error", "severity": "error", "where": "get_item",
         "message": "answers plausible arguments with a server error",
         "evidence": "return session.get(Item, 1).nothing\nAttributeError: 'Item' has no 'nothing'", "remedy": "",
         "tasks": ()}  # fmt: skip


class Log:
    """Writes what an engine would write."""

    def __init__(self, workspace: Workspace, **config: Any) -> None:
        self.workspace = workspace
        self.run = create(workspace, Config(models=dict.fromkeys(STAGES, MODEL), **config), ())
        self.replies = Replies(workspace.path / FILE_NAME)
        self.emit("run", {"state": "running", "why": ""})

    def emit(self, kind: str, data: dict[str, Any], scenario: str | None = None) -> None:
        self.workspace.catalog.add_event(self.run.id, kind, data, scenario)

    def admit(self, title: str, category: str) -> str:
        name = normalise(title)
        described = {"title": title, "category": category, "description": f"A service for {title.casefold()}."}
        self.emit("scenario", described | {"score": 9, "round": 1}, name)
        self.stage(name, "scenario", "done")
        self.put(name, Part.scenario, {"name": title, "description": described["description"]})
        return name

    def stage(self, name: str, stage: str, state: str, why: str = "", fault: str = "") -> None:
        self.emit("stage", {"stage": stage, "state": state, "why": why, "fault": fault}, name)

    def put(self, name: str, part: Part, content: Any, slot: str = "") -> int:
        text = content if isinstance(content, str) else json.dumps(content)
        return self.workspace.catalog.put(name, part, text, slot=slot, author=BY_MODEL, origin="model").id

    def attempt(self, name: str, stage: str, part: Part, content: Any, *findings: dict[str, Any]) -> None:
        """One attempt that was asked for, answered and checked; a right one is put into the catalog."""
        text = content if isinstance(content, str) else json.dumps(content)
        number = self._attempts(name, part) + 1
        request = Request((Message("system", f"You write the {part}."), Message("user", f"{name}, try {number}")))
        key, usage = request.key(MODEL), Usage(1200, 300, 0.0036, 4.0)
        self.replies.put(key, request.document(MODEL), Reply(text, finish="stop", model=MODEL.model, usage=usage))
        step = {"stage": stage, "step": part.value}
        told = {"key": key, "tokens_in": 1200, "tokens_out": 300, "usd": 0.0036, "seconds": 4.0, "counted": True}
        self.emit("asked", step | {"key": key, "most_usd": 0.1}, name)
        self.emit("replied", step | told | {"replayed": False}, name)
        right = not findings
        digest = self.replies.keep(text)
        facts = {"number": number, "right": right, "findings": list(findings), "keys": [key], "content": digest}
        self.emit("attempt", step | facts, name)
        if right:
            self.emit("made", step | {"version": self.put(name, part, content), "by": ""}, name)

    def _attempts(self, name: str, part: Part) -> int:
        events = self.workspace.catalog.events(run=self.run.id)
        return sum(e.kind == "attempt" and e.scenario == name and e.data["step"] == part for e in events)

    def write(self, name: str, step: str, text: str) -> None:
        """Some of a reply that is being written."""
        live = LiveText(live_file(self.workspace.runs / str(self.run.id), name, step))
        live.write("text", text)
        live.close()

    def through(self, name: str, stage: str) -> None:
        """Make a stage right at once."""
        contents = {
            Part.tasks: scripted_model.TASKS,
            Part.schema: scripted_model.SCHEMA,
            Part.sample: scripted_model.SAMPLE,
            Part.spec: scripted_model.SPEC,
            Part.code: scripted_model.CODE,
        }
        self.stage(name, stage, "running")
        for part in STAGES[stage]:
            if part in contents:
                self.attempt(name, stage, part, contents[part])
        self.stage(name, stage, "done")


def fill_with_run(folder: Path) -> None:
    """A workspace with one run of six: done, writing, corrected and waiting, failed, paused, queued."""
    with Workspace.open(folder, create=True) as workspace:
        log = Log(workspace, count=8, budget=5.0, gates={"interface": "all"})
        names = [log.admit(title, category) for title, category in (
            ("Museum loans", "culture"), ("Lost baggage", "travel"), ("Escape rooms", "leisure"),
            ("Blood bank", "health"), ("Film festival", "culture"), ("陳美玲 wind farm", "energy"),
        )]  # fmt: skip
        done, writing, waiting, failed, paused, _ = names
        for stage in list(STAGES)[1:]:
            log.through(done, stage)
        log.through(writing, "tasks")
        log.stage(writing, "database", "running")
        log.emit("asked", {"stage": "database", "step": "schema", "key": "k", "most_usd": 0.1}, writing)
        log.attempt(writing, "database", Part.schema, scripted_model.SCHEMA, LOST)
        log.write(
            writing, "schema", "<think>\nA bag has an owner.\n</think>\nCREATE TABLE bags (\n  id INTEGER PRIMARY KEY,"
        )
        for stage in ("tasks", "database"):
            log.through(waiting, stage)
        log.stage(waiting, "interface", "running")
        log.attempt(waiting, "interface", Part.spec, scripted_model.SPEC)
        log.attempt(waiting, "interface", Part.code, BROKEN_CODE, STUCK)
        log.attempt(waiting, "interface", Part.code, scripted_model.CODE)
        log.stage(waiting, "interface", "waiting", "to be approved")
        log.through(failed, "tasks")
        log.stage(failed, "database", "running")
        for _ in range(4):
            log.attempt(failed, "database", Part.schema, scripted_model.SCHEMA, LOST)
        log.stage(failed, "database", "failed", "schema was never right in 4 attempts: items: could not be created")
        log.through(paused, "tasks")
        log.emit("row", {"paused": True}, paused)
        log.replies.close()
        workspace.catalog.update_run(log.run.id, state="running")
    at_one_moment(folder)


def fill_with_many(folder: Path, number: int) -> None:
    """A run of so many scenarios, all of them at their database."""
    with Workspace.open(folder, create=True) as workspace:
        log = Log(workspace, count=number)
        with workspace.catalog.bulk():
            for n in range(number):
                described = {
                    "title": f"Scenario {n:03}",
                    "category": "other",
                    "description": "",
                    "score": 9,
                    "round": 1,
                }
                log.emit("scenario", described, f"scenario_{n:03}")
                for stage in ("scenario", "tasks"):
                    log.stage(f"scenario_{n:03}", stage, "done")
                log.stage(f"scenario_{n:03}", "database", "running")
        log.replies.close()


def at_one_moment(folder: Path) -> None:
    """Set everything to one time, so that pictures do not change."""
    with sqlite3.connect(folder / "catalog.db") as connection:
        for table in ("versions", "events", "runs"):
            connection.execute(f"UPDATE {table} SET created_at = ?", (MOMENT,))
        connection.execute("UPDATE runs SET updated_at = ?", (MOMENT,))
    connection.close()
