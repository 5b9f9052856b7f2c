"""The threshold as people see it: pairs they called the same concept or not, and the cut that agrees with them best.

The judgements are kept in the workspace (`concepts.json`); the threshold is worked out from them for whatever view
and model is in use, so a change of either needs no new labelling.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from curation.concepts import Tree, similarity_blocks
from pipeline.errors import UserError

ENOUGH = 20
"""Judged pairs from which on the calibrated threshold replaces the default one; both answers must occur."""
NEIGHBOURS = 5
"""How many of an item's nearest others make pairs to ask about: pairs further apart are hardly ever the same."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A person's word on a pair of environments (a < b by name)."""

    a: str
    b: str
    same: bool
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The threshold that agrees best with the judged pairs, and how well it does.

    `precision` is the share of pairs joined at it that were called the same, `recall` the share of those called the
    same that it joins.
    """

    threshold: float
    pairs: int
    same: int
    precision: float
    recall: float


def read_judgements(workspace: Path) -> list[Judgement]:
    """The judgements kept in a workspace folder. Raises UserError where the file is damaged."""
    path = workspace / "concepts.json"
    try:
        return [Judgement(**row) for row in json.loads(path.read_text("utf-8"))["pairs"]]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is not a list of judged pairs ({error}): repair it or move it away.") from None


def add_judgement(workspace: Path, a: str, b: str, same: bool, by: str = "") -> None:
    """Keep a judgement; a newer one about the same pair replaces the older. Raises UserError where it cannot."""
    low, high = sorted((a, b))
    kept = [judged for judged in read_judgements(workspace) if (judged.a, judged.b) != (low, high)]
    kept.append(Judgement(low, high, same, by, datetime.now(UTC).isoformat(timespec="seconds")))
    draft = workspace / f"concepts.json.{os.getpid()}.new"
    try:
        draft.write_text(json.dumps({"pairs": [asdict(judged) for judged in kept]}, indent=1), "utf-8")
        draft.replace(workspace / "concepts.json")
    except OSError as error:
        raise UserError(f"The judgement cannot be kept in {workspace}: {error.strerror}.") from None


def calibrate(judgements: Sequence[Judgement], names: Sequence[str], tree: Tree) -> Calibration | None:
    """The threshold of a tree that agrees best with judged pairs, or None where there are too few.

    Best is the highest mean of the shares of same and of different pairs that are treated as such, so that it does
    not matter how many of each were asked; of equally good thresholds the middle of the widest gap. Judgements about
    items that are not in the tree are left out.
    """
    position = {name: number for number, name in enumerate(names)}
    judged = [j for j in judgements if j.a in position and j.b in position]
    same = np.array([j.same for j in judged], dtype=bool)
    if len(judged) < ENOUGH or same.all() or not same.any():
        return None
    joined = tree.joined_at([(position[j.a], position[j.b]) for j in judged])
    levels = np.unique(joined)
    cuts = (levels[1:] + levels[:-1]) / 2 if len(levels) > 1 else levels
    balance = [(joined >= cut)[same].mean() + (joined < cut)[~same].mean() for cut in cuts]
    best = np.flatnonzero(np.isclose(balance, max(balance)))
    gaps = np.diff(levels)[best] if len(levels) > 1 else [0.0]
    threshold = float(cuts[best[int(np.argmax(gaps))]])
    together = joined >= threshold
    return Calibration(
        threshold=round(threshold, 4),
        pairs=len(judged),
        same=int(same.sum()),
        precision=float(same[together].mean()) if together.any() else 1.0,
        recall=float(together[same].mean()),
    )


def pairs_to_judge(
    vectors: np.ndarray, names: Sequence[str], judged: Sequence[Judgement], count: int = 50
) -> list[tuple[str, str, float]]:
    """Pairs worth asking about, with their similarity, the most similar first.

    They are neighbours that nobody has judged yet, spread evenly over the range of similarities.
    """
    asked = {(j.a, j.b) for j in judged}
    found: dict[tuple[str, str], float] = {}
    for start, block in similarity_blocks(vectors):
        block[np.arange(len(block)), np.arange(start, start + len(block))] = -np.inf
        nearest = np.argsort(-block, axis=1)[:, : min(NEIGHBOURS, len(names) - 1)]
        for row, others in enumerate(nearest):
            for other in others:
                low, high = sorted((names[start + row], names[int(other)]))
                if (low, high) not in asked:
                    found[low, high] = float(block[row, other])
    ranked = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
    if not ranked:
        return []
    similarities = np.array([similarity for _, similarity in ranked])
    wanted = np.linspace(similarities[0], similarities[-1], count)
    chosen = {int(np.abs(similarities - at).argmin()) for at in wanted}
    rest = (number for number in range(len(ranked)) if number not in chosen)
    chosen |= {number for number, _ in zip(rest, range(min(count, len(ranked)) - len(chosen)), strict=False)}
    return [(a, b, similarity) for (a, b), similarity in (ranked[number] for number in sorted(chosen))]
