"""Solutions that a person hands in: kept with their author, played by the audit, and never half there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.audit.workspace import audit_workspace
from curation.solutions import save_solution
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Call, Part
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
    version = save_solution(catalog, "desk", 0, SOLUTIONS[0].calls, None, ROBIN)
    assert (version.number, version.author) == (1, ROBIN)
    assert catalog.environment("desk").solution(0) == SOLUTIONS[0]
    assert catalog.summary("desk").audit == "stale"
    (after,) = audit_workspace(catalog, ["desk"], host, workers=1)
    assert after.verdict == "trusted"
    assert after.verifiers[0].solutions == ("person robin",)


def test_a_second_solution_of_a_task_is_its_next_version(catalog: Catalog) -> None:
    save_solution(catalog, "desk", 0, SOLUTIONS[0].calls, None, ROBIN)
    assert save_solution(catalog, "desk", 0, SOLUTIONS[0].calls[:0], "Nothing.", ROBIN).number == 2
    assert len(catalog.versions("desk", Part.solution, "0")) == 2


@pytest.mark.parametrize(
    ("task", "calls", "words"),
    [(99, SOLUTIONS[0].calls, "has no task 99"), (-1, SOLUTIONS[0].calls, "has no task -1"), (0, (), "needs a call")],
)
def test_what_is_no_solution_is_a_sentence(catalog: Catalog, task: int, calls: tuple[Call, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        save_solution(catalog, "desk", task, calls, None, ROBIN)
