"""Everything the catalog knows about one environment, read at once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.findings import Finding
from pipeline.model import Environment

if TYPE_CHECKING:
    from curation.audit.records import EnvironmentAudit
    from pipeline.catalog import Catalog
    from pipeline.records import Summary, Version


@dataclass(frozen=True, slots=True)
class Dossier:
    """An environment, its line in the list, the current versions of its parts, what its last check found, and its last
    audit."""

    env: Environment
    summary: Summary
    versions: tuple[Version, ...]
    findings: tuple[Finding, ...]
    audit: EnvironmentAudit | None = None


def read_dossier(catalog: Catalog, summary: Summary) -> Dossier:
    """Read it; takes some ms. Raises UserError where there is no such environment any more."""
    env = catalog.environment(summary.name)
    check = catalog.check(summary.name)
    found: list[dict[str, Any]] = json.loads(check.findings_json)["findings"] if check else []
    for finding in found:
        finding["tasks"] = tuple(finding["tasks"])
    findings = tuple(Finding(**finding) for finding in found)
    audited = catalog.audit(summary.name)
    audit = None
    if audited is not None:
        from curation.audit.records import EnvironmentAudit

        audit = EnvironmentAudit.from_json(audited.document_json)
    return Dossier(env, summary, tuple(catalog.current(summary.name)), findings, audit)
