"""Desks in a catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from pipeline.catalog import Catalog
from pipeline.model import Author, AuthorKind, Environment, Part, Solution, Verifier
from pipeline.parts import verifier_slot
from tests.curation.audit.desk import DESK

BY_TEST = Author(AuthorKind.person, "test")


def put_desk(catalog: Catalog, name: str, verifiers: Iterable[Verifier], solutions: Iterable[Solution] = ()) -> None:
    """Put a desk with these verifiers and solutions."""
    put(catalog, name, DESK, verifiers, solutions)


def put(
    catalog: Catalog,
    name: str,
    environment: Environment,
    verifiers: Iterable[Verifier],
    solutions: Iterable[Solution],
) -> None:
    """Put an environment's parts under a name."""
    sample = [{"table_name": rows.table, "insert_statements": list(rows.inserts)} for rows in environment.sample]
    catalog.put(name, Part.schema, json.dumps({"tables": [asdict(t) for t in environment.schema]}), author=BY_TEST)
    catalog.put(name, Part.sample, json.dumps({"tables": sample}), author=BY_TEST)
    catalog.put(name, Part.tasks, json.dumps(environment.tasks), author=BY_TEST)
    catalog.put(name, Part.code, environment.code or "", author=BY_TEST)
    for one in verifiers:
        catalog.put(name, Part.verifier, one.code, slot=verifier_slot(one.task, one.mode), author=BY_TEST)
    for solution in solutions:
        content = {"calls": [asdict(call) for call in solution.calls], "answer": solution.answer}
        catalog.put(name, Part.solution, json.dumps(content), slot=str(solution.task), author=BY_TEST)
