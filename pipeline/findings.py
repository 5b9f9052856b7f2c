"""Facts found about an environment: what is wrong or remarkable, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warn", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about an environment.

    `code` names the kind of fault (`shadowed_route`, `module_state`, …), `where` the place in the environment (a
    table, a tool, `code:123` for line 123 of the generated code). `evidence` is what was seen, `remedy` what to do,
    `tasks` the 0-based numbers of the tasks it blocks.
    """

    code: str
    severity: Severity
    where: str
    message: str
    evidence: str = ""
    remedy: str = ""
    tasks: tuple[int, ...] = ()
