"""From what a verifier said to a verdict about it, by stated rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from curation.audit.kinds import KINDS, NEEDS_NO_SOLUTION
from curation.audit.trials import Outcome
from curation.estimates import rate
from pipeline.findings import Finding

Verdict = Literal["trusted", "loose", "strict", "broken", "unproven"]

RULES: Mapping[Verdict, str] = {
    "broken": "it cannot judge the untouched database or a known solution, comes to another verdict when asked again, "
    "or says the same whatever happens",
    "loose": "it accepts something wrong",
    "strict": "it rejects something right: a known solution, or one that means the same; or the task cannot be done "
    "as it is verified",
    "trusted": "it accepts every known solution and what means the same, and rejects every near miss that was tried",
    "unproven": "nothing wrong was found, but no known solution was there to prove it right, or nobody to judge its "
    "evidence",
}
"""When a verifier gets which verdict; the first that applies, in this order."""

WORST: Sequence[Verdict] = ("broken", "loose", "strict", "unproven", "trusted")
"""Verdicts from the worst to the best; an environment's is the worst of its verifiers'."""

EXAMPLES = 3
"""Trials that one finding shows."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of how many, with Wilson's 95 % interval (see `estimates.rate`)."""

    tried: int = 0
    failed: int = 0

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.tried + other.tried, self.failed + other.failed)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The lower and the upper end, to four digits; None where nothing was tried."""
        found = rate(self.failed, self.tried)
        return None if found is None else (round(found.low, 4), round(found.high, 4))

    def document(self, word: str) -> dict[str, Any]:
        """The JSON form; `word` is what failing means here (accepted, rejected)."""
        low, high = self.interval or (None, None)
        return {"tried": self.tried, word: self.failed, "low": low, "high": high}


@dataclass(frozen=True)
class Unit:
    """Trials that count as one."""

    kind: str
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> bool:
        """Whether the verifier failed all of them."""
        return all(outcome.failed for outcome in self.outcomes)


def units(outcomes: Sequence[Outcome]) -> list[Unit]:
    """The trials in which the verifier said something that counts, by what counts as one.

    Where it rejects the known solution, what means the same as that solution proves no more.
    """
    rejects = rejects_solution(outcomes)
    found: dict[tuple[str, str], list[Outcome]] = {}
    for number, outcome in enumerate(outcomes):
        same = outcome.trial.right and outcome.trial.kind != "reference"
        if outcome.accepted is not None and not (rejects and same):
            trial = outcome.trial
            found.setdefault((trial.kind, trial.unit or str(number)), []).append(outcome)
    return [Unit(kind, tuple(them)) for (kind, _), them in found.items()]


def rejects_solution(outcomes: Iterable[Outcome]) -> bool:
    """Whether the verifier rejects the known solution from which the other states were made."""
    first = next((outcome for outcome in outcomes if outcome.trial.kind == "reference"), None)
    return first is not None and first.accepted is False


def rates(counted: Iterable[Unit], *, right: bool) -> dict[str, Rate]:
    """Trials and failures by kind, of the kinds that are right or of those that are wrong."""
    found: dict[str, Rate] = {}
    for unit in counted:
        if KINDS[unit.kind].right == right:
            found[unit.kind] = found.get(unit.kind, Rate()) + Rate(1, int(unit.failed))
    return found


def decide(outcomes: Sequence[Outcome], findings: Iterable[Finding]) -> tuple[Verdict, str]:
    """The verdict about a verifier and the reason, from everything that was tried and found."""
    codes = {finding.code for finding in findings}
    counted = units(outcomes)
    accepts = rates(counted, right=False)
    rejects = rates(counted, right=True)
    loose = [KINDS[kind].title for kind, rate in accepts.items() if rate.failed]
    strict = [KINDS[kind].title for kind, rate in rejects.items() if rate.failed]
    near = sum(rate.tried for kind, rate in accepts.items() if kind not in NEEDS_NO_SOLUTION)
    verdict: Verdict
    if broken := codes & BROKEN.keys():
        verdict, why = "broken", "; ".join(BROKEN[code] for code in sorted(broken))
    elif loose:
        verdict, why = "loose", f"accepted: {', '.join(loose)}"
    elif strict or "impossible_as_verified" in codes:
        verdict, why = "strict", f"rejected: {', '.join(strict) or 'the task cannot be done as it is verified'}"
    elif "reference" in rejects and near:
        verdict, why = (
            "trusted",
            f"{near} near misses rejected, {sum(r.tried for r in rejects.values())} right ends accepted",
        )
    else:
        verdict, why = "unproven", _why_unproven(outcomes, known="reference" in rejects)
    return verdict, why


def _why_unproven(outcomes: Sequence[Outcome], *, known: bool) -> str:
    if any(outcome.verdict.verdict == "evidence" and outcome.accepted is None for outcome in outcomes):
        return "its evidence needs a judge"
    return "no near miss could be made" if known else "no known solution"


BROKEN: Mapping[str, str] = {
    "verifier_fails": "it cannot judge",
    "not_repeatable": "it comes to another verdict when asked again",
    "insensitive": "it says the same whatever happens",
}
"""Findings that make a verifier broken, and why."""


def kind_findings(outcomes: Sequence[Outcome], where: str, task: int) -> Iterator[Finding]:
    """One finding for each kind of trial that the verifier fails."""
    failed: dict[str, list[Unit]] = {}
    tried: dict[str, int] = {}
    for unit in units(outcomes):
        tried[unit.kind] = tried.get(unit.kind, 0) + 1
        if unit.failed:
            failed.setdefault(unit.kind, []).append(unit)
    for kind, them in failed.items():
        about = KINDS[kind]
        shown = "; ".join(_shown(unit.outcomes[0]) for unit in them[:EXAMPLES])
        yield Finding(
            about.code,
            about.severity,
            where,
            f"the verifier {about.message} ({len(them)} of {tried[kind]})",
            evidence=shown,
            remedy=about.remedy,
            tasks=(task,),
        )


def form_findings(outcomes: Sequence[Outcome], where: str, task: int) -> Iterator[Finding]:
    """Why a verifier rejects a known solution, where it accepts the same solution in another form."""
    if not rejects_solution(outcomes):
        return
    accepted: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.trial.right and outcome.trial.kind != "reference" and outcome.accepted:
            accepted.setdefault(outcome.trial.kind, []).append(outcome)
    for kind, them in accepted.items():
        about = KINDS[kind]
        yield Finding(
            about.code,
            about.severity,
            where,
            f"the verifier rejects a known solution and accepts the same with {about.title}",
            evidence="; ".join(map(_shown, them[:EXAMPLES])),
            remedy=about.remedy,
            tasks=(task,),
        )


def conduct_findings(outcomes: Sequence[Outcome], where: str, task: int) -> Iterator[Finding]:
    """How the verifier behaves: whether it can judge, and whether anything makes a difference to it."""
    for outcome in outcomes:
        if outcome.stumbled:
            yield Finding(
                "verifier_fails",
                "error",
                where,
                f"the verifier cannot judge {outcome.trial.says}",
                evidence=outcome.verdict.error or "",
                remedy="correct the verifier so that it judges any database of this schema",
                tasks=(task,),
            )
            return
    seen = [outcome for outcome in outcomes if outcome.verdict.verdict != "judge_error"]
    words = {_word(outcome) for outcome in seen}
    states = {outcome.trial.case.final for outcome in seen}
    if len(states) > 1 and len(words) == 1 and words != {"others"}:
        yield Finding(
            "insensitive",
            "error",
            where,
            f"the verifier says the same in all {len(seen)} trials, whatever is in the database and the answer",
            evidence=f"always: {next(iter(words))[:200]}",
            remedy="make it look at what the task is about",
            tasks=(task,),
        )
    stumbles = [
        outcome
        for outcome in outcomes
        if outcome.verdict.verdict == "judge_error" and outcome.trial.kind not in ("emptied", "no_database")
    ]
    if stumbles:
        yield Finding(
            "fails_on_state",
            "info",
            where,
            f"the verifier fails on {len(stumbles)} of {len(outcomes)} states",
            evidence=_shown(stumbles[0]),
            remedy="make it judge any database of this schema",
            tasks=(task,),
        )


def _word(outcome: Outcome) -> str:
    """What the verifier said, as one text that equals another only where it said the same."""
    if outcome.verdict.verdict == "evidence":
        return repr({key: value for key, value in (outcome.verdict.evidence or {}).items() if key != "answer"})
    return outcome.verdict.verdict


def _shown(outcome: Outcome) -> str:
    said = outcome.verdict.verdict
    if outcome.verdict.verdict == "evidence":
        said = f"holds: {outcome.accepted}"
    elif outcome.verdict.error:
        said = f"{said} ({outcome.verdict.error})"
    return f"{outcome.trial.says} → {said}"
