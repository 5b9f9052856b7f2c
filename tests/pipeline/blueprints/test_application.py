"""The generated application is an ordinary FastAPI file: it serves a database file over HTTP, and refuses with reasons."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline.blueprints.make import Blueprint, blueprint, shipped_domain
from pipeline.blueprints.tasks.meaning import Performed
from pipeline.blueprints.tasks.solutions import Solver
from pipeline.model import Environment
from pipeline.runtime.build import build
from tests.pipeline.blueprints.local_runner import LocalRunner


@pytest.fixture(scope="module")
def clinic() -> Blueprint:
    return blueprint(shipped_domain("clinic"), 7, 0)


@pytest.fixture
def database(clinic: Blueprint, tmp_path: Path) -> Path:
    path = tmp_path / "clinic.db"
    made = clinic.environment
    path.write_bytes(build(made.schema, made.sample, now=made.now).snapshot)
    return path


@pytest.fixture
def client(clinic: Blueprint, database: Path, tmp_path: Path) -> Iterator[httpx.Client]:
    """An HTTP client of the file as it is, served by uvicorn as upstream serves its own."""
    source = tmp_path / "application.py"
    source.write_text(clinic.environment.code or "")
    command = [sys.executable, "-W", "error::DeprecationWarning:pydantic", str(source)]
    environment = {**os.environ, "DATABASE_PATH": f"sqlite:///{database}", "PORT": "0"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        with httpx.Client(base_url=address(server), timeout=60) as http:
            yield http
    finally:
        server.terminate()
        server.communicate()


def address(server: subprocess.Popen[str]) -> str:
    """Where a server says that it listens."""
    assert server.stderr
    said = []
    for line in server.stderr:
        said.append(line)
        if found := re.search(r"running on (http://[\d.:]+)", line):
            return found[1]
    pytest.fail(f"the server ended: {''.join(said)}")


def send(http: httpx.Client, made: Environment, tool: str, arguments: dict[str, Any]) -> httpx.Response:
    operation = next(operation for operation in made.operations if operation.operation_id == tool)
    places = {name: parameter["param_type"] for name, parameter in operation.parameters.items()}
    path = operation.path.format(**{name: value for name, value in arguments.items() if places[name] == "path"})
    query = {name: value for name, value in arguments.items() if places[name] == "query"}
    body = {name: value for name, value in arguments.items() if places[name] == "body"}
    return http.request(operation.method, path, params=query, json=body or None)


def test_it_runs_unchanged_under_uvicorn_with_a_database_file(clinic: Blueprint, client: httpx.Client, database: Path):
    made = clinic.environment
    documented = {
        operation["operationId"]
        for path in client.get("/openapi.json").json()["paths"].values()
        for operation in path.values()
    }
    assert documented == {operation.operation_id for operation in made.operations}

    number, task = next((n, t) for n, t in enumerate(clinic.tasks) if t.kind in ("choose", "direct", "several"))
    initial = database.read_bytes()
    for call in task.calls:
        reply = send(client, made, call.tool, dict(call.arguments))
        assert reply.is_success, reply.text

    verifier = next(v for v in made.verifiers if v.task == number)
    names: dict[str, Any] = {}
    exec(verifier.code, names)
    before = database.with_name("initial.db")
    before.write_bytes(initial)
    assert names["verify_task_completion"](str(before), str(database), task.answer) == {"result": "complete"}


def test_a_refusal_is_a_4xx_with_a_reason_and_changes_nothing(tmp_path: Path):
    refused = 0
    for name in ("clinic", "ledger", "library", "warehouse"):
        made = blueprint(shipped_domain(name), 7, 0)
        runner = LocalRunner(made.environment, tmp_path)
        for task in made.tasks:
            if task.kind == "refuse" and task.meaning.form.name.startswith("not_do_"):
                action = made.domain.actions[task.meaning.form.name.removeprefix("not_do_")]
                call = Solver(made.world, made.offered).action(Performed(action, task.meaning.variables))
                instance = runner.instance()
                reply = instance.call(call.tool, call.arguments)
                assert reply.status in (403, 409)
                assert task.meaning.reason in str(reply.body)
                assert instance.snapshot() == runner.template
                refused += 1
    assert refused >= 4


@pytest.mark.parametrize("bad", [0, -1, 2**31, 2**70, "x", None, 1.5])
def test_ids_that_cannot_be_are_refused(clinic: Blueprint, tmp_path: Path, bad: Any):
    runner = LocalRunner(clinic.environment, tmp_path)
    for operation in clinic.environment.operations:
        paths = [name for name, parameter in operation.parameters.items() if parameter["param_type"] == "path"]
        if paths:
            arguments = {name: parameter["example"] for name, parameter in operation.parameters.items()}
            reply = runner.instance().call(operation.operation_id, {**arguments, paths[0]: bad})
            assert 400 <= reply.status < 500, (operation.operation_id, reply.body)


def test_rows_that_are_not_there_are_said_to_be_missing(clinic: Blueprint, tmp_path: Path):
    runner = LocalRunner(clinic.environment, tmp_path)
    operation = next(o for o in clinic.environment.operations if o.method == "GET" and "{" in o.path)
    (name,) = operation.parameters
    reply = runner.instance().call(operation.operation_id, {name: 4711})
    assert reply.status == 404
    assert "There is no " in reply.body["detail"]
    assert reply.body["detail"].endswith("with id 4711.")
