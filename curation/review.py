"""What needs a person, and what the person decides about it.

The queue holds what checks found at the level of an error or a warning and the verifiers that cannot be trusted. A
decision is about exactly what was seen: where a later check finds something else in the same place, that is a new item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from curation.audit.records import EnvironmentAudit, VerifierAudit
from curation.audit.summary import only_collateral
from curation.audit.verdicts import WORST
from curation.checks.environment import status
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.findings import Finding, Severity
from pipeline.model import content_hash
from pipeline.records import StoredReview

KEY_LENGTH = 10
"""Hexadecimal digits of an item's key: enough to tell a million items apart."""


class Decision(StrEnum):
    """What a person may decide about an item; the values are the words in the catalog."""

    accept = "accept"
    waive = "waive"
    fix = "fix"
    drop = "drop"
    reopen = "reopen"


RUBRIC: Mapping[Decision, str] = {
    Decision.accept: "I looked: it is no fault. It does not count any more.",
    Decision.waive: "It is a fault, and we use the environment all the same. Say why; it does not count any more.",
    Decision.fix: "It is a fault, and it is to be put right. It stays in the queue and counts.",
    Decision.drop: "The environment is not worth putting right: subsets leave it out.",
    Decision.reopen: "Take the decision back: nobody has decided.",
}
"""When to decide what."""

SETTLES = (Decision.accept, Decision.waive)
"""Decisions after which an item does not count."""

WEIGHT = (Decision.drop, Decision.fix, Decision.waive, Decision.accept)
"""Decisions from the weightiest on; an environment shows its weightiest."""

REMEDIES: Mapping[str, str] = {
    "no known solution": "record one: call its tools (c) and save the calls as the task's solution, or let a model "
    "solve it (awm-studio audit --solver)",
    "its evidence needs a judge": "add a verifier in code mode, or `holds` to its evidence",
    "no near miss could be made": "look at the verifier: nothing could be tried that is nearly right",
}
"""What to do about an unproven verifier, by why it is."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that needs a person. `source` is "check" or "audit"; `code` a finding's, or a verifier's verdict."""

    environment: str
    source: str
    severity: Severity
    code: str
    where: str
    message: str
    evidence: str = ""
    remedy: str = ""

    @property
    def key(self) -> str:
        """What tells the item: the same fault seen in the same way has the same key."""
        return content_hash(json.dumps([self.source, self.code, self.where, self.message, self.evidence]))[:KEY_LENGTH]


@dataclass(frozen=True, slots=True)
class Entry:
    """An item and the decision about it, if there is one."""

    item: Item
    review: StoredReview | None = None

    @property
    def decision(self) -> Decision | None:
        """The decision that holds."""
        return Decision(self.review.decision) if self.review else None

    @property
    def is_open(self) -> bool:
        """Whether somebody still has to do something."""
        return self.decision in (None, Decision.fix)

    def document(self) -> dict[str, Any]:
        """The JSON form, as `awm-studio review --json` prints it and exports have it."""
        review = self.review
        return {
            "item": self.item.key,
            **asdict(self.item),
            "decision": review and review.decision,
            "reason": review and review.reason,
            "reviewer": review and review.reviewer,
            "date": review and review.created_at.isoformat(timespec="seconds"),
        }


def queue(catalog: Catalog, names: Iterable[str] | None = None) -> list[Entry]:
    """What needs a person in the named environments (or all), the gravest first.

    Raises UserError for an unknown name.
    """
    found = [entry for name in (catalog.names() if names is None else names) for entry in entries(catalog, name)]
    order = ("error", "warn", "info")
    return sorted(found, key=lambda entry: (order.index(entry.item.severity), entry.item.environment))


def entries(catalog: Catalog, name: str) -> list[Entry]:
    """What the last check and the last audit of an environment leave to a person, with what was decided."""
    held = in_force(catalog.reviews(name))
    return [Entry(item, held.get(item.key)) for item in items(catalog, name)]


def in_force(reviews: Iterable[StoredReview]) -> dict[str, StoredReview]:
    """The newest decision about each item, unless it was taken back."""
    newest = {review.item: review for review in reviews}
    return {item: review for item, review in newest.items() if review.decision != Decision.reopen}


def items(catalog: Catalog, name: str) -> Iterator[Item]:
    """What needs a person in one environment."""
    yield from (_of_finding(name, "check", finding) for finding in check_findings(catalog, name))
    kept = catalog.audit(name)
    audit = EnvironmentAudit.from_json(kept.document_json) if kept else None
    if audit is not None:
        yield from (_of_finding(name, "audit", finding) for finding in audit.findings if finding.severity != "info")
        yield from (_of_verifier(one) for one in audit.verifiers if one.verdict not in ("trusted", "unproven"))
        yield from _unproven(audit)


def check_findings(catalog: Catalog, name: str) -> list[Finding]:
    """The errors and warnings of an environment's last check."""
    kept = catalog.check(name)
    found = json.loads(kept.findings_json)["findings"] if kept else ()
    findings = (Finding(**finding | {"tasks": tuple(finding["tasks"])}) for finding in found)
    return [finding for finding in findings if finding.severity != "info"]


def decide(catalog: Catalog, name: str, key: str, decision: Decision, *, reviewer: str, reason: str = "") -> Item:
    """Keep a decision about an item of an environment; `key` may be the beginning of its key.

    Raises UserError where there is no such item, or a waiver gives no reason.
    """
    name = catalog.resolve(name)
    found = [item for item in items(catalog, name) if key and item.key.startswith(key)]
    if len(found) != 1:
        how = "has several items" if found else "has no item"
        raise UserError(f"{name} {how} {key!r} to review: awm-studio review {name} shows them with their keys.")
    if decision is Decision.waive and not reason.strip():
        raise UserError("A waiver needs a reason: say why the fault does not matter.")
    about = {field: value for field, value in asdict(found[0]).items() if field != "environment"}
    catalog.add_review(name, found[0].key, decision, reason=reason.strip(), reviewer=reviewer, about=about)
    settle(catalog, name)
    return found[0]


def settled(catalog: Catalog, name: str) -> set[str]:
    """The keys of an environment's items that do not count any more."""
    return {item for item, review in in_force(catalog.reviews(name)).items() if review.decision in SETTLES}


def counting(catalog: Catalog, name: str) -> list[Finding]:
    """The errors and warnings of an environment's last check that count: those not waived or accepted."""
    done = settled(catalog, name)
    findings = check_findings(catalog, name)
    return [finding for finding in findings if _of_finding(name, "check", finding).key not in done]


def settle(catalog: Catalog, name: str) -> None:
    """Make an environment's line in the list say what counts, after a check, an audit or a decision."""
    reviews = catalog.reviews(name)
    if not reviews:
        return
    summary, decisions = catalog.summary(name), {review.decision for review in in_force(reviews).values()}
    unjudged = (None, "stale")
    catalog.set_standing(
        name,
        check=summary.check if summary.check in unjudged else _check_standing(catalog, name),
        audit=summary.audit if summary.audit in unjudged else _audit_standing(catalog, name),
        review=next((decision for decision in WEIGHT if decision in decisions), None),
    )


def _check_standing(catalog: Catalog, name: str) -> str:
    left = status(counting(catalog, name))
    return "waived" if left == "pass" and check_findings(catalog, name) else left


def _audit_standing(catalog: Catalog, name: str) -> str | None:
    kept = catalog.audit(name)
    if kept is None:
        return None
    done = settled(catalog, name)
    audit = EnvironmentAudit.from_json(kept.document_json)
    waived = {one.where for one in (*map(_of_verifier, audit.verifiers), *_unproven(audit)) if one.key in done}
    left = [one.verdict for one in audit.verifiers if not waived & {_where(one), _together(one)}]
    worst = min(left, key=WORST.index, default=None)
    return "waived" if waived and worst in (None, "trusted") else worst


def _of_finding(name: str, source: str, finding: Finding) -> Item:
    return Item(
        name, source, finding.severity, finding.code, finding.where, finding.message, finding.evidence, finding.remedy
    )


def _of_verifier(one: VerifierAudit) -> Item:
    grave = [finding for finding in one.findings if finding.severity != "info"]
    evidence = "\n".join(f"{finding.code}: {finding.message}. {finding.evidence}" for finding in grave)
    remedy = "; ".join(dict.fromkeys(finding.remedy for finding in grave if finding.remedy))
    severity: Severity = "warn" if only_collateral(one) else "error"
    return Item(one.name, "audit", severity, one.verdict, _where(one), one.why, evidence, remedy)


def _where(one: VerifierAudit) -> str:
    return f"verifier: task {one.task}, {one.mode} mode"


def _unproven(audit: EnvironmentAudit) -> Iterator[Item]:
    """One item for all verifiers of an environment that are unproven for one reason."""
    reasons: dict[str, list[VerifierAudit]] = {}
    for one in audit.verifiers:
        if one.verdict == "unproven":
            reasons.setdefault(one.why, []).append(one)
    for why, them in reasons.items():
        which = ", ".join(f"task {one.task} {one.mode}" for one in them)
        count = "1 verifier is" if len(them) == 1 else f"{len(them)} verifiers are"
        yield Item(
            audit.name, "audit", "info", "unproven", _together(them[0]), f"{count} unproven: {why}", which,
            REMEDIES.get(why, "see what the check of the environment says"),
        )  # fmt: skip


def _together(one: VerifierAudit) -> str:
    return f"verifier: unproven, {one.why}"
