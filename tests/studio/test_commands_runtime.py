"""`awm-studio tools`, `call`, `snapshot`, `verify` and `doctor`, as a script would use them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from studio.cli import awm_studio
from tests.pipeline.runtime.small_programs import FIRST_NOTE, NOTEBOOK, NOTES

CODE_VERIFIER = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    n = sqlite3.connect(final_db_path).execute("SELECT count(*) FROM notes WHERE text = 'milk'").fetchone()[0]
    return {"result": "complete" if n == 1 and final_answer in ("", "done") else "others"}
"""
SQL_VERIFIER = """
def verify_task(initial_db_path, final_db_path):
    return {"notes": sqlite3.connect(final_db_path).execute("SELECT count(*) FROM notes").fetchone()[0]}
"""
BROKEN_VERIFIER = "def verify_task(initial_db_path, final_db_path):\n    return nothing\n"

Command = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    author = Author(AuthorKind.person, "test")
    schema = {"tables": [asdict(NOTES)]}
    sample = {"tables": [{"table_name": FIRST_NOTE.table, "insert_statements": list(FIRST_NOTE.inserts)}]}
    with Catalog.open(folder / "catalog.db") as catalog:
        catalog.put("notebook", Part.schema, json.dumps(schema), author=author, title="Notebook")
        catalog.put("notebook", Part.sample, json.dumps(sample), author=author)
        catalog.put("notebook", Part.code, NOTEBOOK, author=author)
        catalog.put("notebook", Part.tasks, '["Write down milk.", "Write anything."]', author=author)
        catalog.put("notebook", Part.verifier, CODE_VERIFIER, slot="0/code", author=author)
        catalog.put("notebook", Part.verifier, SQL_VERIFIER, slot="0/sql", author=author)
        catalog.put("notebook", Part.verifier, BROKEN_VERIFIER, slot="1/code", author=author)
        catalog.put("unfinished", Part.schema, json.dumps(schema), author=author, title="Unfinished")
        catalog.put("broken", Part.schema, json.dumps(schema), author=author, title="Broken")
        catalog.put("broken", Part.code, "from fastapi import FastAPI\napp = FastAPI(\n", author=author)
    return folder


@pytest.fixture
def command(workspace: Path) -> Command:
    """Runs a command with --json; gives its exit code and document. Raises the UserError it would print."""

    def run(*arguments: str, input: str | None = None) -> tuple[int, Any]:
        result = CliRunner().invoke(
            awm_studio, ["--workspace", str(workspace), *arguments, "--json"], input=input, catch_exceptions=False
        )
        return result.exit_code, json.loads(result.stdout)

    return run


@pytest.fixture
def shown(workspace: Path) -> Callable[..., str]:
    """What a person sees of a command, on both streams."""

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(awm_studio, ["--workspace", str(workspace), *arguments], catch_exceptions=False)
        return result.output

    return run


def texts(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY id")]


def test_tools_are_listed_as_an_agent_sees_them(command: Command, shown: Callable[..., str]) -> None:
    code, document = command("tools", "Notebook")
    assert code == 0
    assert [tool["name"] for tool in document["tools"]] == ["list_notes", "add_note", "delete_note", "run"]
    assert document["tools"][1]["input_schema"]["required"] == ["text"]
    assert document["tools"][1]["description"].startswith("Add Note")
    assert "delete_note" in shown("tools", "notebook")


def test_a_call_shows_what_it_returned_and_changed(command: Command) -> None:
    code, document = command("call", "notebook", "add_note", "--args", '{"text": "milk"}')
    assert code == 0
    assert list(document) == ["ok", "status", "body", "error", "ms", "diff"]
    assert (document["ok"], document["status"], document["error"]) == (True, 200, None)
    assert document["body"] == {"id": 2, "text": "milk", "written": "2026-01-01T12:00:00"}
    row = {"id": 2, "text": "milk", "written": "2026-01-01 12:00:00.000000"}
    assert document["diff"] == {"notes": {"added": [row], "removed": [], "changed": []}}


def test_the_same_call_again_gives_the_same(command: Command) -> None:
    call = ("call", "notebook", "run", "--args", '{"code": "import uuid; out = str(uuid.uuid4())"}')
    first, second = command(*call)[1], command(*call)[1]
    assert {**first, "ms": 0} == {**second, "ms": 0}


def test_a_call_that_is_not_ok_exits_with_1(command: Command) -> None:
    code, document = command("call", "notebook", "delete_note", "--args", '{"note_id": 9}')
    assert code == 1
    assert (document["ok"], document["status"], document["diff"]) == (False, 404, {})
    assert document["error"]["kind"] == "client_error"
    assert document["error"]["message"] == "no such note"


def test_calls_can_be_chained_through_files(command: Command, tmp_path: Path) -> None:
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    command("call", "notebook", "add_note", "--args", '{"text": "milk"}', "--save", str(one))
    code, document = command(
        "call", "notebook", "delete_note", "--args", '{"note_id": 2}', "--from", str(one), "--save", str(two)
    )
    assert code == 0
    assert [row["text"] for row in document["diff"]["notes"]["removed"]] == ["milk"]
    assert (texts(one), texts(two)) == (["first", "milk"], ["first"])


def test_arguments_come_from_a_file_or_from_stdin(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "note.json"
    file.write_text('\ufeff{"text": "from a file"}')
    assert command("call", "notebook", "add_note", "--args", f"@{file}")[1]["body"]["text"] == "from a file"
    said = command("call", "notebook", "add_note", "--args", "-", input='{"text": "piped"}')
    assert said[1]["body"]["text"] == "piped"


def test_the_time_inside_can_be_chosen(command: Command) -> None:
    call = ("call", "notebook", "add_note", "--args", '{"text": "x"}', "--now", "2030-05-01T10:00:00+02:00")
    assert command(*call)[1]["body"]["written"] == "2030-05-01T08:00:00"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("call", "notebook", "add_notes"), "no tool 'add_notes'. Did you mean add_note"),
        (("call", "notebook", "zzz"), "awm-studio tools notebook lists them"),
        (("call", "notebok", "add_note"), "notebook"),
        (("call", "notebook", "add_note", "--args", '{"text": milk}'), 'column 10: {"text": ⟨here⟩milk}'),
        (("call", "notebook", "add_note", "--args", "[1]"), "not a JSON object"),
        (("call", "notebook", "add_note", "--args", "[" * 100_000), "nested too deeply"),
        (("call", "notebook", "add_note", "--args", "@/nowhere/x.json"), "/nowhere/x.json cannot be read"),
        (("call", "notebook", "list_notes", "--from", "/nowhere/x.db"), "/nowhere/x.db cannot be read"),
        (("call", "notebook", "list_notes", "--from", __file__), "is not a SQLite database"),
        (("call", "notebook", "list_notes", "--save", "/nowhere/x.db"), "no folder /nowhere"),
        (("call", "notebook", "list_notes", "--save", "/"), "is a folder"),
        (("call", "unfinished", "list_notes"), "unfinished cannot be run: it has no code"),
        (("tools", "broken"), "line 2"),
        (("snapshot", "notebook", "/nowhere/x.db"), "no folder /nowhere"),
        (("verify", "notebook", "--task", "7", "--final", __file__), "no task 7; it has tasks 0 to 1"),
        (("verify", "notebook", "--task", "1", "--mode", "sql", "--final", __file__), "only one in code mode"),
        (("verify", "unfinished", "--task", "0", "--final", __file__), "no verifier"),
        (("verify", "notebook", "--task", "0", "--final", __file__), "is not a SQLite database"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(command: Command, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError) as failure:
        command(*arguments)
    assert words in str(failure.value)


def test_a_snapshot_is_what_instances_start_with(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "initial.db"
    code, document = command("snapshot", "notebook", str(file))
    assert code == 0
    assert document == {"environment": "notebook", "file": str(file), "bytes": file.stat().st_size, "left_out": 0}
    assert texts(file) == ["first"]
    again = tmp_path / "again.db"
    command("snapshot", "notebook", str(again))
    assert again.read_bytes() == file.read_bytes()
    assert command("snapshot", "unfinished", str(again))[0] == 0


def test_a_verdict_decides_the_exit_code(command: Command, tmp_path: Path) -> None:
    after = tmp_path / "after.db"
    command("call", "notebook", "add_note", "--args", '{"text": "milk"}', "--save", str(after))
    initial = tmp_path / "initial.db"
    command("snapshot", "notebook", str(initial))
    verify = ("verify", "notebook", "--initial", str(initial), "--final")

    code, document = command(*verify, str(after), "--task", "0", "--answer", "done")
    assert (code, document["verdict"], document["evidence"], document["error"]) == (0, "complete", None, None)
    assert [(query["db"], query["ok"]) for query in document["queries"]] == [("final", True)]

    code, document = command(*verify, str(initial), "--task", "0")
    assert (code, document["verdict"]) == (1, "others")

    code, document = command("verify", "notebook", "--final", str(after), "--task", "0", "--mode", "sql")
    assert (code, document["verdict"], document["evidence"]) == (0, "evidence", {"notes": 2})

    code, document = command(*verify, str(after), "--task", "1")
    assert (code, document["verdict"]) == (1, "judge_error")
    assert document["error"] == "NameError: name 'nothing' is not defined (line 2: `return nothing`)"


def test_people_see_the_verdict_and_the_error(shown: Callable[..., str], command: Command, tmp_path: Path) -> None:
    initial = tmp_path / "initial.db"
    command("snapshot", "notebook", str(initial))
    assert shown("verify", "notebook", "--task", "0", "--final", str(initial)).startswith("others\n")
    assert "line 2" in shown("verify", "notebook", "--task", "1", "--final", str(initial))


def test_doctor_says_what_works_and_tries_the_sandbox(command: Command, workspace: Path) -> None:
    code, document = command("doctor")
    assert code == 0
    assert document["ok"] is True
    assert document["workspace"] == str(workspace)
    assert document["workspace_exists"] is True
    assert set(document["sandbox"]) == {"rlimits", "namespaces", "landlock", "seccomp"}
    assert all(type(active) is bool for active in document["sandbox"].values())
    for name in ("import", "runtime", "sandbox", "mcp", "datasette", "studio", "hf", "concepts", "train"):
        assert set(document["features"][name]) == {"ok", "missing", "hint"}
        assert document["features"][name]["ok"] or document["features"][name]["hint"]


def test_doctor_says_which_interpreter_cannot_run_workers(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('worker_python = "/nowhere/python3.12"\ncall_timeout_s = 9.0\n')
    monkeypatch.setenv("AWM_CONFIG", str(settings))
    code, document = command("doctor")
    assert code == 1
    assert document["features"]["runtime"]["ok"] is False
    assert "/nowhere/python3.12" in document["features"]["runtime"]["hint"]
    assert document["worker_python"] == "/nowhere/python3.12"
    assert not any(document["sandbox"].values())
