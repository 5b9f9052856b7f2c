"""Writes a folder of the AWM release's size and shape, from nothing but a seed.

The release has 1,000 scenarios with ten tasks each and 20,486 verifier rows (243 of each mode are duplicates), 519 MB
in all. Row sizes here are its files' sizes divided by their rows. Contents parse but do nothing useful.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

SCENARIOS = 1000
TASKS = 10
DUPLICATES = 243
WORDS = [
    "order",
    "user",
    "cart",
    "invoice",
    "ticket",
    "booking",
    "driver",
    "route",
    "parcel",
    "room",
    "patient",
    "claim",
    "policy",
    "seat",
    "course",
    "exam",
]


def write_release(folder: Path, *, scenarios: int = SCENARIOS, seed: int = 1) -> int:
    """Write the eight files; returns their size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _Text(random.Random(seed))
    names = [f"{text.word().title()} {text.word()} desk ({number})" for number in range(scenarios)]
    writers = {
        "gen_scenario": ({"name": n, "description": text.prose(1250)} for n in names),
        "gen_tasks": ({"scenario": n, "tasks": [_task(n, i) for i in range(TASKS)]} for n in names),
        "gen_db": ({"scenario": n, "db_schema": text.schema(17), "db_path": f"/home/me/{n}.db"} for n in names),
        "gen_sample": ({"scenario": n, "sample_data": text.sample(19)} for n in names),
        "gen_spec": ({"scenario": n, "api_spec": text.spec(59)} for n in names),
        "gen_envs": ({"scenario": n, "full_code": text.code("app", 106_400)} for n in names),
        "gen_verifier.pure_code": _verifiers(text, names, "verify_task_completion", 1_480),
        "gen_verifier": _verifiers(text, names, "verify_task", 11_750),
    }
    size = 0
    for name, rows in writers.items():
        with (folder / f"{name}.jsonl").open("wb") as file:
            for row in rows:
                size += file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
    return size


def _task(scenario: str, number: int) -> str:
    return f"In {scenario}, find the record numbered {number * 37} and bring it up to date, then say what you did. " * 2


def _verifiers(text: _Text, names: list[str], function: str, size: int) -> Iterator[dict[str, Any]]:
    pairs = [(name, task) for name in names for task in range(TASKS)]
    for name, task in pairs + pairs[: DUPLICATES * len(names) // SCENARIOS]:
        code = text.code(function, size)
        raw = orjson.dumps({"reasoning": text.prose(1000), "python_code": code}).decode()
        yield {
            "scenario": name.lower(),
            "task_idx": task,
            "task": _task(name, task),
            "verification": {"code": code, "raw_response": raw},
        }


class _Text:
    """Prose, SQL and Python that compress about as well as generated ones."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._lines = [
            f"    {self.word()}_{self.word()} = fetch('SELECT {self.word()} FROM {self.word()}s WHERE id = ?', {number})\n"
            for number in range(4000)
        ]
        self._sentences = [
            f"The {self.word()} of a {self.word()} needs its {self.word()} number {number}. " for number in range(4000)
        ]

    def word(self) -> str:
        return self._chance.choice(WORDS)

    def prose(self, size: int) -> str:
        return "".join(self._chance.choices(self._sentences, k=size // len(self._sentences[0])))

    def code(self, function: str, size: int) -> str:
        body = "".join(self._chance.choices(self._lines, k=size // 75))
        return f"def {function}(initial_db_path, final_db_path):\n{body}    return {{}}\n"

    def schema(self, tables: int) -> dict[str, Any]:
        columns = [f"{self.word()}_{number} TEXT NOT NULL" for number in range(24)]
        return {
            "tables": [
                {
                    "name": f"{self.word()}_{number}",
                    "ddl": f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY, {', '.join(columns)});",
                    "indexes": [f"CREATE INDEX i{number} ON t{number}(id);"],
                }
                for number in range(tables)
            ]
        }

    def sample(self, tables: int) -> dict[str, Any]:
        return {
            "tables": [
                {
                    "table_name": f"t{number}",
                    "reasoning": self.prose(300),
                    "insert_statements": [
                        f"INSERT INTO t{number} (id, a, b) VALUES ({row}, '{self.prose(100)}', '{self.word()}');"
                        for row in range(10)
                    ],
                }
                for number in range(tables)
            ]
        }

    def spec(self, endpoints: int) -> dict[str, Any]:
        return {
            "api_groups": [
                {
                    "group_name": "all",
                    "endpoints": [
                        {
                            "path": f"/api/{self.word()}/{number}",
                            "method": "POST",
                            "operation_id": f"do_{number}",
                            "summary": self.prose(80),
                            "request_params": {
                                self.word(): {"type": "string", "param_type": "body", "description": self.prose(90)}
                                for _ in range(8)
                            },
                            "response": {self.word(): {"type": "integer", "example": number} for _ in range(8)},
                        }
                        for number in range(endpoints)
                    ],
                }
            ]
        }
