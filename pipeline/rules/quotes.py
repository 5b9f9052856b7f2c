"""What a task quotes: names and ids that it takes to exist, and those that it asks to be made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

QUOTED = re.compile(
    r"(?<!\w)(?:\"(?P<a>[^\"]+)\"|'(?P<b>(?:[^']|(?<=\w)'(?=\w))+)'(?!\w)|“(?P<c>[^”]+)”|‘(?P<d>[^’]+)’(?!\w))"
)
"""A quoted piece of text; an apostrophe inside a word opens and closes nothing."""

ID = re.compile(r"\b(?:ID|Id|id|SKU|number|no\.)\s*(?:#|:)?\s*(?P<id>\d{2,}|[A-Z][A-Z0-9]*-\d[\w-]*)\b")
"""An id that is not quoted, after the word that says so."""

_MAKING = re.compile(
    r"^\W*(?:please\s+)?(?:create|add|register|open|set up|design|define|post|schedule|start)\s+"
    r"(?P<thing>.*?)(?=\s(?:for|with|to|in|on|of|at|by|named|called|titled|entitled|that|and)\b|[\"'“‘,;:(]|$)",
    re.I,
)
_NAMING = re.compile(
    r"\b(?:named|called|titled|entitled|(?:with|the)\s+(?:name|title|slug|vin|sku|code)|"
    r"(?:coupon|promo|promotion|discount|voucher|gift)\s+code)\s*$",
    re.I,
)
_REFERRING = re.compile(
    r"\b(?:for|of|from|on|in|at|by|assign|unassign|update|cancel|mark|move|archive|delete|remove|my|the|between)"
    r"\s+(?:[\w/-]+\s+){0,4}$",
    re.I,
)
_SAYING = re.compile(
    r"\b(?:to|as|saying|says|reads|reason|note|notes|message|comment|subject|body|description|caption|text|value|"
    r"values|set|with|and|or|label|tag|tags|option|options|hint|instructions|feedback|headline|bio|memo)\W*$",
    re.I,
)

_MOMENT = re.compile(r"[\d:./ T+Z-]*(?:\s?[AaPp][Mm])?")
"""A date or a time of day."""

Role = Literal["made", "used", "said"]


@dataclass(frozen=True, slots=True)
class Quote:
    """One quoted piece. `made`: the task asks for something of that name, and `thing` says what. `used`: the task takes
    it to be there. `said`: a text, a new value, a moment in time, or something that cannot be told."""

    text: str
    role: Role
    thing: str = ""


def quotes(task: str) -> Iterator[Quote]:
    """The quoted pieces and bare ids of a task, in order.

    Judged by the words around them, so not proven: what cannot be told is `said`.
    """
    making = unnamed = _MAKING.match(task)
    for found in sorted((*QUOTED.finditer(task), *ID.finditer(task)), key=lambda match: match.start()):
        before = task[: found.start()]
        text = next(group for group in found.groups() if group)
        identifies = found.re is ID or bool(re.fullmatch(r"[A-Z]{1,6}-\d[\w-]*", text))
        if not identifies and _MOMENT.fullmatch(text):
            yield Quote(text, "said")
        elif unnamed and _NAMING.search(before):
            yield Quote(text, "made", unnamed["thing"].lower().strip())
            unnamed = None  # what follows describes it
        elif identifies and not (making and not _REFERRING.search(before)):
            yield Quote(text, "used")
        elif _SAYING.search(before) or _NAMING.search(before) or not _REFERRING.search(before):
            yield Quote(text, "said")
        else:
            yield Quote(text, "used")
