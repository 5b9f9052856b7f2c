"""What verifiers are tried on: the kinds of states that are wrong and of those that are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.findings import Severity

Category = Literal["read", "write", "mixed"]
"""What a task wants: an answer, a change, or both."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of trial, and the finding where the verifier fails it.

    `right` is what a sound verifier says: complete or not. `title` names the kind in reports, `code` the finding.
    """

    title: str
    right: bool
    code: str
    severity: Severity
    message: str
    remedy: str


_COMPARE = "make it compare the final state with the initial one, or check the answer"
_EXACT = "make it check this too"
_GUARD = "adopt the guard (awm-studio audit --guard), which allows no other changes than those of the known solution"
_MEANING = "make it find rows by what they mean, as the task does, not by ids"

KINDS: Mapping[str, Kind] = {
    "untouched": Kind(
        "nothing was done", False, "accepts_untouched", "error",
        "calls the task complete although nothing was done", _COMPARE,
    ),
    "untouched_answered": Kind(
        "right words, nothing done", False, "accepts_untouched", "error",
        "calls the task complete although nothing was done but the right answer given", _COMPARE,
    ),
    "emptied": Kind(
        "every row deleted", False, "accepts_empty_database", "error",
        "calls the task complete when every table is empty", _COMPARE,
    ),
    "no_database": Kind(
        "no tables at all", False, "accepts_missing_database", "error",
        "says complete although every one of its queries failed",
        "let errors of the database come through instead of taking them for an empty result",
    ),
    "no_answer": Kind(
        "right state, no answer", False, "accepts_no_answer", "error",
        "accepts an answer that says nothing", "make it check what the answer says",
    ),
    "wrong_answer": Kind(
        "wrong answer", False, "accepts_wrong_answer", "error",
        "accepts an answer that is wrong", "make it compare the answer with what the database says",
    ),
    "value_off": Kind(
        "a value off", False, "accepts_wrong_value", "error",
        "accepts a wrong value in a row that the task is about", _EXACT,
    ),
    "other_row": Kind(
        "another row", False, "accepts_other_row", "error",
        "accepts the right change on a wrong row", "make it check which row was changed",
    ),
    "row_missing": Kind(
        "a row too few", False, "accepts_too_few", "error", "accepts one row less than the task asks for", _EXACT
    ),
    "row_extra": Kind(
        "a row too many", False, "accepts_too_many", "error",
        "accepts one row more than the task asks for", "make it count, or compare with the initial state",
    ),
    "undone": Kind(
        "a change undone", False, "accepts_undone", "error", "accepts that one of the changes was not made", _EXACT
    ),
    "extra_change": Kind(
        "something else changed", False, "accepts_extra_change", "warn",
        "accepts changes that nobody asked for", _GUARD,
    ),
    "collateral": Kind(
        "tables it never reads emptied", False, "accepts_collateral", "warn",
        "accepts that every table it does not read is emptied", _GUARD,
    ),
    "reference": Kind(
        "a known solution", True, "rejects_solution", "error",
        "does not call a known solution complete", "correct the verifier, or the task where it contradicts the data",
    ),
    "answer_form": Kind(
        "the answer in another form", True, "rejects_answer_form", "warn",
        "rejects the right answer in another form", "compare texts without regard to case, white space and wording",
    ),
    "ids": Kind(
        "other ids for new rows", True, "hard_coded_id", "error",
        "rejects a known solution whose new rows have other ids", _MEANING,
    ),
    "rekey": Kind(
        "other ids for all rows", True, "hard_coded_id", "warn",
        "rejects a known solution when every id is another one", _MEANING,
    ),
    "order": Kind(
        "another order", True, "rejects_other_order", "warn",
        "rejects a known solution whose steps were made in another order", "do not depend on the order of rows or ids",
    ),
    "time": Kind(
        "another time", True, "rejects_other_time", "warn",
        "rejects a known solution that is carried out at another time", "do not compare with fixed times",
    ),
    "clock": Kind(
        "judged later", True, "depends_on_clock", "warn",
        "comes to another verdict when it is run at another time",
        "compare with the times in the initial database, not with the clock",
    ),
    "dates": Kind(
        "dates in another spelling", True, "date_form", "warn",
        "rejects a known solution whose dates are spelled differently",
        "compare moments, not their spelling: accept T or a space, fractions, Z and +00:00",
    ),
}  # fmt: skip
"""All kinds, by the name they have in JSON. The first wrong ones need no known solution."""

NEEDS_NO_SOLUTION = ("untouched", "emptied", "no_database")
COLLATERAL = ("extra_change", "collateral")
"""Kinds that a guard takes care of, whatever the verifier itself looks at."""
