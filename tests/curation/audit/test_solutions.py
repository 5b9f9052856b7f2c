"""Solutions that a person hands in: kept with their author, played by the audit, and never half there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.audit.solutions import keep_solution
from curation.audit.workspace import audit_workspace
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part, Solution
from pipeline.runtime.host import Host
from tests.curation.audit.desk import SOLUTIONS, verifier
from tests.curation.audit.workspaces import put_desk

ROBIN = Author(AuthorKind.person, "robin")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A desk whose tasks nobody has solved."""
    with Catalog.open(tmp_path / "catalog.db") as opened:
        put_desk(opened, "desk", [verifier(0)])
        yield opened


def test_recorded_calls_prove_a_verifier_and_are_named_after_the_person(catalog: Catalog, host: Host) -> None:
    (before,) = audit_workspace(catalog, ["desk"], host, workers=1)
    assert before.verdict == "unproven"
    version = keep_solution(catalog, "desk", SOLUTIONS[0], ROBIN)
    assert (version.number, version.author) == (1, ROBIN)
    assert catalog.environment("desk").solution(0) == SOLUTIONS[0]
    assert catalog.summary("desk").audit == "stale"
    (after,) = audit_workspace(catalog, ["desk"], host, workers=1)
    assert after.verdict == "trusted"
    assert after.verifiers[0].solutions == ("person robin",)


def test_a_second_solution_of_a_task_is_its_next_version(catalog: Catalog) -> None:
    keep_solution(catalog, "desk", SOLUTIONS[0], ROBIN)
    shorter = Solution(0, SOLUTIONS[0].calls[:1], None)
    assert keep_solution(catalog, "desk", shorter, ROBIN).number == 2
    assert len(catalog.versions("desk", Part.solution, "0")) == 2


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        (Solution(99, SOLUTIONS[0].calls), "has no task 99"),
        (Solution(-1, SOLUTIONS[0].calls), "has no task -1"),
        (Solution(0, ()), "there are neither"),
    ],
)
def test_what_is_no_solution_is_a_sentence(catalog: Catalog, solution: Solution, words: str) -> None:
    with pytest.raises(UserError, match=words):
        keep_solution(catalog, "desk", solution, ROBIN)
