"""Calls that a person made become the reference solution of a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.solutions import Made, save_solution, worked
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Call, Part

ADA = Author(AuthorKind.person, "ada")
LOOK, CLAIM = Call("list_bags"), Call("create_claim", {"bag_id": 2})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.db") as opened:
        opened.put("shop", Part.tasks, '["Claim it.", "How many?"]', author=ADA)
        yield opened


def test_what_was_refused_and_changed_nothing_is_no_part_of_it() -> None:
    made = [
        Made(LOOK, ok=True, changed=False),
        Made(CLAIM, ok=False, changed=False),
        Made(CLAIM, ok=True, changed=True),
    ]
    assert worked(made) == (LOOK, CLAIM)


def test_what_failed_and_changed_something_has_to_be_undone_first() -> None:
    with pytest.raises(UserError, match=r"Call 2 \(create_claim\) failed and changed"):
        worked([Made(LOOK, ok=True, changed=False), Made(CLAIM, ok=False, changed=True)])


def test_it_is_a_version_by_the_person_made_from_the_one_before(catalog: Catalog) -> None:
    first = save_solution(catalog, "shop", 0, [LOOK, CLAIM], None, ADA)
    second = save_solution(catalog, "shop", 0, [CLAIM], "done", ADA)
    assert (second.number, second.author, second.parents) == (2, ADA, (first.id,))
    solution = catalog.environment("shop").solution(0)
    assert solution is not None
    assert (solution.calls, solution.answer) == ((CLAIM,), "done")


@pytest.mark.parametrize(("task", "calls", "says"), [(2, [CLAIM], "no task 2"), (1, [], "a call or an answer")])
def test_what_solves_nothing_is_not_kept(catalog: Catalog, task: int, calls: list[Call], says: str) -> None:
    with pytest.raises(UserError, match=says):
        save_solution(catalog, "shop", task, calls, None, ADA)
    assert catalog.environment("shop").solutions == ()
