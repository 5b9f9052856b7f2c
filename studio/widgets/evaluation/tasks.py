"""The tasks of an evaluation, those that failed first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from studio.widgets.grid import Cell, Column
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text
from studio.widgets.training.rollouts import outcome
from train.evaluate_report import Item
from train.record_index import Listed


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task with what came of its tries, and its rollouts where they are kept."""

    item: Item
    rollouts: tuple[Listed, ...] = ()

    @property
    def first(self) -> Listed | None:
        """The rollout to look at first: one that failed, else any."""
        failed = (rollout for rollout in self.rollouts if rollout.outcome != "complete" and not rollout.excluded)
        return next(failed, self.rollouts[0] if self.rollouts else None)


def task_rows(items: Iterable[Item], rollouts: Iterable[Listed]) -> list[TaskRow]:
    """Tasks with their rollouts: the ones that failed most first, those that were not judged last; tries in order."""
    by_task: dict[str, list[Listed]] = {}
    for rollout in rollouts:
        by_task.setdefault(rollout.key.rpartition("/")[0], []).append(rollout)
    rows = [TaskRow(item, tuple(sorted(by_task.get(item.id, ()), key=_attempt))) for item in items]
    return sorted(rows, key=lambda row: (row.item.share is None, row.item.share or 0.0))


def _attempt(rollout: Listed) -> int:
    return int(rollout.key.rpartition("/")[2])


def tries(item: Item) -> Cell:
    """Each try as a sign."""
    if not item.passes:
        return "· not judged", "muted"
    text = "".join("✓" if passed else "✗" for passed in item.passes)
    return text, "ok" if all(item.passes) else "fail" if not any(item.passes) else "warn"


def _about(row: TaskRow) -> Cell:
    return " · ".join(row.item.labels.values()), "muted"


class EvaluatedTasks(Listing):
    """Every task; below, what came of its tries. Enter steps through a rollout."""

    COLUMNS = (
        Column("tries", "tries", lambda row: tries(row.item), width=12),
        Column("task", "task", lambda row: row.item.id, width=24, flex=2),
        Column("about", "about", _about, width=16, flex=1, drop=1),
    )
    EMPTY = "Nothing has been judged yet."

    def explain(self, row: TaskRow) -> Text:
        """What its labels are, why tries were left out, how each rollout ended."""
        lines: list[list[Piece]] = []
        if row.rollouts:
            lines.append([(row.rollouts[0].text, "")])
        lines += [[(f"{name}  ", "muted"), (value, "")] for name, value in row.item.labels.items()]
        lines += [
            [(f"left out: {why.replace('_', ' ')} ", "warn"), (str(n), "")] for why, n in row.item.excluded.items()
        ]
        for rollout in row.rollouts:
            ended = f"{rollout.end.replace('_', ' ')}{f': {rollout.detail}' if rollout.detail else ''}"
            lines.append([(f"try {rollout.key.rpartition('/')[2]}  ", "muted"), outcome(rollout), (f"  {ended}", "")])
        told = "steps through the first that failed: messages, calls, state changes"
        lines.append([(f"Enter {told if row.rollouts else 'shows what the harness has kept of it'}.", "muted")])
        return lines
