"""What needs a person, what the person decides, and what follows from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.audit.records import EnvironmentAudit, TaskState, VerifierAudit
from curation.audit.verdicts import Verdict
from curation.checks.environment import CheckResult
from curation.review import Decision, Entry, counting, decide, entries, queue, settle
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Author, AuthorKind, Mode, Part

BY_TEST = Author(AuthorKind.person, "test")
LOST = Finding("insert_failed", "error", "sample: note", "a row is lost", evidence="INSERT …", tasks=(0,))
EMPTY = Finding("table_empty", "warn", "sample: log", "1 table has no rows")
MOVING = Finding("relative_dates", "info", "sample", "rows use the current time")


def audited(task: int, verdict: Verdict, why: str = "", *findings: Finding) -> VerifierAudit:
    tried = {"untouched": 4}
    return VerifierAudit(
        "shop", None, task, Mode.code, verdict, why, None, None, (), tried, {"untouched": 1}, {}, None, findings
    )  # fmt: skip


def put_check(catalog: Catalog, *findings: Finding, name: str = "shop") -> None:
    severities = {finding.severity for finding in findings}
    status = "fail" if "error" in severities else "warn" if "warn" in severities else "pass"
    result = CheckResult(name, status, 1, 1, 1, findings)
    catalog.set_check(name, status, json.dumps(result.document()), "key")
    settle(catalog, name)


def put_audit(catalog: Catalog, *verifiers: VerifierAudit) -> None:
    audit = EnvironmentAudit("shop", verifiers, tuple(TaskState(one.task, "unproven", "") for one in verifiers))
    catalog.set_audit("shop", audit.verdict, audit.to_json(), "key")
    settle(catalog, "shop")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.db") as opened:
        for name in ("shop", "zoo"):
            opened.put(name, Part.tasks, '["Do it.", "Undo it."]', author=BY_TEST)
        yield opened


def one(catalog: Catalog, code: str) -> Entry:
    return next(entry for entry in entries(catalog, "shop") if entry.item.code == code)


def say(catalog: Catalog, code: str, decision: Decision, reason: str = "") -> None:
    decide(catalog, "shop", one(catalog, code).item.key, decision, reviewer="ada", reason=reason)


def test_errors_come_before_warnings_and_remarks_not_at_all(catalog: Catalog) -> None:
    put_check(catalog, EMPTY, MOVING)
    put_check(catalog, LOST, name="zoo")
    assert [(entry.item.environment, entry.item.code) for entry in queue(catalog)] == [
        ("zoo", "insert_failed"),
        ("shop", "table_empty"),
    ]
    assert all(entry.is_open for entry in queue(catalog))


def test_verifiers_that_are_not_trusted_are_items_and_unproven_ones_share_one(catalog: Catalog) -> None:
    accepts = Finding("accepts_untouched", "error", "verifier: task 1, code mode", "accepts", evidence="no answer")
    put_audit(
        catalog,
        audited(0, "trusted"),
        audited(1, "loose", "accepted: nothing was done", accepts),
        audited(2, "unproven", "no known solution"),
        audited(3, "unproven", "no known solution"),
    )
    loose, unproven = (entry.item for entry in queue(catalog))
    assert (loose.code, loose.where, loose.severity) == ("loose", "verifier: task 1, code mode", "error")
    assert "no answer" in loose.evidence
    assert unproven.message == "2 verifiers are unproven: no known solution"
    assert unproven.evidence == "task 2 code, task 3 code"
    assert "save the calls" in unproven.remedy


def test_a_waiver_needs_a_reason_and_says_who_and_when(catalog: Catalog) -> None:
    put_check(catalog, LOST)
    with pytest.raises(UserError, match="needs a reason"):
        say(catalog, "insert_failed", Decision.waive)
    say(catalog, "insert_failed", Decision.waive, "no task needs the row")
    document = one(catalog, "insert_failed").document()
    assert (document["decision"], document["reason"], document["reviewer"]) == (
        "waive",
        "no task needs the row",
        "ada",
    )
    assert document["date"] is not None


def test_what_is_waived_or_accepted_does_not_count_and_what_is_to_be_fixed_does(catalog: Catalog) -> None:
    put_check(catalog, LOST, EMPTY)
    say(catalog, "insert_failed", Decision.fix)
    assert (catalog.summary("shop").check, catalog.summary("shop").review) == ("fail", "fix")
    assert one(catalog, "insert_failed").is_open
    say(catalog, "insert_failed", Decision.waive, "no task needs it")
    assert (catalog.summary("shop").check, catalog.summary("shop").review) == ("warn", "waive")
    assert [finding.code for finding in counting(catalog, "shop")] == ["table_empty"]
    say(catalog, "table_empty", Decision.accept)
    assert (catalog.summary("shop").check, catalog.summary("shop").review) == ("waived", "waive")
    say(catalog, "insert_failed", Decision.reopen)
    assert (catalog.summary("shop").check, catalog.summary("shop").review) == ("fail", "accept")


def test_a_waived_verifier_leaves_the_verdict_to_the_others(catalog: Catalog) -> None:
    loose, strict = audited(0, "loose", "accepted: a value off"), audited(1, "strict", "rejected: another order")
    put_audit(catalog, loose, strict, audited(2, "trusted"), audited(3, "unproven", "no known solution"))
    assert catalog.summary("shop").audit == "loose"
    say(catalog, "loose", Decision.waive, "used for practice only")
    assert catalog.summary("shop").audit == "strict"
    say(catalog, "strict", Decision.accept)
    assert catalog.summary("shop").audit == "unproven"
    say(catalog, "unproven", Decision.accept)
    assert catalog.summary("shop").audit == "waived"


def test_a_waiver_holds_for_what_was_seen_and_for_nothing_else(catalog: Catalog) -> None:
    put_check(catalog, LOST)
    say(catalog, "insert_failed", Decision.waive, "no task needs it")
    put_check(catalog, LOST)
    assert catalog.summary("shop").check == "waived"
    another = Finding("insert_failed", "error", "sample: note", "a row is lost", evidence="INSERT another", tasks=(0,))
    put_check(catalog, another)
    assert catalog.summary("shop").check == "fail"
    assert one(catalog, "insert_failed").is_open


def test_a_stale_check_stays_stale_whatever_is_decided(catalog: Catalog) -> None:
    put_check(catalog, LOST)
    catalog.put("shop", Part.tasks, '["Do something else."]', author=BY_TEST)
    say(catalog, "insert_failed", Decision.drop)
    assert (catalog.summary("shop").check, catalog.summary("shop").review) == ("stale", "drop")


def test_a_key_may_be_short_as_long_as_it_names_one_item(catalog: Catalog) -> None:
    put_check(catalog, LOST, EMPTY)
    key = one(catalog, "table_empty").item.key
    assert decide(catalog, "Shop", key[:6], Decision.accept, reviewer="ada").code == "table_empty"
    for unclear in ("", "xyz"):
        with pytest.raises(UserError, match="awm-studio review shop"):
            decide(catalog, "shop", unclear, Decision.accept, reviewer="ada")
