"""Training rows from trajectories: a turn a row, conditioned on exactly what the policy saw (arXiv 2602.10090, sec. 4).

Turns whose contexts extend one another id for id can share a row, which is exact too and saves computing: the first
w + 2 turns of a trajectory do, as long as nothing has been left out of their contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from train.tokens import TokenTurn


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what it is conditioned on, what follows, and which of that the agent said (1) or was shown (0)."""

    prompt_ids: list[int]
    completion_ids: list[int]
    mask: list[int]
    logprobs: list[float] | None

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return len(self.prompt_ids) + len(self.completion_ids)


def rows(turns: Sequence[TokenTurn], *, merge: bool) -> list[Row]:
    """The rows of a trajectory: one a turn, or with `merge` as few as are exact.

    Merged rows must not be used where a weight is computed over a whole row, as in sequence-level importance sampling.
    """
    made: list[Row] = []
    for turn in turns:
        alone = Row(turn.prompt_ids, turn.completion_ids, [1] * len(turn.completion_ids), turn.logprobs)
        joined = _joined(made[-1], alone) if merge and made else None
        if joined is None:
            made.append(alone)
        else:
            made[-1] = joined
    return made


def _joined(row: Row, turn: Row) -> Row | None:
    """A row with one more turn, or None where the turn's context does not begin with the whole row."""
    held = [*row.prompt_ids, *row.completion_ids]
    if turn.prompt_ids[: len(held)] != held or (row.logprobs is None) != (turn.logprobs is None):
        return None
    shown = turn.prompt_ids[len(held) :]
    logprobs = None if row.logprobs is None else [*row.logprobs, *[0.0] * len(shown), *(turn.logprobs or ())]
    return Row(
        row.prompt_ids,
        [*row.completion_ids, *shown, *turn.completion_ids],
        [*row.mask, *[0] * len(shown), *turn.mask],
        logprobs,
    )
