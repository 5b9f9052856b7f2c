"""One thing a model is asked to write: its prompt, how the reply is read, how it is checked, what a fault means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pipeline.findings import Finding
from pipeline.llm.request import Message, Request
from pipeline.model import Environment, Part
from pipeline.parts import read_view
from pipeline.stages.prompts import render

if TYPE_CHECKING:
    from pipeline.runtime.host import Host

ATTEMPTS = 4
"""How often a step is asked for before the best attempt is kept, or the stage fails."""

SHOWN_FAULTS = 20
"""Faults told to the model at once; more of them are counted."""

UNREADABLE = "reply_unreadable"
"""The code of the finding for a reply that is not what was asked for."""

REJECTED = "rejected"
"""The code of the finding that carries a person's reason."""

INPUTS: Mapping[Part, tuple[Part, ...]] = {
    Part.scenario: (),
    Part.tasks: (Part.scenario,),
    Part.schema: (Part.scenario, Part.tasks),
    Part.sample: (Part.tasks, Part.schema),
    Part.spec: (Part.scenario, Part.tasks, Part.schema),
    Part.code: (Part.schema, Part.spec),
    Part.verifier: (Part.tasks, Part.schema, Part.sample, Part.spec),
}
"""What each part is made from: its parents, and what makes it stale when it changes."""


class Weight(StrEnum):
    """What a finding means for the attempt that has it."""

    refuse = "refuse"  # sent back; with it nothing is kept
    correct = "correct"  # sent back while there are attempts left, then kept with it on record
    advise = "advise"  # told to the model once; if it stays, it is the model's decision
    accept = "accept"  # on record


def usual_weight(finding: Finding) -> Weight:
    """Errors are refused, warnings corrected, the rest accepted."""
    return {"error": Weight.refuse, "warn": Weight.correct}.get(finding.severity, Weight.accept)


@dataclass(frozen=True, slots=True)
class Step:
    """What is asked, as one part (and slot) of an environment.

    `read` turns a reply into the part's content and raises `Unreadable`; `check` executes the content in the
    environment it is made for and returns findings; `weigh` says what each of them means. `what` names the thing in
    the correction prompt.
    """

    stage: str
    part: Part
    what: str
    prompt: tuple[Message, ...]
    read: Callable[[str], str]
    check: Callable[[str, Host], Sequence[Finding]]
    schema: Mapping[str, Any] | None = None
    slot: str = ""
    weigh: Callable[[Finding], Weight] = usual_weight

    @property
    def name(self) -> str:
        """The part and slot in one word: "schema", "verifier 3/code"."""
        return f"{self.part} {self.slot}".rstrip()


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of asking once. `content` is None where the reply could not be read; `keys` are the kept reply's."""

    number: int
    content: str | None
    findings: tuple[Finding, ...] = ()
    keys: tuple[str, ...] = field(default=())


def open_faults(step: Step, attempt: Attempt, earlier: Sequence[Attempt]) -> list[Finding]:
    """The findings for which an attempt is sent back."""
    told = {(finding.code, finding.where) for before in earlier for finding in before.findings}
    return [
        finding
        for finding in attempt.findings
        if (weight := step.weigh(finding)) in (Weight.refuse, Weight.correct)
        or (weight is Weight.advise and (finding.code, finding.where) not in told)
    ]


def best(step: Step, attempts: Sequence[Attempt]) -> Attempt | None:
    """The attempt to keep when none was right: the one with the fewest faults that has none to refuse, if any."""
    keepable = [
        attempt
        for attempt in attempts
        if attempt.content is not None and not any(step.weigh(f) is Weight.refuse for f in attempt.findings)
    ]
    return min(
        keepable, key=lambda a: (sum(step.weigh(f) is Weight.correct for f in a.findings), -a.number), default=None
    )


def request_for(step: Step, earlier: Sequence[Attempt], *, hint: str = "", sample: int = 0) -> Request:
    """What to ask next: the step's prompt, a person's hint, and what was wrong with the attempts so far."""
    messages = [*step.prompt, *(render("hint", hint=hint) if hint else ())]
    if earlier:
        last_read = max((a for a in earlier if a.content is not None), key=lambda a: a.number, default=None)
        if last_read is not None and last_read.content is not None:
            messages.append(Message("assistant", shown(step.part, last_read.content)))
        faults = open_faults(step, earlier[-1], earlier[:-1]) or list(earlier[-1].findings)
        messages += render("correction", faults=listed(faults), earlier=_summary(earlier[:-1]), what=step.what)
    return Request(tuple(messages), schema=step.schema, sample=sample)


def shown(part: Part, content: str) -> str:
    """A part's content as a model would have written it."""
    return f"```python\n{content}\n```" if part in (Part.code, Part.verifier) else content


def listed(findings: Sequence[Finding]) -> str:
    """Findings as a list for the model: where, what, evidence, remedy."""
    lines = []
    for finding in findings[:SHOWN_FAULTS]:
        evidence = f"\n  seen: {finding.evidence}" if finding.evidence else ""
        remedy = f"\n  do: {finding.remedy}" if finding.remedy else ""
        lines.append(f"- {finding.where}: {finding.message}{evidence}{remedy}")
    if len(findings) > SHOWN_FAULTS:
        lines.append(f"- and {len(findings) - SHOWN_FAULTS} more of the same kinds")
    return "\n".join(lines)


def _summary(earlier: Sequence[Attempt]) -> str:
    if not earlier:
        return ""
    lines = []
    for attempt in earlier:
        counts = Counter(finding.code for finding in attempt.findings)
        where = {finding.code: finding.where for finding in reversed(attempt.findings)}
        said = ", ".join(f"{code} ({where[code]}{f' and {n - 1} more' if n > 1 else ''})" for code, n in counts.items())
        lines.append(f"- attempt {attempt.number}: {said}")
    return "\nEarlier attempts failed for these reasons; do not fall back into them:\n" + "\n".join(lines) + "\n"


_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def steady(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings without memory addresses, which differ from run to run: the same fault must give the same prompt."""

    def told(text: str) -> str:
        return _ADDRESS.sub("0x…", text)

    return tuple(replace(f, message=told(f.message), evidence=told(f.evidence)) for f in findings)


def with_part(environment: Environment, part: Part, content: str, slot: str = "") -> Environment:
    """The environment with one part's content in place of what it had."""
    view = read_view({(part, slot): content})
    verifiers = {(verifier.task, verifier.mode): verifier for verifier in (*environment.verifiers, *view["verifiers"])}
    solutions = {solution.task: solution for solution in (*environment.solutions, *view["solutions"])}
    view["verifiers"] = tuple(verifiers[key] for key in sorted(verifiers))
    view["solutions"] = tuple(solutions[key] for key in sorted(solutions))
    return replace(environment, **view)
