"""What the documentation says of the checks is what the checks do."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from curation.checks.trajectories import RULES, TROUBLES

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "checks.md").read_text("utf-8")
NAMED = set(re.findall(r"`(\w+)`", TEXT))
ROWS = dict(re.findall(r"^\| `?(\w+)`? \| (.+) \|$", TEXT, re.MULTILINE))
IN_SYNTHESIS_ONLY = {"task_count", "task_repeated"}


def codes(*folders: str) -> set[str]:
    """The codes that findings are made with in these folders, as far as they are written out."""
    found = set()
    for folder in folders:
        for file in (ROOT / folder).glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                    code = (
                        node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "code"), None)
                    )
                    if isinstance(code, ast.Constant):
                        found.add(str(code.value))
    return found


def test_every_code_is_documented() -> None:
    made = codes("pipeline/rules", "pipeline/runtime", "curation/checks") - IN_SYNTHESIS_ONLY
    assert len(made) > 40
    assert made - NAMED == set()


def test_the_rules_about_recorded_runs_are_documented_as_they_are() -> None:
    assert {name: ROWS.get(name) for name in (*RULES, *TROUBLES)} == {**RULES, **TROUBLES}
