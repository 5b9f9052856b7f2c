"""What an audit comes to: one record a verifier, a task, an environment, with their JSON forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

from curation.audit.guard import Footprint
from curation.audit.kinds import COLLATERAL, KINDS, Category
from curation.audit.verdicts import WORST, Rate, Verdict
from pipeline.findings import Finding
from pipeline.model import Mode

GUARDED = frozenset(KINDS[kind].code for kind in COLLATERAL)
"""Findings that a guard takes care of."""


@dataclass(frozen=True)
class VerifierAudit:
    """What is known about one verifier.

    `category` is read, write or mixed by what the known solution does, `steps` the calls it makes; both are None where
    that is not known. `solutions` say where known solutions come from. `tried` and `failed` count trials by kind (see
    `kinds`), `reads` are the columns it looked at, by table. `may_change` is what known solutions change, which a
    guard would allow; None where none is known.
    """

    name: str
    domain: str | None
    task: int
    mode: Mode
    verdict: Verdict
    why: str
    category: Category | None
    steps: int | None
    solutions: tuple[str, ...]
    tried: Mapping[str, int]
    failed: Mapping[str, int]
    reads: Mapping[str, tuple[str, ...]]
    may_change: Footprint | None
    findings: tuple[Finding, ...]

    @property
    def wants_guard(self) -> bool:
        """Whether it accepts changes that nobody asked for, and a guard could be put into it."""
        codes = {finding.code for finding in self.findings}
        return self.may_change is not None and not codes.isdisjoint(GUARDED)

    def rate(self, *, right: bool) -> Rate:
        """False rejects where `right`, else false accepts."""
        kinds = [kind for kind in self.tried if KINDS[kind].right == right]
        return Rate(sum(self.tried[kind] for kind in kinds), sum(self.failed.get(kind, 0) for kind in kinds))

    def document(self) -> dict[str, Any]:
        """The JSON form, as `awm-studio audit --json` prints it."""
        return {
            "name": self.name,
            "task": self.task,
            "mode": self.mode.value,
            "verdict": self.verdict,
            "why": self.why,
            "category": self.category,
            "steps": self.steps,
            "solutions": list(self.solutions),
            "false_accepts": self.rate(right=False).document("accepted"),
            "false_rejects": self.rate(right=True).document("rejected"),
            "kinds": {kind: {"tried": n, "failed": self.failed.get(kind, 0)} for kind, n in self.tried.items()},
            "reads": {table: list(columns) for table, columns in self.reads.items()},
            "may_change": self.may_change,
            "findings": [asdict(finding) for finding in self.findings],
        }


@dataclass(frozen=True)
class TaskState:
    """Whether a task can be solved: `solvable` (a known solution runs and no verifier makes it impossible), `blocked`,
    or `unproven`; and why."""

    task: int
    status: Literal["solvable", "blocked", "unproven"]
    why: str


@dataclass(frozen=True)
class Disagreement:
    """How often verifiers of both modes of one task judged the same trial, and what they said.

    Keys are the right verdict and what code mode and sql mode said, such as `others/complete/others`.
    """

    task: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class EnvironmentAudit:
    """What the audit of an environment found. `findings` are those about the environment as a whole."""

    name: str
    verifiers: tuple[VerifierAudit, ...]
    tasks: tuple[TaskState, ...]
    disagreements: tuple[Disagreement, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The worst of its verifiers' verdicts; None where it has no verifiers."""
        return min((one.verdict for one in self.verifiers), key=WORST.index, default=None)

    def document(self) -> dict[str, Any]:
        """The JSON form of what is not about one verifier."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "tasks": [asdict(state) for state in self.tasks],
            "disagreements": [{"task": one.task, "counts": dict(one.counts)} for one in self.disagreements],
            "findings": [asdict(finding) for finding in self.findings],
        }

    def to_json(self) -> str:
        """The JSON text that the catalog keeps."""
        return _adapter().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> EnvironmentAudit:
        """The audit that was kept as this JSON text."""
        return _adapter().validate_json(text)


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(EnvironmentAudit)
