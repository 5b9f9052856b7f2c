"""From findings to proposed edits, and from an edit that a person has seen to new versions of the parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from curation.audit.guard import guarded
from curation.audit.records import EnvironmentAudit, VerifierAudit
from curation.checks.environment import CheckResult
from curation.fixes.dates import one_spelling
from curation.fixes.proposal import Contents, Fix, PartEdit
from curation.fixes.routes import own_path
from curation.fixes.rows import drop_dangling_rows, drop_failed_row, drop_seed_row, quote_apostrophe
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Author, Part
from pipeline.parts import verifier_slot
from pipeline.records import Version

Remedy = Callable[[Finding, Contents], Iterator[Fix]]

REMEDIES: Mapping[str, Sequence[Remedy]] = {
    "insert_failed": (quote_apostrophe, drop_failed_row),
    "ddl_failed": (quote_apostrophe,),
    "index_failed": (quote_apostrophe,),
    "goal_in_seed": (drop_seed_row,),
    "impossible_as_verified": (drop_seed_row,),
    "foreign_key_broken": (drop_dangling_rows,),
    "date_form": (one_spelling,),
    "route_twice": (own_path,),
    "shadowed_route": (own_path,),
}
"""The mechanical remedies, by the code of the finding they are for."""

GUARD = "guard"
"""The code of a fix that puts a guard into a verifier: see `curation.audit.guard`."""


def proposed(findings: Iterable[Finding], contents: Contents) -> list[Fix]:
    """The fixes for findings; those that would make the same edit are one."""
    findings = list(findings)
    found: dict[tuple[PartEdit, ...], Fix] = {}
    for finding in findings:
        for remedy in () if _follows(finding, findings) else REMEDIES.get(finding.code, ()):
            for fix in remedy(finding, contents):
                found.setdefault(fix.edits, fix)
    return list(found.values())


def _follows(finding: Finding, others: Iterable[Finding]) -> bool:
    """Whether rows refer to nothing only because what they refer to was lost: then that is to be put right."""
    if finding.code != "foreign_key_broken":
        return False
    return any(
        other.code in ("insert_failed", "table_missing")
        and (lost := re.match(r"\w+: (\w+)", other.where)) is not None
        and re.search(rf"\b{lost[1]}\b", finding.message)
        for other in others
    )


def guard_for(one: VerifierAudit, contents: Contents) -> Fix | None:
    """The guard for a verifier that accepts changes nobody asked for; None where it wants none."""
    slot = verifier_slot(one.task, one.mode)
    before = contents.get((Part.verifier, slot))
    if before is None or one.may_change is None or not one.wants_guard:
        return None
    after = guarded(before, one.mode, one.may_change)
    if after is None or after == before:
        return None
    says = "let nothing change beyond what the known solutions change; edit MAY_CHANGE where others change more"
    where = f"verifier: task {one.task}, {one.mode} mode"
    return Fix(GUARD, where, says, (PartEdit(Part.verifier, slot, before, after),))


def fixes_of(catalog: Catalog, name: str) -> list[Fix]:
    """Every fix for what the last check and the last audit of an environment found.

    Raises UserError for an unknown name.
    """
    contents = {(version.part, version.slot): catalog.content(version.sha) for version in catalog.current(name)}
    check, audit = catalog.check(name), catalog.audit(name)
    findings = list(CheckResult.from_json(check.findings_json).findings) if check else []
    verifiers = EnvironmentAudit.from_json(audit.document_json).verifiers if audit else ()
    findings += [finding for one in verifiers for finding in one.findings]
    guards = (guard_for(one, contents) for one in verifiers)
    return [*proposed(findings, contents), *(guard for guard in guards if guard is not None)]


def apply(catalog: Catalog, name: str, fix: Fix, author: Author) -> list[Version]:
    """Make the edits of a fix: new versions by its author, all or none.

    Raises UserError where a part is not what it was when the fix was proposed.
    """
    current = {(version.part, version.slot): version for version in catalog.current(name)}
    for edit in fix.edits:
        version = current.get((edit.part, edit.slot))
        if version is None or catalog.content(version.sha) != edit.before:
            raise UserError(f"The {edit.part} of {name} was changed meanwhile: look at the fixes again.")
    with catalog.bulk():
        return [
            catalog.put(
                name,
                edit.part,
                edit.after,
                slot=edit.slot,
                author=author,
                parents=[current[edit.part, edit.slot].id],
            )
            for edit in fix.edits
        ]


def apply_all(catalog: Catalog, name: str, author: Author, *, code: str | None = None) -> list[Version]:
    """Apply every fix that there is (or those of one code), each on top of those before it."""
    made: list[Version] = []
    done: set[tuple[str, str, str]] = set()
    while True:
        left = (fix for fix in fixes_of(catalog, name) if code in (None, fix.code) and _told(fix) not in done)
        fix = next(left, None)
        if fix is None:
            return made
        done.add(_told(fix))
        made += apply(catalog, name, fix, author)


def _told(fix: Fix) -> tuple[str, str, str]:
    return fix.code, fix.where, fix.says
