"""A part on its way to being a person's version: kept as a draft beside the run, checked without being put anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from pipeline.errors import UserError
from pipeline.model import Part
from studio.spelling import Spelling, read

if TYPE_CHECKING:
    from pipeline.workspace import Workspace
    from studio.live import Live


@dataclass(frozen=True, slots=True)
class Checked:
    """What the checks found in a draft; `refused` of the findings keep it from being right."""

    findings: tuple[dict[str, Any], ...]
    refused: int


def check(opened: Workspace, live: Live, name: str, stage: str, part: str, slot: str, spelling: Spelling) -> Checked:
    """Check a draft as the engine would, in the sandbox. Raises UserError where it cannot be read."""
    from pipeline.engine.flow import refusals, step_for
    from pipeline.stages.step import steady

    content = read(Part(part), spelling)
    if part == Part.scenario:
        return Checked((), 0)
    step = step_for(opened.catalog.environment(name), stage, Part(part), slot)
    try:
        found = steady(live.check(step, content))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"The {part} cannot be read: {error}.") from None
    return Checked(tuple(asdict(finding) for finding in found), len(refusals(step, found)))


def draft_file(opened: Workspace, run: int, name: str, step: str, suffix: str) -> Path:
    """Where a draft of a step is kept."""
    return opened.runs / str(run) / "drafts" / name / f"{step.replace('/', '-').replace(' ', '-')}{suffix}"


def keep(file: Path, text: str) -> bool:
    """Keep a draft. Raises UserError where it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"The draft {file} cannot be written: {error.strerror}.") from None
    return True


def kept(file: Path) -> str | None:
    """The draft that is kept, if there is one."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def changed_lines(before: str, after: str) -> Sequence[str]:
    """What was changed, as a unified diff; empty where nothing was."""
    import difflib

    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), "as it is", "yours", lineterm="", n=3))
