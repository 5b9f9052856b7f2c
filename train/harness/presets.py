"""How much of a benchmark is run: a few tasks to see that it works, a part, or everything."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.errors import UserError


@dataclass(frozen=True, slots=True)
class Preset:
    """A choice of tasks. `ids` are named tasks by domain; `split` is a domain's own list of them.

    `most` is how many tasks of each domain are taken, in the harness's order; None: all.
    """

    suite: str
    name: str
    about: str
    domains: tuple[str, ...] = ()
    ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    split: str = "base"
    most: int | None = None

    @property
    def first(self) -> int | None:
        """How many tasks of a domain that is asked for instead of its own: `most`, or as many as it names of one."""
        return self.most or max(map(len, self.ids.values()), default=None)


PRESETS = (
    Preset(
        "bfcl",
        "smoke",
        "6 tasks: does it work at all?",
        ids={
            "simple": ("simple_0", "simple_1"),
            "parallel": ("parallel_0",),
            "irrelevance": ("irrelevance_0",),
            "multi_turn_base": ("multi_turn_base_0", "multi_turn_base_1"),
        },
    ),
    Preset("bfcl", "quick", "the first 50 multi-turn base tasks", domains=("multi_turn_base",), most=50),
    Preset("bfcl", "paper", "all 17 categories"),
    Preset("tau2", "smoke", "5 airline tasks: does it work at all?", ids={"airline": ("0", "1", "2", "3", "4")}),
    Preset("tau2", "quick", "telecom's small split of 20 tasks", domains=("telecom",), split="small"),
    Preset("tau2", "paper", "airline, retail and telecom, all tasks", domains=("airline", "retail", "telecom")),
    Preset("mcp-universe", "smoke", "2 tasks of each domain that is ready", most=2),
    Preset("mcp-universe", "quick", "10 tasks of each domain that is ready", most=10),
    Preset("mcp-universe", "paper", "all tasks of each domain that is ready"),
)


def presets(suite: str) -> list[Preset]:
    """The presets of a suite, smallest first."""
    return [preset for preset in PRESETS if preset.suite == suite]


def preset(suite: str, name: str) -> Preset:
    """A suite's preset of that name. Raises UserError where there is none."""
    for found in presets(suite):
        if found.name == name:
            return found
    there = ", ".join(found.name for found in presets(suite))
    raise UserError(f"{suite} has no preset {name!r}: there are {there}.")
