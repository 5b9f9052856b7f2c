"""Rules read from the text of tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.rules.quotes import quotes
from pipeline.rules.tasks import sentences, task_findings

GOOD = 'Move the card "Paint the fence" from list "Doing" to list "Done" and add the comment "It was. Quite. A job!".'


def codes(*tasks: str, count: int | None = None) -> list[str]:
    return [finding.code for finding in task_findings(tasks, count=len(tasks) if count is None else count)]


def test_a_good_task_has_no_findings():
    assert codes(GOOD) == []


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ("Log in and list my orders.", "task_signs_in"),
        ('Change my password to "x1".', "task_signs_in"),
        ('Click the "Save" button of my profile.', "task_needs_screen"),
        ("Upload a photo of the receipt to expense 12.", "task_needs_file"),
        ("Export all orders as a CSV.", "task_needs_file"),
        ("Cancel the booking found in the previous search.", "task_hidden_context"),
        ("Then archive the project.", "task_hidden_context"),
        ('Create a list named "A". Add three cards to it.', "task_not_one_sentence"),
        ("", "task_empty"),
    ],
)
def test_what_an_agent_cannot_do_or_know_is_found(task: str, code: str):
    assert codes(task) == [code]


@pytest.mark.parametrize(
    "task",
    [
        'Add the comment "Please log in and click the button" to card 12.',  # quoted, so data
        "Attach an image with metadata (a.png, 12 KB) to listing 7 and open the image record.",
        "Send Dr. Maya Chen the report of St. Mary's for Q3 vs. Q2.",
    ],
)
def test_what_only_looks_like_it_is_not(task: str):
    assert codes(task) == []


def test_too_few_and_repeated_tasks_are_found():
    assert codes(GOOD, count=10) == ["task_count"]
    assert codes(GOOD, GOOD.replace("card", "Card"), count=2) == ["task_repeated"]
    assert codes('Show order "A-1".', 'Cancel invoice "B-2" of customer "Lee".', count=2) == []


def test_abbreviations_end_no_sentence():
    assert sentences("Ask Dr. Chen and Mr. Lee.") == 1
    assert sentences("Ask them. Then go.") == 2


@pytest.mark.parametrize(
    ("task", "made", "used"),
    [
        ('Create a zone named "North Yard".', ["North Yard"], []),
        ("Create a coupon code 'SPRING20' that gives 20% off.", ["SPRING20"], []),
        ('Create a cycle for the program "STEM Grant" named "Fall 2026".', ["Fall 2026"], ["STEM Grant"]),
        ('Post an update on "Maya’s Recovery" with the title "Surgery".', ["Surgery"], ["Maya’s Recovery"]),
        ('Update my campaign "Help Maya" by setting the note to "Thanks".', [], ["Help Maya"]),
        ("For order ID 90517, change the status from 'manual' to 'fulfilled'.", [], ["90517", "manual"]),
        ('Assign driver "Miguel R." to order "BB-10482" at "14:10".', [], ["Miguel R.", "BB-10482"]),
        ("Say 'I don't know' to the client.", [], []),
    ],
)
def test_quoted_names_are_told_apart_by_the_words_around_them(task: str, made: list[str], used: list[str]):
    found = list(quotes(task))
    assert [quote.text for quote in found if quote.role == "made"] == made
    assert [quote.text for quote in found if quote.role == "used"] == used


def test_real_tasks_pass_but_for_the_one_that_exports_a_file(awm_real: Path):
    rows = [json.loads(line) for line in (awm_real / "gen_tasks.jsonl").read_text().splitlines()]
    found = [finding for row in rows for finding in task_findings(row["tasks"], count=10)]
    assert [(finding.code, finding.evidence) for finding in found] == [("task_needs_file", "export")]
