"""Checking a whole workspace: results are kept, taken again when nothing changed, and made again when it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from curation.checks.workspace import check_workspace, summary
from curation.review import Decision, decide, entries
from pipeline.catalog import Catalog
from pipeline.model import Author, AuthorKind, Part
from pipeline.runtime.host import Host
from pipeline.runtime.limits import Limits
from tests.curation.checks.conftest import CODE, VERIFIER

BY_TEST = Author(AuthorKind.person, "test")
SCHEMA = """{"tables": [
  {"name": "ticket", "ddl": "CREATE TABLE ticket(id INTEGER PRIMARY KEY, title TEXT NOT NULL);", "indexes": []},
  {"name": "note", "ddl": "CREATE TABLE note(id INTEGER PRIMARY KEY, ticket_id INTEGER, body TEXT, at DATETIME);"}
]}"""
SAMPLE = """{"tables": [
  {"table_name": "ticket", "insert_statements": ["INSERT INTO ticket VALUES (7, 'Lamp')"]},
  {"table_name": "note", "insert_statements": ["INSERT INTO note VALUES (1, 7, 'Arrived', NULL)"]}
]}"""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """Three helpdesks, of which the second has code that does not load."""
    with Catalog.open(tmp_path / "catalog.db") as opened:
        for name in ("first", "second", "third"):
            opened.put(name, Part.schema, SCHEMA, author=BY_TEST)
            opened.put(name, Part.sample, SAMPLE, author=BY_TEST)
            opened.put(name, Part.code, "import nothing_like_this" if name == "second" else CODE, author=BY_TEST)
            opened.put(name, Part.verifier, VERIFIER, slot="0/code", author=BY_TEST)
        yield opened


class CountingHost(Host):
    """A real host that counts what it is asked to build."""

    built = 0

    def build(self, *args, **options):
        self.built += 1
        return super().build(*args, **options)


def check(catalog: Catalog, **options) -> tuple[dict[str, str], int]:
    with CountingHost() as host:
        results = list(check_workspace(catalog, catalog.names(), host, workers=2, **options))
        return {result.name: result.status for result in results}, host.built


def test_every_environment_is_checked_once_and_not_again_while_nothing_changes(catalog: Catalog) -> None:
    statuses, built = check(catalog)
    assert (statuses["second"], built) == ("fail", 3)
    assert {s.name: s.check for s in catalog.summaries()} == statuses
    assert check(catalog) == (statuses, 0)
    assert check(catalog, again=True) == (statuses, 3)


def test_what_was_changed_is_checked_again(catalog: Catalog) -> None:
    before, _ = check(catalog)
    catalog.put("second", Part.code, CODE, author=BY_TEST)
    after, built = check(catalog)
    assert built == 1
    assert after == {**before, "second": before["first"]}


def test_a_check_that_is_stopped_goes_on_where_it_was(catalog: Catalog) -> None:
    with CountingHost() as host:
        results = check_workspace(catalog, catalog.names(), host, workers=1)
        next(results)
        results.close()
        done = host.built
    kept = sum(catalog.check(name) is not None for name in catalog.names())
    assert kept >= 1
    _, built = check(catalog)
    assert built == 3 - kept
    assert done <= 3


def test_the_summary_counts_environments_findings_and_tasks_at_risk(catalog: Catalog) -> None:
    with Host() as host:
        results = list(check_workspace(catalog, catalog.names(), host, workers=2))
    totals = summary(results)
    assert totals["environments"] == 3
    assert sum(totals["status"].values()) == 3
    assert totals["status"]["fail"] == 1
    assert totals["findings"]["part_missing"]["environments"] == 3
    with_task = [
        replace(results[0], findings=tuple(replace(f, severity="error", tasks=(4,)) for f in results[0].findings))
    ]
    assert summary(with_task)["tasks_at_risk"] == 1


class StumblingHost(Host):
    """A real host that cannot build one environment, as on a machine whose disk is full."""

    def build(self, env, **options):
        if env.name == "second":
            raise OSError(28, "No space left on device")
        return super().build(env, **options)


def test_an_environment_that_cannot_be_checked_is_a_finding_which_is_not_kept_and_the_rest_goes_on(
    catalog: Catalog,
) -> None:
    with StumblingHost() as host:
        results = {result.name: result for result in check_workspace(catalog, catalog.names(), host, workers=2)}
    (finding,) = results["second"].findings
    assert (finding.code, results["second"].status) == ("cannot_be_checked", "fail")
    assert "No space left on device" in finding.message
    assert catalog.check("second") is None
    assert catalog.check("first") is not None
    assert check(catalog)[1] == 1  # it is tried again, the others are not


HANGS = "while True: pass"
DIES = "import ctypes; ctypes.string_at(0)"
FILLS_MEMORY = "held = [bytearray(1 << 20) for _ in range(1 << 20)]"


@pytest.mark.parametrize("code", [HANGS, DIES, FILLS_MEMORY], ids=["hangs", "kills its worker", "fills the memory"])
def test_code_that_takes_its_worker_along_is_a_finding_and_the_rest_goes_on(catalog: Catalog, code: str) -> None:
    catalog.put("second", Part.code, code, author=BY_TEST)
    with Host(limits=Limits(load_timeout_s=3, memory_mb=256)) as host:
        results = {result.name: result for result in check_workspace(catalog, catalog.names(), host, workers=2)}
    worst = results["second"].findings[0]
    assert (results["second"].status, worst.severity) == ("fail", "error")
    assert results["first"].status == results["third"].status == "warn"


def test_what_was_changed_and_changed_back_is_not_stale_any_more(catalog: Catalog) -> None:
    before, _ = check(catalog)
    catalog.put("second", Part.code, CODE, author=BY_TEST)
    catalog.put("second", Part.code, "import nothing_like_this", author=BY_TEST)
    assert catalog.summary("second").check == "stale"
    assert check(catalog) == (before, 0)
    assert catalog.summary("second").check == "fail"


def test_a_solution_that_comes_later_needs_no_other_check(catalog: Catalog) -> None:
    before, _ = check(catalog)
    catalog.put("second", Part.solution, '{"calls": [], "answer": "2"}', slot="0", author=BY_TEST)
    assert check(catalog) == (before, 0)


def test_a_waiver_still_holds_when_the_same_is_found_again(catalog: Catalog) -> None:
    check(catalog)
    for entry in entries(catalog, "second"):
        decide(catalog, "second", entry.item.key, Decision.waive, reviewer="ada", reason="not used")
    assert catalog.summary("second").check == "waived"
    statuses, _ = check(catalog, again=True)
    assert statuses["second"] == "fail", "what is found is told as it is"
    assert catalog.summary("second").check == "waived"
