"""Guards: a verifier with one says what it said before, unless more changed than a known solution changes."""

from __future__ import annotations

import pytest

from curation.audit.environment import audit_environment
from curation.audit.guard import MARK, footprint, guarded
from curation.audit.subject import differences
from pipeline.model import Mode, Verifier
from pipeline.runtime.edits import Edit
from pipeline.runtime.host import Host
from tests.curation.audit.desk import DESK, desk, sql_verifier, verifier

CLOSES_T_11 = {
    "ticket": {"added": 0, "removed": 0, "changed": 1, "columns": ["state"]},
    "log": {"added": 1, "removed": 0, "changed": 0, "columns": []},
}
LOOKS_AT_ONE_ROW = """
    state = lambda path: rows(path, "SELECT state FROM ticket WHERE number = 'T-11'")[0][0]
    good = state(initial) == "open" and state(final) == "closed"
"""


def test_a_footprint_is_the_most_that_any_solution_changes() -> None:
    one = {"ticket": {"added": [], "removed": [], "changed": [{"before": {"state": 1}, "after": {"state": 2}}]}}
    two = {
        "ticket": {"added": [{}, {}], "removed": [{}], "changed": []},
        "log": {"added": [{}], "removed": [], "changed": []},
    }
    assert footprint([one, two]) == {
        "ticket": {"added": 2, "removed": 1, "changed": 1, "columns": ["state"]},
        "log": {"added": 1, "removed": 0, "changed": 0, "columns": []},
    }


def test_a_loose_verifier_is_trusted_once_it_has_the_guard_that_its_audit_offers(host: Host) -> None:
    loose = verifier(0, LOOKS_AT_ONE_ROW)
    (before,) = audit_environment(desk(loose), host).verifiers
    assert (before.verdict, before.wants_guard, before.may_change) == ("loose", True, CLOSES_T_11)
    code = guarded(loose.code, Mode.code, before.may_change)
    assert code is not None and code.startswith(loose.code.rstrip("\n"))
    (after,) = audit_environment(desk(Verifier(0, Mode.code, code)), host).verifiers
    assert after.verdict == "trusted"


@pytest.mark.parametrize(
    ("edit", "allowed"),
    [
        (Edit("ticket", {"id": 11}, {"state": "closed"}), True),
        (Edit("ticket", {"id": 11}, {"state": "closed", "title": "Light"}), False),
        (Edit("ticket", {}, {"state": "closed"}), False),
        (Edit("note", {"id": 1}, {"body": "Gone"}), False),
        (Edit("note", {}, None), False),
        (Edit("agent", None, {"id": 9, "name": "Uwe"}), False),
        (Edit("log", None, {"id": 9, "said": "closed one"}), True),
    ],
)
def test_a_guard_allows_what_the_solution_changes_and_nothing_else(host: Host, edit: Edit, allowed: bool) -> None:
    says_yes = Verifier(
        0, Mode.code, 'def verify_task_completion(initial, final):\n    return {"result": "complete"}\n'
    )
    code = guarded(says_yes.code, Mode.code, CLOSES_T_11)
    assert code is not None
    initial = host.build(DESK).snapshot
    (final,) = host.edit(initial, [[edit]])
    assert final is not None and differences(initial, final)
    verdict = host.verify(Verifier(0, Mode.code, code), initial, final)
    assert verdict.verdict == ("complete" if allowed else "others"), verdict.error


@pytest.mark.parametrize(
    "signature",
    [
        "verify_task_completion(initial_db_path, final_db_path, final_answer=None)",
        "verify_task_completion(final_answer, after, before)",
        "verify_task_completion(first, second, /)",
        "verify_task_completion(*, final_db, initial_db, answer='')",
        "verify_task_completion(*paths)",
        "verify_ticket(a, b, **options)",
    ],
)
def test_a_guard_fits_any_signature_that_the_runtime_takes(host: Host, signature: str) -> None:
    code = guarded(f'def {signature}:\n    return {{"result": "complete"}}\n', Mode.code, {})
    assert code is not None
    snapshot = host.build(DESK).snapshot
    (other,) = host.edit(snapshot, [[Edit("note", {}, None)]])
    assert other is not None
    judge = Verifier(0, Mode.code, code)
    assert host.verify(judge, snapshot, snapshot).verdict == "complete"
    assert host.verify(judge, snapshot, other).verdict == "others"


def test_a_guard_in_sql_mode_adds_to_the_evidence(host: Host) -> None:
    code = guarded(sql_verifier(0).code, Mode.sql, CLOSES_T_11)
    assert code is not None
    snapshot = host.build(DESK).snapshot
    (final,) = host.edit(snapshot, [[Edit("note", {}, None)]])
    assert final is not None
    verdict = host.verify(Verifier(0, Mode.sql, code), snapshot, final)
    assert verdict.evidence == {"holds": False, "changed_beyond": ["note"]}


def test_a_guard_replaces_the_one_before_and_what_cannot_be_guarded_is_left_alone() -> None:
    once = guarded(verifier(0).code, Mode.code, {})
    assert once is not None
    twice = guarded(once, Mode.code, CLOSES_T_11)
    assert twice is not None and twice.count(MARK) == 1 and "'state'" in twice
    assert guarded(twice, Mode.code, {}) == once
    assert guarded("def verify_task_completion(:", Mode.code, {}) is None
    assert guarded("def check(a, b): return {}", Mode.code, {}) is None
    assert guarded("def verify_task_completion(only): return {}", Mode.code, {}) is None
