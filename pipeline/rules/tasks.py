"""Rules about tasks: as many as wanted, all different, one sentence each, nothing an API agent cannot do or know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pipeline.findings import Finding
from pipeline.words import number_of

SIGN_IN = re.compile(
    r"\b(log|sign)(ging|ning|ged|ned|s)? ?-?in\b|\b(log|sign)(ging|ning)? ?-?out\b|\bpasswords?\b|\bpasscode\b|"
    r"\bauthenticat\w+|\b(two|2)-factor\b|\b2fa\b|\b(register|create|open) (an|my|your) account\b",
    re.I,
)
SCREEN = re.compile(
    r"\b(click|tap|scroll|hover|swipe|drag)\b|\bscreenshots?\b|\bnavigate to\b|\b(button|checkbox|drop-?down menu)\b|"
    r"\bopen the (page|app|website|tab|screen)\b",
    re.I,
)
FILE = re.compile(
    r"\b(upload|download|export|print|scan|open|read)\b(?=[^.;]*\b(files?|csv|pdf|xlsx?|spreadsheets?|photos?|images?|"
    r"screenshots?)\b)",
    re.I,
)
HIDDEN = re.compile(
    r"\bprevious(ly)? (search|step|task|result|answer|request|query|conversation|mentioned|found|created)\w*|"
    r"\bas before\b|\b(the|those|these) (above|aforementioned)\b|\bfrom (the|my|your) (last|earlier|prior) \w+|"
    r"\byou (just|already) \w+|\b(the|those|these) (search )?results (above|from before)\b|^(then|also|next|now)\b",
    re.I,
)
"""What cannot be understood without an earlier conversation."""

SAME = 0.85
"""Share of words two tasks may have in common (Jaccard, quoted values included) before they count as one."""

_QUOTED = re.compile(r"(?<!\w)(\"[^\"]*\"|'[^']*'(?!\w)|“[^”]*”|‘[^’]*’|`[^`]*`)")
_SENTENCE_END = re.compile(r"[.!?]\s+(?=[A-Z\"“'])")
_ABBREVIATION = re.compile(r"\b(Dr|Mr|Mrs|Ms|St|No|vs|etc|e\.g|i\.e|Inc|Ltd|Co|Jr|Sr|[A-Z])$")


def task_findings(tasks: Sequence[str], *, count: int) -> tuple[Finding, ...]:
    """Everything wrong with a scenario's tasks that their text shows; `count` is how many were asked for."""
    return (*wrong_count(tasks, count), *repeated(tasks), *(f for n, t in enumerate(tasks) for f in one_task(n, t)))


def wrong_count(tasks: Sequence[str], count: int) -> list[Finding]:
    """More or fewer tasks than were asked for."""
    if len(tasks) == count:
        return []
    return [
        Finding(
            "task_count",
            "warn" if tasks else "error",
            "tasks",
            f"{number_of(len(tasks), 'task')}, where {count} were asked for",
            remedy=f"write exactly {number_of(count, 'task')}",
        )
    ]


def repeated(tasks: Sequence[str]) -> Iterator[Finding]:
    """Tasks that say what an earlier one says."""
    words = [set(re.findall(r"\w+", task.lower())) for task in tasks]
    for number, here in enumerate(words):
        for earlier, there in enumerate(words[:number]):
            if here and len(here & there) / len(here | there) >= SAME:
                yield Finding(
                    "task_repeated",
                    "warn",
                    f"tasks: {number}",
                    f"task {number} says what task {earlier} says",
                    evidence=tasks[number],
                    remedy="write a different task",
                    tasks=(number,),
                )
                break


def one_task(number: int, task: str) -> Iterator[Finding]:
    """What is wrong with one task by itself."""
    bare = _QUOTED.sub("…", task)  # what is quoted is data, not an instruction
    for code, pattern, message, remedy in (
        ("task_signs_in", SIGN_IN, "speaks of signing in", "the user is signed in already: leave that out"),
        ("task_needs_screen", SCREEN, "needs a screen", "say what is wanted, not where to click"),
        ("task_needs_file", FILE, "needs a file", "ask for data in the answer or in the records instead"),
        ("task_hidden_context", HIDDEN, "refers to something it does not contain", "name what is meant in full"),
    ):
        if code == "task_needs_file" and "metadata" in bare.lower():
            continue
        if found := pattern.search(bare):
            yield Finding(
                code, "warn", f"tasks: {number}", f"task {number} {message}", evidence=found.group(), remedy=remedy,
                tasks=(number,),
            )  # fmt: skip
    if not task.strip():
        yield Finding("task_empty", "error", f"tasks: {number}", f"task {number} is empty", remedy="write it")
    elif sentences(bare) > 1:
        yield Finding(
            "task_not_one_sentence",
            "warn",
            f"tasks: {number}",
            f"task {number} has {sentences(bare)} sentences",
            evidence=task,
            remedy="say it in one sentence",
            tasks=(number,),
        )


def sentences(text: str) -> int:
    """How many sentences a text has; abbreviations end none."""
    ends = [end for end in _SENTENCE_END.finditer(text) if not _ABBREVIATION.search(text[: end.start()])]
    return len(ends) + bool(text.strip())
