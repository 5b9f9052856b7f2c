"""docs/blueprints.md says what is so: its example is read and proved, and what it shows came out of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.blueprints.faults import FAULTS
from pipeline.blueprints.language.notation import FORMS
from pipeline.blueprints.language.reading import read_domain
from pipeline.blueprints.make import Blueprint, blueprint, shipped_text
from pipeline.blueprints.prove import prove
from tests.pipeline.blueprints.local_runner import LocalRunner

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "blueprints.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def shown() -> Blueprint:
    return blueprint(read_domain(blocks("yaml")[0], "tea.yaml", common=shipped_text("_common.yaml")), 0, 1)


def test_the_example_is_sound(shown: Blueprint, tmp_path: Path):
    assert prove(shown, LocalRunner(shown.environment, tmp_path)) == []


def test_what_is_shown_came_out_of_the_example(shown: Blueprint):
    made = shown.environment
    assert f"`{made.name}`" in PAGE
    assert blocks("sql")[0].strip() in {table.ddl for table in made.schema}
    handler, verifier = blocks("python")
    assert handler in (made.code or "")
    assert set(blocks("text")[0].splitlines()) <= set(made.tasks)
    assert any(all(line in one.code for line in verifier.splitlines()) for one in made.verifiers)


def test_every_notation_and_every_fault_is_described():
    assert {form for form in FORMS if f"`{form}" not in PAGE} == set()
    assert {kind for kind in FAULTS if f"`{kind}`" not in PAGE} == set()
