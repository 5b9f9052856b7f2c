"""The functions by which a verifier reads an answer. A verifier carries the ones it uses, as source.

Each takes `said`, the final answer in lower case with single spaces. Naming everything is no answer: what else might
have been named must not be, unless the task itself names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

PLAIN = '''
def plain(text):
    """A text in lower case, with single spaces and straight quotes."""
    text = str(text or "").translate(str.maketrans("\\u2018\\u2019\\u201c\\u201d\\u2212", "''\\"\\"-"))
    return " ".join(text.casefold().split())
'''

NAMES = '''
def names(said, wanted, others):
    """Whether an answer names all that is wanted, and nothing else that it might have named."""
    left = said
    for name in sorted({plain(name) for name in wanted}, key=len, reverse=True):
        found = rf"(?<![\\w-]){re.escape(name)}(?![\\w-])"
        if not re.search(found, left):
            return False
        left = re.sub(found, " ", left)
    wrong = {plain(name) for name in others if name is not None} - {plain(name) for name in wanted}
    wrong = {name for name in wrong if name and name not in plain(TASK)}
    return not any(re.search(rf"(?<![\\w-]){re.escape(name)}(?![\\w-])", left) for name in wrong)
'''

NUMBER = '''
WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()


def numbers(text):
    """The numbers in a text, leaving out codes such as AB-12 and dates."""
    text = re.sub(r"\\b[a-z]+-\\d+\\b|\\b\\d{4}-\\d\\d-\\d\\d\\b", " ", plain(text))
    found = re.findall(r"(?<![\\w.])-?\\d+(?:,\\d{3})*(?:\\.\\d+)?(?![\\w-])", text)
    spelled = [WORDS.index(word) for word in re.findall(r"[a-z]+", text) if word in WORDS[2:]]
    return {float(number.replace(",", "")) for number in found} | set(map(float, spelled))


def number(said, wanted):
    """Whether an answer gives a number (to half a cent), and not many others beside it."""
    found = numbers(said)
    right = {n for n in found if abs(n - wanted) < 0.006}
    return bool(right) and len(found - right - numbers(TASK)) <= 3
'''

DAY = '''
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


def days(text):
    """The dates in a text, as YYYY-MM-DD."""
    text = plain(text)
    found = set(re.findall(r"\\b\\d{4}-\\d\\d-\\d\\d\\b", text))
    month = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
    for day, name, year in re.findall(rf"\\b(\\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {month},? (\\d{{4}})", text):
        found.add(f"{year}-{MONTHS.index(name) + 1:02d}-{int(day):02d}")
    for name, day, year in re.findall(rf"\\b{month} (\\d{{1,2}})(?:st|nd|rd|th)?,? (\\d{{4}})", text):
        found.add(f"{year}-{MONTHS.index(name) + 1:02d}-{int(day):02d}")
    return found


def day(said, wanted):
    """Whether an answer gives a date, and no other that the task does not name."""
    found = days(said)
    return wanted in found and not found - {wanted} - days(TASK)
'''

YES_OR_NO = '''
def yes_or_no(said, wanted):
    """Whether an answer says yes (or no), and not both."""
    yes, no = bool(re.search(r"\\byes\\b", said)), bool(re.search(r"\\bno\\b", said))
    return yes != no and yes == bool(wanted)
'''

REASON = '''
REFUSING = r"\\b(not|no|cannot|unable|impossible|refus\\w*|reject\\w*|declin\\w*|den(?:y|ied)|forbid\\w*|fail\\w*|only|"
REFUSING += r"already|without|unchanged|must|nothing|invalid|blocked|still)\\b|n't\\b"


def gives_reason(said, reasons):
    """Whether an answer says that it was not done, with a word of the reason (or one that begins like it)."""
    said = said.replace(plain(TASK), " ")
    words = re.findall(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+]|\\d", said)
    begin = {word[:6] for word in reasons}
    return bool(re.search(REFUSING, said)) and any(word[:6] in begin for word in words)
'''

FUNCTIONS = {"names": NAMES, "number": NUMBER, "day": DAY, "yes_or_no": YES_OR_NO, "gives_reason": REASON}


def functions_for(lines: Iterable[str]) -> str:
    """The source of every function that some lines call."""
    lines = tuple(lines)
    used = [source for name, source in FUNCTIONS.items() if any(re.search(rf"\b{name}\(", line) for line in lines)]
    return "\n".join((PLAIN, *used)) if used or any("plain(" in line for line in lines) else ""


def refusing(reasons: Sequence[str], amount: float | None) -> list[str]:
    """The conditions on `said`, an answer that refuses: a word of the reason, and its number where that is asked."""
    conditions = [f"gives_reason(said, {tuple(reasons)!r})"]
    if amount is not None:
        conditions.append(f"number(said, {amount!r})")
    return conditions
