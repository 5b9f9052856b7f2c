"""Values that CHECK lists allow, and those that the application stores and looks for."""

from __future__ import annotations

import pytest

from pipeline.model import TableSchema
from pipeline.rules.values import allowed_values, value_findings

TICKET = TableSchema(
    "ticket",
    "CREATE TABLE ticket (id INTEGER PRIMARY KEY, title TEXT, "
    "state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'in_progress', 'won''t fix')))",
)
CODE = """
class Ticket(Base):
    __tablename__ = "ticket"

class Shown(BaseModel):
    state: str

def handler(session, ticket):
    {line}
"""


def found(line: str, *tables: TableSchema) -> list[tuple[str, str]]:
    findings = value_findings(tables or (TICKET,), CODE.format(line=line))
    return [(finding.where, finding.message) for finding in findings]


def test_lists_are_read_with_their_apostrophes() -> None:
    assert allowed_values([TICKET]) == {"state": {"open", "in_progress", "won't fix"}}


@pytest.mark.parametrize(
    "line", ['ticket.state = "Open"', 'Ticket(title="Lamp", state="Open")', 'session.query(Ticket.state == "Open")']
)
def test_a_value_in_another_spelling_is_told_with_its_line_and_the_right_one(line: str) -> None:
    ((where, message),) = found(line)
    assert where == "code:9"
    assert "'Open' for state" in message
    assert "spelled 'open' there" in message


def test_a_value_that_is_not_listed_at_all_is_told() -> None:
    ((_, message),) = found('ticket.state = "closed"')
    assert "'closed'" in message
    assert "spelled" not in message


@pytest.mark.parametrize(
    "line",
    [
        'ticket.state = "in_progress"',
        'ticket.state = "won\'t fix"',
        'ticket.title = "Open"',
        'Shown(state="Open")',
        "ticket.state = body.state",
        'return {"state": "Open"}',
        "return (",
    ],
)
def test_what_is_listed_or_is_no_column_is_fine(line: str) -> None:
    assert found(line) == []


def test_a_column_that_another_table_leaves_open_is_not_judged() -> None:
    note = TableSchema("note", "CREATE TABLE note (id INTEGER PRIMARY KEY, state TEXT)")
    assert found('ticket.state = "Open"', TICKET, note) == []
