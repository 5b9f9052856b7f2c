"""What a training's events come to as curves: which figures there are, what they mean, and their points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from train.run_log import is_number

Points = list[tuple[float, float]]
"""Steps and values, in the order they came."""

STEP_OF = {"step": "step", "try": "step", "warmup": "warmup_step"}
"""Which field of an event of a kind says the step."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line: its name, and the figures of an event that it is made of: the first one, less the others."""

    name: str
    figures: tuple[str, ...]

    def value(self, event: Mapping[str, Any]) -> float | None:
        """Its value at an event; None where the event lacks a figure, or it is none."""
        values = [value for figure in self.figures if is_number(value := event.get(figure))]
        if len(values) < len(self.figures):
            return None
        return values[0] - sum(values[1:])


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves that are looked at together. `is_share` marks shares, whose axis goes from 0 to 1."""

    key: str
    title: str
    about: str
    curves: tuple[Curve, ...]
    kind: str = "step"
    is_share: bool = False


def _curves(**figures: str) -> tuple[Curve, ...]:
    return tuple(Curve(name.replace("_", " "), tuple(keys.split())) for name, keys in figures.items())


CHARTS = (
    Chart("reward", "reward", "Mean of a step's rollouts, and the mean spread (standard deviation) within its groups: "
          "without spread there is nothing to learn from.",
          _curves(mean="reward", spread="reward_std")),
    Chart("held_out", "held-out complete", "Share of the tries at held-out tasks that were complete.",
          _curves(complete="rate"), kind="try", is_share=True),
    Chart("outcome", "outcomes", "Shares of a step's rollouts by what they achieved; those that ended with an error "
          "of form have no outcome.",
          _curves(complete="outcome/complete", partial="outcome/partial", agent_error="outcome/agent_error"),
          is_share=True),
    Chart("errors", "errors", "Shares of a step's rollouts that ended with an error of form, or of the environment.",
          _curves(format="end/format_error", environment="end/environment_error"), is_share=True),
    Chart("limits", "limits reached", "Shares of a step's rollouts that ended at a limit of turns, tokens or time.",
          _curves(turns="end/turn_limit", context="end/context_limit", time="end/time_limit"), is_share=True),
    Chart("turns", "turns", "Turns of a rollout, on average.", _curves(turns="rollout/turns")),
    Chart("tokens", "tokens a turn", "What was said in a turn, on average.", _curves(said="rollout/response_tokens")),
    Chart("context", "tokens of context", "What a turn was conditioned on, on average.",
          _curves(context="rollout/context_tokens")),
    Chart("kl", "KL", "Divergence from the model that training began with, a token; there only where beta is above 0.",
          _curves(kl="kl")),
    Chart("clip", "clip fraction", "Share of the tokens whose gradient was clipped.",
          _curves(clipped="clip_ratio/region_mean")),
    Chart("entropy", "entropy", "Of what the policy would say next, in nats a token.", _curves(entropy="entropy")),
    Chart("seconds", "seconds a step", "What the rollouts took, and the rest of the step.",
          _curves(rollouts="rollout/seconds", training="step_time rollout/seconds")),
    Chart("loss", "loss", "Of reinforcement learning: near 0 by construction.", _curves(loss="loss")),
    Chart("warmup", "warm start: loss", "Of the supervised training before.", _curves(loss="loss"), kind="warmup"),
)  # fmt: skip
"""Every chart of a training, in the order they are shown."""


@dataclass
class Curves:
    """The curves of one training, which grow with its events."""

    points: dict[tuple[str, str], Points] = field(default_factory=dict)

    def add(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take in events."""
        for event in events:
            for chart in CHARTS:
                if chart.kind == event["kind"]:
                    self._add(chart, event)

    def _add(self, chart: Chart, event: Mapping[str, Any]) -> None:
        for curve in chart.curves:
            value = curve.value(event)
            if value is not None:
                step = float(event[STEP_OF[chart.kind]])
                self.points.setdefault((chart.key, curve.name), []).append((step, value))

    def of(self, chart: Chart) -> dict[str, Points]:
        """The curves of a chart that have points, by name."""
        found = ((curve.name, self.points.get((chart.key, curve.name), [])) for curve in chart.curves)
        return {name: points for name, points in found if points}

    @property
    def charts(self) -> list[Chart]:
        """The charts that have something to show."""
        return [chart for chart in CHARTS if self.of(chart)]


def curves_of(events: Iterable[Mapping[str, Any]]) -> Curves:
    """The curves of these events."""
    made = Curves()
    made.add(events)
    return made


def bounds(curves: Iterable[Sequence[tuple[float, float]]], *, is_share: bool) -> tuple[float, float, float, float]:
    """What axes must hold: the smallest and largest step, the smallest and largest value.

    Shares are shown from 0 to 1. Others get a value of 0 too where that costs at most a third of the height, and a
    curve that does not move lies in the middle.
    """
    everything = [point for points in curves for point in points]
    steps, values = [step for step, _ in everything] or [0.0], [value for _, value in everything] or [0.0]
    left, right, low, high = min(steps), max(steps), min(values), max(values)
    if is_share:
        low, high = 0.0, 1.0
    elif 0 < low <= high / 3:
        low = 0.0
    if low == high:
        room = abs(low) / 2 or 1.0
        low, high = low - room, high + room
    return left, right if right > left else left + 1, low, high
