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
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

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
        """Read what `to_json` made. Raises ValueError, which names the field, where it is something else."""
        trajectory = validated(cls, record)
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


def validated(kind: type[T], record: Any) -> T:
    """A record of a kind. Raises ValueError, which names the field, where it is something else."""
    try:
        return _adapter(kind).validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the record"
        raise ValueError(f"{where}: {first['msg']}") from None


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)
