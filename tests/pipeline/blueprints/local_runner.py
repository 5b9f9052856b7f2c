"""Runs environments made by rules in this process: quicker than a worker each, and all there is to prove is ours.

That the same holds in the sandboxed workers is tested apart, on a few.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipeline.model import Environment, Mode, Verifier
from pipeline.runtime.build import build
from pipeline.runtime.engine import Engine
from pipeline.runtime.program import load


class LocalRunner:
    """An environment in this process. `folder` is where verifiers find their databases."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self.environment, self.folder = environment, folder
        built = build(environment.schema, environment.sample, now=environment.now)
        self.problems = tuple(str(fact) for fact in (*built.failed, *built.foreign_keys, *built.missing_tables))
        assert environment.code
        program = load(environment.code, name=environment.name, template=built.snapshot, now=environment.now)
        self.problems += tuple(program.tables_added) + tuple(f.message for f in program.findings)
        self.engine = Engine(program)
        self.template = program.template
        self.tools = tuple(tool.name for tool in program.tools)
        self.verifiers: dict[str, dict[str, Any]] = {}
        self._written: dict[str, bytes] = {}

    def instance(self) -> LocalInstance:
        return LocalInstance(self.engine)

    def verify(self, verifier: Verifier, final: bytes, answer: str | None) -> tuple[bool, str]:
        initial_path, final_path = self._file("initial.db", self.template), self._file("final.db", final)
        if verifier.code not in self.verifiers:
            namespace: dict[str, Any] = {}
            exec(compile(verifier.code, "<verifier>", "exec"), namespace)
            self.verifiers[verifier.code] = namespace
        namespace = self.verifiers[verifier.code]
        name = "verify_task_completion" if verifier.mode is Mode.code else "verify_task"
        said = namespace[name](str(initial_path), str(final_path), answer or "")
        accepted = said["holds"] if verifier.mode is Mode.sql else said["result"] == "complete"
        return accepted, str(said)

    def _file(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        if self._written.get(name) != content:
            path.write_bytes(content)
            self._written[name] = content
        return path


class LocalInstance:
    def __init__(self, engine: Engine) -> None:
        self.engine, self.state, self.tick = engine, engine.template_state, 0

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        self.state, reply = self.engine.call(self.state, self.tick, tool, arguments or {}, timeout=10)
        self.tick += 1
        error = reply["error"]
        if error and error["kind"] == "server_error":
            logging.warning("%s", error)
        return SimpleNamespace(
            body=reply["body"], status=reply["status"], error=SimpleNamespace(**error) if error else None
        )

    def snapshot(self) -> bytes:
        return self.engine.get(self.state)
