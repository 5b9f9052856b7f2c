"""What happened in a rollout, as a record that says everything: what was shown, said, called and answered.

A record is one JSON object. Databases are not in it: it names the initial and the final one by their sha256, and the
calls in it lead from one to the other, byte for byte (see `replay`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_origin, get_type_hints

from pipeline.llm.request import Message, ToolCall
from pipeline.model import Part
from train.protocol import NOT_MADE, Form, Said
from train.reward import Reward
from train.rules import Rules

T = TypeVar("T")


class End(StrEnum):
    """Why a rollout ended."""

    answered = "answered"
    format_error = "format_error"  # a slip, where slips end rollouts
    environment_error = "environment_error"  # the environment answered with a server error, or not in time
    model_error = "model_error"  # the model's server gave no reply
    turn_limit = "turn_limit"
    context_limit = "context_limit"
    time_limit = "time_limit"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: what the agent said, how it was understood, and what it was shown for it.

    `move` and `slip` as in `protocol`. Of a call, `status` is the HTTP status and `fault` the kind of error. `shown` is
    the result as the agent saw it. Times in seconds: of the model's answer, and of the environment's.
    """

    content: str
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    move: str = "answer"
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    slip: str | None = None
    status: int | None = None
    fault: str | None = None
    shown: str | None = None
    model_s: float = 0.0
    tool_s: float = 0.0

    @property
    def said(self) -> Said:
        """The turn as it came from the agent."""
        return Said(**{part.name: getattr(self, part.name) for part in fields(Said)})


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout: agent `policy` at task number `task` of an environment, for the `attempt`-th time (from 0).

    `contents` are the digests of the environment's parts by "part/slot", and `now` the pinned time, so that the
    environment can be brought back as it was. `initial` and `final` are the digests of the databases, `diff` is what
    differs between them (see `pipeline.runtime.diff`). `started` is in UTC, `step` the training step it belongs to.
    """

    environment: str
    task: int
    attempt: int
    text: str
    policy: str
    rules: Rules
    contents: Mapping[str, str]
    now: str
    head: tuple[Message, ...]
    turns: tuple[Turn, ...]
    end: End
    detail: str = ""
    answer: str | None = None
    initial: str = ""
    final: str = ""
    diff: Mapping[str, Any] = field(default_factory=dict)
    started: str = ""
    seconds: float = 0.0
    step: int | None = None
    reward: Reward | None = None

    @property
    def key(self) -> str:
        """What tells this rollout from the others of its run."""
        return rollout_key(self.environment, self.task, self.attempt)

    @property
    def tool_calls(self) -> int:
        """How many calls of tools were made."""
        return sum(turn.move == "call" for turn in self.turns)

    def messages(self) -> list[Message]:
        """The whole conversation."""
        return [*self.head, *(message for exchange in self.exchanges() for message in exchange)]

    def exchanges(self) -> Iterator[list[Message]]:
        """The turns as messages: what the agent said, and what it was shown."""
        for number, turn in enumerate(self.turns):
            yield exchange(turn, number, self.rules)

    def to_json(self) -> dict[str, Any]:
        """The record as one JSON object."""
        record = {part.name: getattr(self, part.name) for part in fields(self)}
        record["rules"] = self.rules.model_dump(mode="json", exclude_defaults=True)
        record["head"] = [message.document() for message in self.head]
        record["turns"] = [_short(asdict(turn)) for turn in self.turns]
        record["reward"] = self.reward.to_json() if self.reward else None
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Trajectory:
        """Read what `to_json` made. Raises KeyError, TypeError or ValueError where it is something else."""
        values = _known(cls, record)
        values["rules"] = Rules.model_validate(record["rules"])
        values["head"] = tuple(fitting(Message(message["role"], message["content"])) for message in record["head"])
        values["turns"] = tuple(_turn(turn) for turn in record["turns"])
        values["end"] = End(record["end"])
        values["reward"] = fitting(Reward.from_json(record["reward"])) if record.get("reward") else None
        trajectory = fitting(cls(**values))
        if trajectory.contents:  # what names an environment names when it was, too
            datetime.fromisoformat(trajectory.now)
        for key in trajectory.contents:
            Part(key.partition("/")[0])
        return trajectory


def rollout_key(environment: str, task: int, attempt: int) -> str:
    """What tells a rollout from the others of its run."""
    return f"{environment}/{task}/{attempt}"


def exchange(turn: Turn, number: int, rules: Rules) -> list[Message]:
    """A turn as messages: what the agent said, and what it was shown for it."""
    said = Message("assistant", turn.content, turn.calls)
    if turn.shown is None:
        return [said]
    if rules.form is Form.text:
        if rules.results_as == "user":
            return [said, Message("user", f"Tool response:\n{turn.shown}")]
        return [said, Message("tool", turn.shown, call_id=f"call_{number}")]
    results = [turn.shown, *(NOT_MADE for _ in turn.calls[1:])]
    pairs = zip(turn.calls, results, strict=True)
    return [said, *(Message("tool", result, call_id=call.id) for call, result in pairs)]


def _short(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A turn without what is as usual, as most of it is."""
    return {name: value for name, value in turn.items() if name in ("content", "move") or value != _USUAL[name]}


_USUAL = asdict(Turn(content=""))


def _turn(record: Mapping[str, Any]) -> Turn:
    values = _known(Turn, record)
    for name in ("prompt_ids", "completion_ids", "logprobs", "dropped"):
        values[name] = tuple(values.get(name, ()))
    values["calls"] = tuple(fitting(ToolCall(**call)) for call in values.get("calls", ()))
    values["dropped"] = tuple(map(str, values["dropped"]))
    return fitting(Turn(**values))


def _known(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a kind of record that are in an object."""
    if not isinstance(record, Mapping):
        raise TypeError(f"{str(record)[:60]!r} is not an object")
    return {name: record[name] for name in _kinds(kind) if name in record}


def fitting(record: T) -> T:
    """A record as it is. Raises TypeError where a field holds something else than it says."""
    for name, kind in _kinds(type(record)).items():
        value = getattr(record, name)
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {str(value)[:60]!r}")
    return record


@cache
def _kinds(record: type) -> dict[str, Any]:
    """What `isinstance` can tell of each field: a whole number is a number, and a literal is a text."""
    found = {}
    for name, hint in get_type_hints(record).items():
        kind = get_origin(hint) or hint
        found[name] = str if kind is Literal else hint if kind is UnionType else int | float if kind is float else kind
    return found
