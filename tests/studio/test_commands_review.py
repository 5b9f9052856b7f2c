"""`awm-studio review`, as a script would use it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from studio.cli import awm_studio

Command = Callable[..., Any]


@pytest.fixture
def command(workspace: Path) -> Command:
    """Runs the command on the small workspace (a failed and a warned environment); gives its JSON document."""

    def run(*arguments: str) -> Any:
        result = CliRunner().invoke(awm_studio, ["review", *arguments, "--json", "--workspace", str(workspace)])
        if result.exception is not None:
            raise result.exception
        return json.loads(result.stdout)

    return run


def test_the_queue_has_what_is_open_with_its_keys(command: Command) -> None:
    document = command()
    assert [(item["environment"], item["severity"], item["decision"]) for item in document["items"]] == [
        ("museum_loans", "error", None),
        ("film_festival", "warn", None),
    ]
    assert document["summary"] == {"open": 2, "decided": 0}
    assert [item["environment"] for item in command("Film 陳美玲 🎬 festival")["items"]] == ["film_festival"]


def test_a_decision_is_kept_with_who_and_why_and_changes_what_the_list_says(command: Command, workspace: Path) -> None:
    key = command()["items"][0]["item"]
    after = command("museum_loans", "--item", key[:5], "--decide", "waive", "--reason", "old", "--reviewer", "ada")
    assert after["items"] == []
    [item] = command("museum_loans", "--decided")["items"]
    assert (item["decision"], item["reason"], item["reviewer"]) == ("waive", "old", "ada")
    with Catalog.open(workspace / "catalog.db") as catalog:
        assert (catalog.summary("museum_loans").check, catalog.summary("museum_loans").review) == ("waived", "waive")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("museum_loans", "--item", "abc"), "how: --item KEY --decide"),
        (("--item", "abc", "--decide", "drop"), "Name the one environment"),
        (("museum_loans", "--item", "nothing", "--decide", "drop"), "has no item 'nothing'"),
        (("museum_loan", "--item", "x", "--decide", "drop"), "Did you mean museum_loans"),
    ],
)
def test_what_cannot_be_decided_is_said(command: Command, arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(UserError, match=says):
        command(*arguments)


def test_everything_is_exported_also_what_was_taken_back(command: Command, tmp_path: Path) -> None:
    key = command()["items"][0]["item"]
    for decision in ("drop", "reopen"):
        command("museum_loans", "--item", key, "--decide", decision, "--reviewer", "ada")
    for name in ("review.csv", "review.json"):
        command("--export", str(tmp_path / name))
    with (tmp_path / "review.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["environment"], row["decision"], row["holds"]) for row in rows] == [
        ("museum_loans", "", "False"),
        ("film_festival", "", "False"),
        ("museum_loans", "drop", "False"),
        ("museum_loans", "reopen", "False"),
    ]
    assert {row["message"] for row in rows} == {"3 rows refer to rows that do not exist."}
    exported = json.loads((tmp_path / "review.json").read_text())
    assert [row["reviewer"] for row in exported] == [None, None, "ada", "ada"]
