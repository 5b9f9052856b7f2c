"""`awm-studio fix`, as a script would use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.catalog import Catalog
from pipeline.model import Author, AuthorKind, Part
from studio.cli import awm_studio

BY_TEST = Author(AuthorKind.model, "a model")
Command = Callable[..., Any]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a shop in which an apostrophe loses a row, checked."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    tables = [{"name": "note", "ddl": "CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT)", "indexes": []}]
    rows = ["INSERT INTO note VALUES (1, 'We'll send a lamp')", "INSERT INTO note VALUES (2, 'Arrived')"]
    with Catalog.open(folder / "catalog.db") as catalog:
        catalog.put("shop", Part.schema, json.dumps({"tables": tables}), author=BY_TEST)
        sample = {"tables": [{"table_name": "note", "insert_statements": rows}]}
        catalog.put("shop", Part.sample, json.dumps(sample), author=BY_TEST)
    CliRunner().invoke(awm_studio, ["check", "shop", "--workspace", str(folder)])
    return folder


@pytest.fixture
def command(workspace: Path) -> Command:
    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(awm_studio, ["fix", "shop", *arguments, "--workspace", str(workspace)])
        if result.exception is not None:
            raise result.exception
        return json.loads(result.stdout) if "--json" in arguments else result.output

    return run


def test_by_default_the_difference_is_shown_and_nothing_is_changed(command: Command, workspace: Path) -> None:
    said = command()
    assert "-INSERT INTO note VALUES (1, 'We'll send a lamp');" in said
    assert "+INSERT INTO note VALUES (1, 'We''ll send a lamp');" in said
    with Catalog.open(workspace / "catalog.db") as catalog:
        assert len(catalog.versions("shop", Part.sample)) == 1


def test_applied_it_is_a_version_by_the_person_and_the_environment_is_checked_again(
    command: Command, workspace: Path
) -> None:
    document = command("--apply", "--json")
    assert [fix["code"] for fix in document["fixes"]] == ["insert_failed"]
    assert document["versions"] == [{"part": "sample", "slot": "", "number": 2}]
    assert "insert_failed" not in {finding["code"] for finding in document["check"]["findings"]}
    with Catalog.open(workspace / "catalog.db") as catalog:
        newest = catalog.versions("shop", Part.sample)[-1]
        assert newest.author.kind is AuthorKind.person
        assert catalog.summary("shop").check == document["check"]["status"]


def test_only_what_was_asked_for_is_put_right(command: Command) -> None:
    document = command("--finding", "goal_in_seed", "--apply", "--json")
    assert (document["fixes"], document["versions"], document["check"]) == ([], [], None)
    assert "Nothing that was found in shop is called goal_in_seed" in command("--finding", "goal_in_seed")
