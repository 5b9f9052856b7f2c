"""What is on record of one stage of a scenario: what was asked, what came back, what is being written now."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError
from pipeline.llm.request import Usage
from pipeline.model import STAGES

if TYPE_CHECKING:
    from pipeline.engine.board import Cell, Row, Tried
    from pipeline.llm.replies import Replies
    from pipeline.records import Version
    from pipeline.workspace import Workspace

TAIL = 32_000
"""Bytes of a reply that is being written which are worth showing: some 800 lines."""


@dataclass(frozen=True, slots=True)
class Try:
    """One recorded attempt of one step of a stage."""

    step: str
    tried: Tried
    cost: Usage

    @property
    def first(self) -> str:
        """The first thing its checks found."""
        found = self.tried.findings
        return f"{found[0]['where']}: {found[0]['message']}" if found else ""


@dataclass(frozen=True, slots=True)
class Piece:
    """One part (and slot) that a stage makes, with its newest version where there is one."""

    part: str
    slot: str
    version: Version | None

    @property
    def step(self) -> str:
        """The name of the step that makes it."""
        return f"{self.part} {self.slot}".rstrip()


def tries(cell: Cell) -> list[Try]:
    """The attempts of a stage in its present generation, step by step."""
    return [
        Try(step, tried, sum((log.usage[key] for key in tried.keys if key in log.usage), Usage()))
        for step, log in cell.steps.items()
        for tried in log.attempts
    ]


def pieces(opened: Workspace, row: Row, stage: str) -> list[Piece]:
    """What a stage makes: its parts; each verifier asked for or there."""
    newest: dict[tuple[str, str], Version | None] = {}
    if stage == "verification":
        slots = [step.partition(" ")[2] for step in row.cells[stage].steps]
        newest = {("verifier", slot): None for slot in slots if slot}
    else:
        newest = {(part.value, ""): None for part in STAGES[stage]}
    if row.name in opened.catalog.names():
        there = opened.catalog.current(row.name)
        newest |= {(v.part.value, v.slot): v for v in there if v.part in STAGES[stage]}
    return [Piece(part, slot, version) for (part, slot), version in newest.items()]


def prompt(opened: Workspace, row: Row, stage: str, step: str | None = None) -> str:
    """The prompt of the last attempt of a stage, or of one of its steps. Raises UserError where nothing was asked."""
    found = [each for each in tries(row.cells[stage]) if each.tried.keys and step in (None, each.step)]
    if not found:
        raise UserError(f"Nothing has been asked for the {stage} stage of {row.title} yet.")
    return prompt_of(opened, found[-1].tried)


def prompt_of(opened: Workspace, tried: Tried) -> str:
    """What was sent for an attempt. Raises UserError where it is not kept (any more)."""
    with _replies(opened) as replies:
        document: dict[str, Any] | None = replies.request(tried.keys[0]) if tried.keys else None
    if document is None:
        raise UserError("The prompt is not among the kept replies any more.")
    return "\n\n".join(f"== {message['role']}\n{message['content']}" for message in document["messages"])


def content_of(opened: Workspace, tried: Tried) -> str:
    """What an attempt came to, empty where its reply could not be read."""
    if tried.content is None:
        return ""
    with _replies(opened) as replies:
        return replies.text(tried.content)


def present(opened: Workspace, row: Row, stage: str, part: str, slot: str) -> str:
    """The present content of a part, or of the last attempt at it where none was right; empty where there is none."""
    if versions := opened.catalog.versions(row.name, part, slot):
        return opened.catalog.content(versions[-1].sha)
    log = row.cells[stage].steps.get(f"{part} {slot}".rstrip())
    kept = [tried for tried in log.attempts if tried.content] if log else []
    return content_of(opened, kept[-1]) if kept else ""


def version_before(opened: Workspace, row: Row, each: Try) -> Version | None:
    """The version of a part that an attempt was to replace: what was rejected, edited or asked for again, if any."""
    part, _, slot = each.step.partition(" ")
    versions = opened.catalog.versions(row.name, part, slot)
    content = content_of(opened, each.tried)
    made = next((n for n, version in enumerate(versions) if opened.catalog.content(version.sha) == content), None)
    earlier = versions[:made]
    return earlier[-1] if earlier else None


def live_file(opened: Workspace, run: int, row: Row, stage: str) -> Path | None:
    """The file that the stage's newest reply streams (or streamed) into, or None before the first."""
    from pipeline.engine import live

    files = [live.live_file(opened.runs / str(run), row.name, step) for step in list(row.cells[stage].steps)]
    written = [(file.stat().st_mtime_ns, file) for file in files if file.exists()]
    return max(written)[1] if written else None


def live_tail(file: Path, size: int = TAIL) -> str:
    """The newest part of a reply that is being written."""
    with file.open("rb") as opened:
        opened.seek(0, 2)
        opened.seek(max(0, opened.tell() - size))
        return opened.read().decode("utf-8", "replace")


@contextmanager
def _replies(opened: Workspace) -> Generator[Replies]:
    from pipeline.llm.replies import FILE_NAME, Replies

    replies = Replies(opened.path / FILE_NAME)
    try:
        yield replies
    finally:
        replies.close()
