"""The probes of one verifier, made again for a person to look at."""

from __future__ import annotations

import pytest

from curation.audit.environment import audit_environment
from curation.audit.probes import probe_verifier, statement_line
from pipeline.errors import UserError
from pipeline.model import Mode
from pipeline.runtime.host import Host
from tests.curation.audit.desk import SOLUTIONS, desk, sql_verifier, verifier

LOOSE = verifier(0, '    good = rows(final, TICKETS)[0][2] == "closed"\n')


def test_they_are_what_the_audit_counted(host: Host) -> None:
    for one in (verifier(0), LOOSE, sql_verifier(0), verifier(1)):
        environment = desk(one, solutions=SOLUTIONS[:2])
        audit = next(found for found in audit_environment(environment, host).verifiers if found.task == one.task)
        probes = probe_verifier(environment, host, one.task, one.mode).probes
        failed = {probe.outcome.trial.kind for probe in probes if probe.failed}
        assert failed == set(audit.failed)
        assert {probe.outcome.trial.kind for probe in probes} >= set(audit.tried)


def test_a_false_accept_is_shown_with_what_was_changed_and_never_looked_at(host: Host) -> None:
    found = probe_verifier(desk(LOOSE, solutions=SOLUTIONS[:1]), host, 0, Mode.code, source="person ada")
    assert found.source == "person ada"
    assert found.calls == SOLUTIONS[0].calls
    emptied = next(probe for probe in found.probes if probe.outcome.trial.kind == "collateral")
    assert emptied.failed
    assert not emptied.right
    assert emptied.verdict.verdict == "complete"
    changed = found.from_solution(emptied)
    assert changed.keys() == {"note"}
    assert [row["body"] for row in changed["note"]["removed"]] == ["Arrived", "Asked for a price"]
    assert found.never_read(changed, emptied) == ["note"]
    assert emptied.changes().keys() == {"ticket", "note", "log"}


def test_without_a_known_solution_there_are_those_that_need_none(host: Host) -> None:
    found = probe_verifier(desk(verifier(0), solutions=()), host, 0, Mode.code)
    assert {probe.outcome.trial.kind for probe in found.probes} == {"untouched", "emptied", "no_database"}
    assert (found.calls, found.source, found.from_solution(found.probes[0])) == ((), "", {})


def test_a_verifier_that_is_not_there_is_said(host: Host) -> None:
    with pytest.raises(UserError, match="no verifier of task 3 in sql mode"):
        probe_verifier(desk(verifier(0)), host, 3, Mode.sql)


CODE = """
ALL = "SELECT * FROM note"

def verify(initial, final):
    one = query(final, '''
        SELECT id
        FROM ticket''')
    return query(final, f"SELECT {one} FROM {ALL} WHERE x")
"""


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT * FROM note", 2),
        ("\n        SELECT id\n        FROM ticket", 5),
        ("SELECT 7 FROM tables WHERE x", 8),
        ("DELETE FROM note", None),
    ],
)
def test_a_statement_leads_to_its_line(sql: str, line: int | None) -> None:
    assert statement_line(CODE, sql) == line
    assert statement_line("def (", sql) is None
