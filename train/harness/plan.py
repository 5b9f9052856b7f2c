"""What an evaluation by a harness does, with everything that going on with it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.llm.profiles import Profile
from train.evaluate_report import Item
from train.harness import launching
from train.proxy import WINDOW

MODEL = "awm-studio"
"""What harnesses know the model as. They look for meanings in real names; the proxy puts in the right one."""

LOG, CALLS, USER_CALLS = "harness.log", "calls.jsonl", "user-calls.jsonl"
"""Files in a run's folder: the harness's own words, what the model was asked, what the simulated user was asked."""


class Plan(BaseModel):
    """An evaluation by a harness, as its run's folder keeps it. Keys are named in profiles, never held."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    suite: Literal["bfcl", "tau2", "mcp-universe"]
    version: str
    preset: str
    wanted: dict[str, list[str]]
    """The tasks' ids (or files), by domain or category."""
    model: Profile
    user: Profile | None = None
    """τ²-bench only: the model that plays the user."""
    protocol: Literal["awm", "native"] = "awm"
    window: int | None = WINDOW
    """Exchanges that the model sees, in the AWM protocol; None: all."""
    parallel: Literal["first", "all"] = "first"
    """Which calls of a turn are made, in the AWM protocol."""
    tries: int = Field(1, ge=1)
    """τ²-bench only: simulations of each task."""
    split: str = "base"
    """τ²-bench only: the domain's own list that the ids are of."""
    at_once: int = Field(1, ge=1)
    """Tasks at once; MCP-Universe's runner does one at a time."""
    checkpoint: Path | None = None
    """The folder of a model that is served on this machine while the harness runs, instead of another server."""
    tasks: Path | None = None
    """MCP-Universe only: the folder of a checkout that the tasks are in."""
    digest: str = ""
    """MCP-Universe only: what the contents of the task files came to."""

    @property
    def name(self) -> str:
        """Who is evaluated: the model's name at its server, or the checkpoint's folder."""
        return str(self.checkpoint or self.model.model)

    @property
    def total(self) -> int:
        """How many tries there are."""
        return self.tries * sum(map(len, self.wanted.values()))


@dataclass(frozen=True, slots=True)
class Standing:
    """How a running evaluation stands: tries that ended, and of those, judged, passed, and excluded."""

    done: int
    judged: int = 0
    passed: int = 0
    excluded: int = 0

    @classmethod
    def of(cls, items: Iterable[Item]) -> Standing:
        """What items come to."""
        items = list(items)
        judged = sum(len(item.passes) for item in items)
        excluded = sum(sum(item.excluded.values()) for item in items)
        return cls(judged + excluded, judged, sum(sum(item.passes) for item in items), excluded)


@dataclass(frozen=True, slots=True)
class Job:
    """A plan being worked on: where, by which interpreter, and the proxies to ask. `look` is called while it runs."""

    plan: Plan
    folder: Path
    python: Path
    base_url: str
    user_url: str
    look: Callable[[], None]

    @property
    def root(self) -> Path:
        """The harness's own root folder."""
        return self.folder / "harness"

    def run(self, script: str, arguments: Sequence[str], more: Mapping[str, str] = {}) -> int:
        """Run one of our scripts in the harness's environment, with `more` in its environment; the exit code."""
        return launching.run(
            self.python,
            script,
            arguments,
            root=self.root,
            log=self.folder / LOG,
            environ=launching.environment(self.python, self.root, more),
            look=self.look,
        )
