"""State that a program keeps in its module instead of its database."""

from __future__ import annotations

import types

from pipeline.findings import Finding


class ModuleState:
    """Finds and carries what handlers change in their module."""

    def __init__(self, module: types.ModuleType, source: str) -> None:
        self.findings: tuple[Finding, ...] = ()

    def save(self) -> bytes | None:
        return None

    def restore(self, saved: bytes | None) -> None:
        pass
