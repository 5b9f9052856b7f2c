"""What the audit says of verifiers that are right, and of each way in which one can be wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from curation.audit.environment import audit_environment
from curation.audit.records import EnvironmentAudit, VerifierAudit
from pipeline.findings import Finding
from pipeline.model import Call, Environment, Mode, Solution, Verifier
from pipeline.runtime.host import Host
from tests.curation.audit.desk import BODIES, DESK, HEAD, desk, sql_verifier, verifier


def audited(host: Host, one: Verifier, **parts) -> VerifierAudit:
    (found,) = audit_environment(desk(one, **parts), host).verifiers
    return found


def finding(audit: VerifierAudit, code: str) -> Finding:
    return next(found for found in audit.findings if found.code == code)


def test_verifiers_that_are_right_are_trusted(host: Host) -> None:
    audit = audit_environment(replace(DESK, verifiers=(*DESK.verifiers, *map(sql_verifier, range(4)))), host)
    assert [(one.task, one.mode.value, one.verdict, one.findings) for one in audit.verifiers] == [
        (task, mode, "trusted", ()) for task in range(4) for mode in ("code", "sql")
    ]
    assert audit.verdict == "trusted"
    assert [one.category for one in audit.verifiers[::2]] == ["write", "write", "read", "mixed"]
    assert {state.status for state in audit.tasks} == {"solvable"}
    assert EnvironmentAudit.from_json(audit.to_json()) == audit


def test_a_trusted_verifier_was_tried_on_every_kind_that_its_task_allows(host: Host) -> None:
    notes = audited(host, verifier(1))
    wrong = {"untouched", "untouched_answered", "emptied", "no_database", "value_off", "other_row", "row_missing"}
    right = {"reference", "ids", "rekey", "order", "time", "clock", "dates"}
    assert wrong | right | {"row_extra", "extra_change"} <= set(notes.tried)
    mixed = audited(host, verifier(3))
    assert {"no_answer", "wrong_answer", "answer_form", "other_row"} <= set(mixed.tried)
    assert notes.reads["note"] == ("body", "ticket_id")


LOOSE = {
    "accepts_untouched": (0, '    good = rows(final, TICKETS)[0][2] in ("open", "closed")\n'),
    "accepts_other_row": (
        0,
        "    good = sum(r[2] == 'closed' for r in rows(final, TICKETS)) == 1\n"
        '    good = good and unchanged(initial, final, "agent", "note")\n',
    ),
    "accepts_too_many": (0, '    good = rows(final, TICKETS)[0][2] == "closed"\n'),
    "accepts_wrong_value": (
        1,
        "    good = len(rows(final, NOTES)) == len(rows(initial, NOTES)) + 2\n"
        '    good = good and unchanged(initial, final, "agent", "ticket", "log")\n',
    ),
    "accepts_too_few": (1, '    good = ("T-12", "Bulb ordered") in rows(final, NOTES)\n'),
    "accepts_extra_change": (
        1,
        '    new = [("T-12", "Bulb ordered"), ("T-12", "Owner told")]\n'
        "    good = rows(final, NOTES) == sorted(rows(initial, NOTES) + new)\n",
    ),
    "accepts_collateral": (
        1,
        '    sql = "SELECT body FROM note ORDER BY body"\n'
        '    good = rows(final, sql) == sorted(rows(initial, sql) + [("Bulb ordered",), ("Owner told",)])\n',
    ),
    "accepts_no_answer": (3, BODIES[3].removesuffix(' and named == ["desk"]\n') + "\n"),
    "accepts_wrong_answer": (2, BODIES[2].replace('== ["2"]', "!= []")),
    "accepts_empty_database": (
        0,
        "    now = rows(final, \"SELECT state FROM ticket WHERE number = 'T-11'\")\n"
        "    good = not now or now == [('closed',)]\n",
    ),
}


@pytest.fixture(scope="module")
def faulty(host: Host) -> dict[str, VerifierAudit]:
    """One audit of all verifiers that have a fault, by the finding each of them must get."""
    faults = {**LOOSE, **STRICT, "hard_coded_id": HARD_CODED, **{code: (0, body) for code, body in BROKEN.items()}}
    in_order = sorted(faults, key=lambda code: faults[code][0])
    audit = audit_environment(desk(*(verifier(*faults[code]) for code in in_order)), host)
    return dict(zip(in_order, audit.verifiers, strict=True))


@pytest.mark.parametrize("code", LOOSE)
def test_a_verifier_that_accepts_something_wrong_is_loose_with_what_it_accepted_as_evidence(
    faulty: dict[str, VerifierAudit], code: str
) -> None:
    task, _ = LOOSE[code]
    audit = faulty[code]
    assert audit.verdict == "loose"
    found = finding(audit, code)
    assert found.tasks == (task,)
    assert "→ complete" in found.evidence
    assert audit.rate(right=False).failed > 0


STRICT = {
    "rejects_solution": (0, BODIES[0].replace('"T-11"', '"T-14"')),
    "rejects_answer_form": (
        3,
        '    good = rows(final, TICKETS) == closed(initial, "T-13") and final_answer == "Desk"\n'
        '    good = good and unchanged(initial, final, "agent", "note")\n',
    ),
    "rejects_other_order": (
        1,
        BODIES[1]
        + "    made = [r[0] for r in rows(final, 'SELECT body FROM note ORDER BY id')][-2:]\n"
        + "    good = good and made == ['Bulb ordered', 'Owner told']\n",
    ),
    "depends_on_clock": (
        0,
        BODIES[0] + "    import datetime\n    good = good and datetime.date.today().year == 2026\n",
    ),
    "rejects_other_time": (
        1,
        BODIES[1] + "    good = good and '12:00' in str(rows(final, 'SELECT max(at) FROM note'))\n",
    ),
}


HARD_CODED = (
    1,
    BODIES[1] + "    good = good and rows(final, 'SELECT body FROM note WHERE id = 3') == [('Bulb ordered',)]\n",
)
BROKEN = {
    "verifier_fails": "    good = 1 / 0\n",
    "insensitive": "    rows(final, TICKETS)\n    good = True\n",
    "not_repeatable": BODIES[0]
    + "    import json\n    json.asked = getattr(json, 'asked', 0) + 1\n    good = good and json.asked > 3\n",
}


@pytest.mark.parametrize("code", STRICT)
def test_a_verifier_that_rejects_something_right_is_strict_with_what_it_rejected_as_evidence(
    faulty: dict[str, VerifierAudit], code: str
) -> None:
    audit = faulty[code]
    assert audit.verdict == "strict"
    assert "→ others" in finding(audit, code).evidence


def test_ids_that_the_tools_hand_out_must_not_be_known_to_the_verifier(faulty: dict[str, VerifierAudit]) -> None:
    audit = faulty["hard_coded_id"]
    assert (audit.verdict, audit.failed["ids"]) == ("strict", 1)
    assert "WHERE id = 3" in finding(audit, "hard_coded_id").evidence


@pytest.mark.parametrize("code", BROKEN)
def test_a_verifier_that_cannot_judge_or_does_not_keep_to_its_word_is_broken(
    faulty: dict[str, VerifierAudit], code: str
) -> None:
    assert faulty[code].verdict == "broken"
    assert finding(faulty[code], code).severity == "error"


def test_what_hangs_is_a_finding_and_the_other_verifiers_are_audited(host: Host) -> None:
    hangs = verifier(0, "    while True: pass\n")
    first, second = audit_environment(desk(hangs, verifier(1)), host).verifiers
    assert (first.verdict, second.verdict) == ("broken", "trusted")
    assert "3 s" in finding(first, "verifier_fails").evidence
    assert sum(first.tried.values()) == 1  # it was not waited for again


def test_a_verdict_of_100_mb_is_a_finding(host: Host) -> None:
    source = 'def verify_task_completion(initial, final):\n    return {"result": "x" * 100_000_000}\n'
    audit = audited(host, Verifier(0, Mode.code, source))
    assert audit.verdict == "broken"


def test_without_a_known_solution_a_verifier_is_unproven_unless_it_accepts_doing_nothing(host: Host) -> None:
    sound, loose = audit_environment(
        desk(verifier(0), verifier(1, '    good = rows(final, TICKETS)[0][2] == "open"\n'), solutions=()), host
    ).verifiers
    assert (sound.verdict, sound.why) == ("unproven", "no known solution")
    assert loose.verdict == "loose"


def test_evidence_that_needs_a_judge_is_unproven_unless_nothing_changes_it(host: Host) -> None:
    looks = 'def verify_task(a, b):\n    import sqlite3\n    return {"n": str(sqlite3.connect(b).execute("%s").fetchall())}\n'
    tickets, nothing = audit_environment(
        desk(
            Verifier(0, Mode.sql, looks % "SELECT * FROM ticket"),
            Verifier(1, Mode.sql, looks % "SELECT 1"),
        ),
        host,
    ).verifiers
    assert (tickets.verdict, tickets.why) == ("unproven", "its evidence needs a judge")
    assert (nothing.verdict, finding(nothing, "insensitive").code) == ("broken", "insensitive")


def test_a_solution_that_does_not_run_proves_nothing_and_blocks_its_task(host: Host) -> None:
    wrong = Solution(0, (Call("close_ticket", {"ticket_id": 99}),))
    audit = audit_environment(desk(verifier(0), solutions=(wrong,)), host)
    (problem,) = audit.findings
    assert (problem.code, problem.tasks) == ("solution_fails", (0,))
    assert "no such ticket" in problem.evidence
    assert audit.verifiers[0].verdict == "unproven"
    assert (audit.tasks[0].status, audit.tasks[1].status) == ("blocked", "unproven")


@pytest.mark.parametrize("code", [None, "import nothing_like_this", "while True: pass"], ids=["none", "fails", "hangs"])
def test_an_environment_whose_code_does_not_run_leaves_its_verifiers_unproven(code: str | None) -> None:
    from pipeline.runtime.limits import Limits

    with Host(limits=Limits(load_timeout_s=2, verify_timeout_s=2)) as quick:
        audit = audit_environment(desk(verifier(0), code=code), quick)
    assert audit.verifiers[0].verdict == "unproven"
    assert audit.tasks[0].status == ("unproven" if code is None else "blocked")


def test_an_environment_without_anything_has_no_verdict(host: Host) -> None:
    audit = audit_environment(Environment("empty"), host)
    assert (audit.verdict, audit.verifiers, audit.tasks) == (None, (), ())


def test_both_modes_are_compared_on_states_whose_verdict_is_known(host: Host) -> None:
    loose = verifier(0, LOOSE["accepts_too_many"][1])
    audit = audit_environment(desk(loose, sql_verifier(0)), host)
    (compared,) = audit.disagreements
    assert compared.counts["complete/complete/complete"] >= 3
    assert compared.counts["others/complete/others"] >= 1
    assert "others/others/complete" not in compared.counts


def test_the_line_of_a_finding_points_into_the_verifier(faulty: dict[str, VerifierAudit]) -> None:
    audit = faulty["depends_on_clock"]
    assert "datetime.date.today()" in finding(audit, "depends_on_clock").evidence
    assert HEAD.count("\n") < int(finding(audit, "reads_clock").evidence.split(":")[0].removeprefix("line "))
