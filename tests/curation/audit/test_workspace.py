"""Auditing a whole workspace: kept, taken again when nothing changed, made again when it did, stopped and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.audit.records import EnvironmentAudit
from curation.audit.trajectories import find_trajectories
from curation.audit.workspace import GUARD_AUTHOR, adopt_guards, audit_workspace
from pipeline.catalog import Catalog
from pipeline.model import Mode, Part
from pipeline.runtime.host import Host
from tests.curation.audit.desk import SOLUTIONS, verifier
from tests.curation.audit.runs import write_run
from tests.curation.audit.workspaces import BY_TEST, put_desk

LOOKS_AT_ONE_ROW = verifier(
    0,
    """
    state = lambda path: rows(path, "SELECT state FROM ticket WHERE number = 'T-11'")[0][0]
    good = state(initial) == "open" and state(final) == "closed"
""",
)


class CountingHost(Host):
    """A real host that counts the programs it loads."""

    loaded = 0

    def program(self, *args, **options):
        self.loaded += 1
        return super().program(*args, **options)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """Three desks: a sound verifier, a loose one, and one whose code does not load."""
    with Catalog.open(tmp_path / "catalog.db") as opened:
        put_desk(opened, "first", [verifier(0)], SOLUTIONS[:1])
        put_desk(opened, "second", [LOOKS_AT_ONE_ROW], SOLUTIONS[:1])
        put_desk(opened, "third", [verifier(0)], SOLUTIONS[:1])
        opened.put("third", Part.code, "import nothing_like_this", author=BY_TEST)
        yield opened


def audit(catalog: Catalog, **options) -> tuple[dict[str, EnvironmentAudit], int]:
    with CountingHost() as host:
        results = list(audit_workspace(catalog, catalog.names(), host, workers=2, **options))
        return {result.name: result for result in results}, host.loaded


def test_audits_are_kept_until_something_changes_and_the_worst_verdict_stands_beside_the_name(catalog: Catalog) -> None:
    results, loaded = audit(catalog)
    assert loaded == 5  # two desks at two times, and one that does not load
    verdicts = {name: result.verdict for name, result in results.items()}
    assert verdicts == {"first": "trusted", "second": "loose", "third": "unproven"}
    assert {row.name: row.audit for row in catalog.summaries()} == verdicts
    assert audit(catalog) == (results, 0)
    assert results["first"].verifiers[0].solutions == ("person test",)

    catalog.put("first", Part.verifier, LOOKS_AT_ONE_ROW.code, slot="0/code", author=BY_TEST)
    assert catalog.summary("first").audit == "stale"
    changed, loaded = audit(catalog)
    assert (loaded, changed["first"].verdict) == (2, "loose")

    catalog.put("first", Part.verifier, verifier(0).code, slot="0/code", author=BY_TEST)
    catalog.put("first", Part.verifier, LOOKS_AT_ONE_ROW.code, slot="0/code", author=BY_TEST)
    assert catalog.summary("first").audit == "stale"
    assert audit(catalog)[1] == 0  # changed and changed back
    assert catalog.summary("first").audit == "loose"


def test_an_audit_that_is_stopped_goes_on_where_it_was(catalog: Catalog) -> None:
    with CountingHost() as host:
        results = audit_workspace(catalog, catalog.names(), host, workers=1)
        next(results)
        results.close()
    kept = [name for name in catalog.names() if catalog.audit(name) is not None]
    assert kept
    loads = {"first": 2, "second": 2, "third": 1}
    _, loaded = audit(catalog)
    assert loaded == sum(count for name, count in loads.items() if name not in kept)


def test_a_trajectory_makes_an_audit_new_and_one_that_is_damaged_is_a_finding(catalog: Catalog, tmp_path: Path) -> None:
    before, _ = audit(catalog)
    final = tmp_path / "runs" / "task_0"
    with Host() as host, host.program(catalog.environment("first")) as program:
        from curation.audit.states import play

        write_run(final, program.template, play(program, SOLUTIONS[0].calls).final, name="first")
    runs = find_trajectories(tmp_path / "runs")
    after, loaded = audit(catalog, trajectories=runs)
    assert loaded == 2
    assert len(after["first"].verifiers[0].solutions) == 2
    assert after["second"] == before["second"]
    (final / "final.db").write_bytes(b"SQLite format 3\0 and then nothing")
    damaged, _ = audit(catalog, trajectories=runs)
    (finding,) = damaged["first"].findings
    assert finding.code == "trajectory_unreadable"
    assert damaged["first"].verdict == "trusted"


def test_adopting_guards_makes_new_versions_of_loose_verifiers_only(catalog: Catalog) -> None:
    assert adopt_guards(catalog, "second") == []  # it was never audited
    audit(catalog)
    assert adopt_guards(catalog, "first") == []
    (adopted,) = adopt_guards(catalog, "second")
    assert (adopted.task, adopted.mode) == (0, Mode.code)
    versions = catalog.versions("second", Part.verifier, "0/code")
    assert [version.author for version in versions] == [BY_TEST, GUARD_AUTHOR]
    results, _ = audit(catalog)
    assert results["second"].verdict == "trusted"


class StumblingHost(Host):
    """A real host that cannot load one environment, as on a machine whose disk is full."""

    def program(self, env, **options):
        if env.name == "second":
            raise OSError(28, "No space left on device")
        return super().program(env, **options)


def test_an_audit_that_fails_is_a_finding_which_is_not_kept_and_the_rest_goes_on(catalog: Catalog) -> None:
    with StumblingHost() as host:
        results = {result.name: result for result in audit_workspace(catalog, catalog.names(), host, workers=2)}
    (finding,) = results["second"].findings
    assert (finding.code, results["second"].verdict) == ("audit_failed", "unproven")
    assert "No space left on device" in finding.message
    assert catalog.audit("second") is None
    assert results["first"].verdict == "trusted"
    assert audit(catalog)[0]["second"].verdict == "loose"


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        ('return {"result": "complete" * 12_500_000}', "broken"),
        ('return "others" * 20_000_000', "broken"),
        ('raise ValueError("x" * 100_000_000)', "broken"),
    ],
    ids=["a verdict of 100 MB", "a string of 100 MB", "an error of 100 MB"],
)
def test_a_verifier_that_says_100_mb_is_judged_like_any_other_and_kept_short(
    catalog: Catalog, says: str, verdict: str
) -> None:
    code = f"def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    {says}\n"
    catalog.put("second", Part.verifier, code, slot="0/code", author=BY_TEST)
    with Host() as host:
        (result,) = audit_workspace(catalog, ["second"], host, workers=1)
    assert result.verdict == verdict
    kept = catalog.audit("second")
    assert kept is not None
    assert len(kept.document_json) < 100_000
