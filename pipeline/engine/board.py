"""What is true now in a run: a fold over its events, the same in the engine, the command line and the studio.

Events, with their data (those of one scenario carry its name):

- `run`: `state` (running, paused, ended), `why`
- `changed`: any of `count`, `budget`, `gates`, `models` (by stage, as profiles)
- `round`: `number`, then `requests` and `room` when it begins, `admitted` and `refused` when it has ended
- `scenario`: `title`, `category`, `description`, `score`, `round`: one was admitted
- `stage`: `stage`, `state`, `why`, and `fault` where a model or server is the reason
- `asked`, `replied`, `lost`, `again`: `stage`, `step`, and what `pipeline.llm.client.Watch` tells
- `attempt`: `stage`, `step`, `number`, `right`, `findings`, `keys` of the kept reply, `content` (its digest)
- `made`: `stage`, `step`, `version` (its id), `by` where a person wrote it
- `redo`: `stage`, `part`, `slot`, `base` (a version's id, or None), `say`, `keep`: made again from there on (of no
  scenario: stage 1 is tried again)
- `row`: `paused` or `dropped`
- `command`: `do` and what it needs, `by`; `taken`: `command` (its event), `ok`, `said`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pipeline.llm.request import Usage
from pipeline.model import STAGES
from pipeline.records import Event

if TYPE_CHECKING:
    from pipeline.catalog import Catalog

AFTER_SCENARIO = tuple(stage for stage in STAGES if stage != "scenario")
"""The stages each admitted scenario goes through."""


class State(StrEnum):
    """How a stage of a scenario stands; the value is the word shown."""

    queued = "queued"
    running = "running"
    correcting = "correcting"
    waiting = "waiting"  # for a person: a decision, or a fault to be put right
    done = "done"
    failed = "failed"
    stale = "stale"  # made from what has changed since


GLYPHS: Mapping[State | str, str] = {
    State.queued: "·",
    State.running: "▶",
    State.correcting: "↻",
    State.waiting: "?",
    State.done: "✓",
    State.failed: "✗",
    State.stale: "~",
    "paused": "‖",
}
"""One sign a state, so that it never depends on colour."""

ACTIVE = frozenset({State.queued, State.running, State.correcting, State.stale})
"""States in which the engine, not a person, acts next."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One recorded attempt of a step."""

    number: int
    right: bool
    findings: tuple[dict[str, Any], ...]
    keys: tuple[str, ...]  # of the kept replies, which lead to the prompt
    content: str | None  # the digest its content is kept under


@dataclass(slots=True)
class StepLog:
    """What is recorded of one step in the present generation of its stage."""

    attempts: list[Tried] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)  # by the key of the reply, each counted once
    version: int | None = None  # the version that was made
    by: str = ""  # the person who wrote that version
    base: int | None = None  # the version to start from
    reason: str = ""  # why a person sent that version back

    @property
    def cost(self) -> Usage:
        """What all attempts cost when their replies were made."""
        return sum(self.usage.values(), Usage())


@dataclass(slots=True)
class Cell:
    """One stage of one scenario."""

    state: State = State.queued
    why: str = ""
    fault: str = ""
    generation: int = 0
    keep: bool = False  # what is there is kept where it is still valid
    hint: str = ""  # a person's words for what is made in this generation
    steps: dict[str, StepLog] = field(default_factory=dict)
    tries: int = 0  # attempts over all generations
    tokens: int = 0
    usd: float | None = None
    seconds: float = 0.0  # of the model
    began: datetime | None = None
    ended: datetime | None = None

    def step(self, name: str) -> StepLog:
        """The log of a step, by `Step.name`."""
        return self.steps.setdefault(name, StepLog())

    @property
    def asked(self) -> str:
        """A person's words for what is made now: a hint, or why the version before was sent back."""
        return self.hint or next((log.reason for log in self.steps.values() if log.reason), "")

    @property
    def attempt(self) -> int:
        """The number of the attempt that is being made, or was made last, over the stage's steps."""
        return max((len(log.attempts) + (log.version is None) for log in self.steps.values()), default=1)

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What the checks of the last attempt of each step found."""
        return [finding for log in self.steps.values() if log.attempts for finding in log.attempts[-1].findings]


@dataclass(slots=True)
class Row:
    """One scenario's way through the stages. `number` counts them from 1 in the order they were admitted."""

    number: int
    name: str
    title: str
    category: str
    description: str
    score: float | None
    round: int
    cells: dict[str, Cell]
    began: datetime
    changed: datetime
    paused: bool = False
    dropped: bool = False

    @property
    def stage(self) -> str:
        """The first stage that is not done, or the last one."""
        return next((name for name, cell in self.cells.items() if cell.state is not State.done), "verification")

    @property
    def state(self) -> State:
        """How the scenario stands: the state of its present stage."""
        return self.cells[self.stage].state

    @property
    def tokens(self) -> int:
        """Tokens of all stages."""
        return sum(cell.tokens for cell in self.cells.values())

    @property
    def usd(self) -> float | None:
        """Money of all stages, None where none of it is known."""
        known = [cell.usd for cell in self.cells.values() if cell.usd is not None]
        return sum(known) if known else None


@dataclass(slots=True)
class Round:
    """One round of stage 1."""

    requests: int
    room: int
    ended: bool = False
    admitted: int = 0
    refused: tuple[dict[str, str], ...] = ()


class Board:
    """The state of a run. Feed it the run's events in order with `apply`."""

    def __init__(self) -> None:
        self.state = "queued"
        self.why = ""
        self.count = 0
        self.budget: float | None = None
        self.gates: dict[str, str] = {}
        self.models: dict[str, dict[str, Any]] = {}
        self.rows: dict[str, Row] = {}
        self.rounds: dict[int, Round] = {}
        self.source = Cell()  # stage 1, which belongs to no scenario
        self.dry_since = 0  # the round from which on rounds without anything new are counted
        self.spent = 0.0  # US dollars paid in this run, lost calls included
        self.pending: dict[int, Event] = {}  # commands that nobody has taken, by event id
        self.answers: dict[int, tuple[bool, str]] = {}  # whether each command was done, and what was said
        self.last_event = 0
        self._open: dict[tuple[str | None, str, str], float] = {}  # money set aside for calls in flight

    def apply(self, event: Event) -> None:
        """Take in one event."""
        self.last_event = event.id
        row = self.rows.get(event.scenario or "")
        if row is not None:
            row.changed = event.created_at
        take = getattr(self, f"_on_{event.kind}", None)
        if take is not None:
            take(event, row, event.data)

    def apply_all(self, events: Iterable[Event]) -> Board:
        """Take in several events."""
        for event in events:
            self.apply(event)
        return self

    @property
    def in_flight(self) -> list[tuple[str | None, str, str, float]]:
        """Calls whose end is not recorded, as (scenario, step, key, money set aside): a killed engine's loss."""
        return [(*call, usd) for call, usd in self._open.items()]

    @property
    def paused(self) -> bool:
        """Whether the whole run is paused by a person."""
        return self.state == "paused"

    @property
    def wanted(self) -> list[Row]:
        """The rows that count towards the number asked for."""
        return [row for row in self.rows.values() if not row.dropped]

    @property
    def dry_rounds(self) -> int:
        """How many rounds in a row, up to the last one that ended, admitted nothing."""
        dry = 0
        for number in sorted(self.rounds, reverse=True):
            if number <= self.dry_since or (self.rounds[number].ended and self.rounds[number].admitted):
                break
            dry += self.rounds[number].ended
        return dry

    def waiting(self) -> Iterator[tuple[Row, str, Cell]]:
        """The stages that wait for a person, in the order of rows."""
        for row in self.wanted:
            for stage, cell in row.cells.items():
                if cell.state is State.waiting:
                    yield row, stage, cell

    def counts(self) -> dict[State, int]:
        """Rows by state, dropped ones left out."""
        counts = dict.fromkeys(State, 0)
        for row in self.wanted:
            counts[row.state] += 1
        return counts

    # What each kind of event changes

    def _on_run(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        self.state, self.why = data["state"], data.get("why", "")

    def _on_changed(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        self.count = data.get("count", self.count)
        self.budget = data.get("budget", self.budget)
        self.gates = data.get("gates", self.gates)
        self.models |= data.get("models", {})

    def _on_round(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        if "requests" in data:
            self.rounds[data["number"]] = Round(data["requests"], data["room"])
        else:
            found = self.rounds[data["number"]]
            found.ended, found.admitted, found.refused = True, len(data["admitted"]), tuple(data["refused"])

    def _on_scenario(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        if row is not None or event.scenario is None:
            return
        self.rows[event.scenario] = Row(
            number=len(self.rows) + 1,
            name=event.scenario,
            title=data["title"],
            category=data["category"],
            description=data["description"],
            score=data["score"],
            round=data["round"],
            cells={stage: Cell() for stage in STAGES},
            began=event.created_at,
            changed=event.created_at,
        )

    def _on_stage(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        cell = self._cell(row, data)
        cell.state, cell.why, cell.fault = State(data["state"]), data.get("why", ""), data.get("fault", "")
        if cell.state in (State.running, State.queued):
            cell.began, cell.ended = event.created_at, None
        elif cell.state in (State.done, State.failed):
            cell.ended = event.created_at

    def _on_asked(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        self._open[event.scenario, data["step"], data["key"]] = data.get("most_usd") or 0.0

    def _on_lost(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        self._open.pop((event.scenario, data["step"], data["key"]), None)
        self.spent += data.get("usd") or 0.0

    def _on_replied(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        self._open.pop((event.scenario, data["step"], data["key"]), None)
        cell = self._cell(row, data)
        log = cell.step(data["step"])
        if not data["replayed"]:
            self.spent += data.get("usd") or 0.0
        if data["key"] not in log.usage:
            log.usage[data["key"]] = Usage(
                data["tokens_in"], data["tokens_out"], data["usd"], data["seconds"], data["counted"]
            )
            cell.tokens += data["tokens_in"] + data["tokens_out"]
            cell.seconds += data["seconds"]
            self._pay(cell, data["usd"])

    def _on_attempt(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        cell = self._cell(row, data)
        tried = Tried(data["number"], data["right"], tuple(data["findings"]), tuple(data["keys"]), data["content"])
        cell.step(data["step"]).attempts.append(tried)
        cell.tries += 1
        if not data["right"] and cell.state is State.running:
            cell.state = State.correcting

    def _on_made(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        log = self._cell(row, data).step(data["step"])
        log.version, log.by = data["version"], data.get("by", "")

    def _on_redo(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        if row is None:
            self.dry_since, self.source.state = max(self.rounds, default=0), State.queued
            return
        stage, part, slot = data["stage"], data["part"], data["slot"]
        cell = row.cells[stage]
        for name in _to_clear(cell, stage, part, slot):
            del cell.steps[name]
        cell.generation += 1
        cell.state, cell.why, cell.fault, cell.keep = State.queued, "", "", False
        cell.hint = data["say"] if data["base"] is None else ""
        if data["base"] is not None:
            log = cell.step(f"{part} {slot}".rstrip())
            log.base, log.reason = data["base"], data["say"]
        if slot:  # one of several that do not depend on one another, and nothing depends on it
            return
        for name in list(STAGES)[list(STAGES).index(stage) + 1 :]:
            after = row.cells[name]
            if after.state is not State.queued or after.steps:
                after.generation += 1
                after.steps.clear()
                after.state, after.why, after.fault, after.keep, after.hint = State.stale, "", "", data["keep"], ""

    def _on_row(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        if row is not None:
            row.paused = data.get("paused", row.paused)
            row.dropped = data.get("dropped", row.dropped)

    def _on_command(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        self.pending[event.id] = event

    def _on_taken(self, event: Event, row: Row | None, data: dict[str, Any]) -> None:
        self.pending.pop(data["command"], None)
        self.answers[data["command"]] = data["ok"], data["said"]

    def _cell(self, row: Row | None, data: dict[str, Any]) -> Cell:
        return self.source if row is None else row.cells[data["stage"]]

    @staticmethod
    def _pay(cell: Cell, usd: float | None) -> None:
        if usd is not None:
            cell.usd = (cell.usd or 0.0) + usd


def _to_clear(cell: Cell, stage: str, part: str, slot: str) -> list[str]:
    """The steps to make again: the slot; or the part and those after it; or what is not made yet; or all."""
    if slot:
        return [name for name in cell.steps if name == f"{part} {slot}"]
    if part:
        parts = [str(each) for each in STAGES[stage]]
        later = parts[parts.index(part) :]
        return [name for name in cell.steps if name.partition(" ")[0] in later]
    unmade = [name for name, log in cell.steps.items() if log.version is None]
    return unmade or list(cell.steps)


def read(catalog: Catalog, run: int, board: Board | None = None) -> Board:
    """The board of a run, or the same board with the events that have come since."""
    board = board or Board()
    while events := catalog.events(board.last_event, run=run):
        board.apply_all(events)
    return board
