"""What the README shows is what a newcomer sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.blueprints.make import environment
from pipeline.blueprints.synthesis import Request, planned, put
from pipeline.catalog import Catalog
from studio.cli import SECTIONS, awm_studio

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SHOWN = re.compile(r"\b([a-z_]+)_[a-z]+(?:_[a-z]+)?_7_(\d+)\b")
PLANNED = list(planned(Request(count=24, seed=7)))


def test_its_environments_are_among_those_that_make_studio_makes() -> None:
    names = {match[0] for match in SHOWN.finditer(README)}
    made = {environment(domain, 7, index).name for domain, index in PLANNED if f"_7_{index}" in " ".join(names)}
    assert names
    assert names <= made


def test_its_calls_and_tasks_are_real(tmp_path: Path) -> None:
    (name,) = {match[0] for match in SHOWN.finditer(README)}
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        domain, index = next(plan for plan in PLANNED if name.endswith(f"_7_{plan[1]}"))
        put(catalog, environment(domain, 7, index))
    shown = re.findall(rf"^\$ awm-studio ((?:call|show) {name} .*)\n((?:(?!\$|```).*\n)*)", README, re.MULTILINE)
    assert len(shown) >= 3
    for command, output in shown:
        words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)]
        result = CliRunner().invoke(awm_studio, ["-w", str(tmp_path), *words])
        for line in filter(lambda line: line.strip() not in ("", "…"), output.splitlines()):
            assert line.strip() in result.output, (command, result.output)


def test_every_command_it_names_exists() -> None:
    verbs = {verb for group in SECTIONS.values() for verb in group}
    named = set(re.findall(r"(?:`|^(?:\$ )?)awm-studio ([a-z]+)", README, re.MULTILINE))
    assert named <= verbs, named - verbs


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!http)([^)#]+)", README))))
def test_what_it_links_to_is_there(target: str) -> None:
    assert (ROOT / target).exists()
