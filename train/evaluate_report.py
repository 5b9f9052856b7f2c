"""What an evaluation found, in one form for every suite: a score on what was judged, and everything it rests on."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from curation.estimates import Interval
from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.json_lines import json_line
from train.pass_rates import mean_of_tasks, pass_at_k, pass_hat_k
from train.rates import shown_interval

FILE = "report.json"
"""The file in a run's folder that holds the report."""

State = Literal["done", "stopped", "not run"]

FORM: Mapping[str, Any] = {
    "suite": str, "version": str, "n": int, "total": int, "excluded": int, "excluded_why": dict,
    "score": int | float | None, "interval": list | None, "state": str, "why": str, "tasks": int,
    "pass": list, "by": dict, "items": list,
}  # fmt: skip
PASS_KEYS = frozenset({"k", "tasks", "at", "at_interval", "hat", "hat_interval"})
GROUP_KEYS = frozenset({"value", "tasks", "n", "score", "interval"})
"""What every report has, and every row of its tables."""


@dataclass(frozen=True, slots=True)
class Item:
    """One task of a suite: which of its tries passed, in their order.

    `excluded` counts the tries that say nothing about the agent, by why. `labels` are what reports break down by, for
    example {"concept": …, "domain": …}.
    """

    id: str
    passes: tuple[bool, ...]
    excluded: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """How many of its tries passed, as a share; None where none was judged."""
        return sum(self.passes) / len(self.passes) if self.passes else None


def report(
    suite: str, version: str, items: Sequence[Item], *, total: int, state: State, why: str = "", **about: Any
) -> dict[str, Any]:
    """The report of an evaluation of which `total` tries were planned.

    `score` is the mean over tasks of the share of tries that passed; it is None, and the state "not run", where
    nothing was judged. `n` counts judged tries. `about` is added as it is: settings, times, tokens.
    """
    score = mean_of_tasks(_shares(items))
    excluded: dict[str, int] = defaultdict(int)
    for item in items:
        for reason, count in item.excluded.items():
            excluded[reason] += count
    return {
        "suite": suite,
        "version": version,
        "n": sum(len(item.passes) for item in items),
        "total": total,
        "excluded": sum(excluded.values()),
        "excluded_why": dict(excluded),
        "score": _rounded(score),
        "interval": shown_interval(score),
        "state": "not run" if score is None else state,
        "why": why,
        "tasks": sum(bool(item.passes) for item in items),
        "pass": _pass(items),
        "by": _by(items),
        **about,
        "items": [asdict(item) for item in items],
    }


def keep_report(folder: Path, document: Mapping[str, Any]) -> None:
    """Write a report into a run's folder, whole or not at all. Raises UserError where the disk is full."""
    try:
        replace_file(folder / FILE, json_line(document))
    except OSError as error:
        raise UserError(
            f"{folder / FILE} cannot be written ({error.strerror}): free some space, then resume."
        ) from error


def read_report(folder: Path) -> dict[str, Any]:
    """The report of a run. Raises UserError where there is none, or it is damaged: a NaN in it is damage."""
    path = folder / FILE
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse)
        _require_form(document)
        items_of(document)
    except OSError as error:
        raise UserError(f"There is no report at {path} ({error.strerror}): the evaluation has not run.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}): delete it and resume the evaluation to make it again.") from None
    return document


def _require_form(document: Mapping[str, Any]) -> None:
    """Raises an error where something is not there, or is something else, that every report has (see `report`)."""
    for name, kind in FORM.items():
        if not isinstance(document[name], kind):
            raise TypeError(f"{name} is {str(document[name])[:60]!r}")
    rows = [(PASS_KEYS, row) for row in document["pass"]]
    rows += [(GROUP_KEYS, row) for group in document["by"].values() for row in group]
    for keys, row in rows:
        if missing := keys - row.keys():
            raise KeyError(min(missing))


def items_of(document: Mapping[str, Any]) -> list[Item]:
    """The tasks in a report. Raises KeyError, TypeError or ValueError where it is something else."""
    return [
        Item(str(item["id"]), tuple(map(_passed, item["passes"])), item["excluded"], item["labels"])
        for item in document["items"]
    ]


def _passed(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} says neither passed nor failed")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a result")


def _shares(items: Iterable[Item]) -> list[float]:
    return [item.share for item in items if item.share is not None]


def _rounded(interval: Interval | None) -> float | None:
    return None if interval is None else round(interval.estimate, 4)


def _pass(items: Sequence[Item]) -> list[dict[str, Any]]:
    """pass@k and pass^k for k = 1, 2, 4, 8 and so on, and the most tries there are; a task with fewer is not in it."""
    rows = []
    most = max((len(item.passes) for item in items), default=0)
    for k in sorted({most, *(2**power for power in range(most.bit_length()))} if most else ()):
        counts = [(len(item.passes), sum(item.passes)) for item in items if len(item.passes) >= k]
        at, hat = (mean_of_tasks([of(n, c, k) for n, c in counts]) for of in (pass_at_k, pass_hat_k))
        rows.append(
            {
                "k": k,
                "tasks": len(counts),
                "at": _rounded(at),
                "at_interval": shown_interval(at),
                "hat": _rounded(hat),
                "hat_interval": shown_interval(hat),
            }
        )
    return rows


def _by(items: Sequence[Item]) -> dict[str, list[dict[str, Any]]]:
    """The score within each value of each label, largest groups first."""
    groups: dict[str, dict[str, list[Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        for label, value in item.labels.items():
            groups[label][value].append(item)
    return {label: [_group(value, members) for value, members in _by_size(found)] for label, found in groups.items()}


def _by_size(found: Mapping[str, list[Item]]) -> list[tuple[str, list[Item]]]:
    return sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0]))


def _group(value: str, members: Sequence[Item]) -> dict[str, Any]:
    score = mean_of_tasks(_shares(members))
    return {
        "value": value,
        "tasks": sum(bool(item.passes) for item in members),
        "n": sum(len(item.passes) for item in members),
        "score": _rounded(score),
        "interval": shown_interval(score),
    }
