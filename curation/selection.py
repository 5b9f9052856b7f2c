"""Which items to take first: orders whose every prefix is a good subset of its size, so that series nest.

Each method gives all items in the order it would take them; a budget is a prefix. Items are unit vectors.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence

import numpy as np

from curation.concepts import near_duplicates, similarity_blocks
from curation.subset import Method


def order(method: Method, vectors: np.ndarray, labels: Sequence[str], budget: int, seed: int) -> list[int]:
    """The first `budget` items in the order a method takes them (all of them if there are no more).

    `facility` and `centre` look at the vectors, `stratified` at the concepts; `all` keeps the order given.
    """
    budget = min(budget, len(vectors))
    match method:
        case Method.facility:
            return facility_location(vectors, budget)
        case Method.centre:
            return k_centre(vectors, budget, seed)
        case Method.stratified:
            return stratified(labels, seed)[:budget]
        case Method.random:
            return random.Random(seed).sample(range(len(vectors)), budget)  # noqa: S311 (a reproducible draw)
        case Method.all:
            return list(range(budget))


def facility_location(vectors: np.ndarray, budget: int) -> list[int]:
    """Items such that every item has one like it: greedy maximisation of Σᵢ maxⱼ sim(i, j), similarities below 0 as 0.

    Greedy reaches at least 1 − 1/e (63 %) of the best possible value (Nemhauser, Wolsey and Fisher 1978); gains are
    recomputed only when they could still be the largest (Minoux 1978). Takes 4 bytes a pair of items.
    """
    similarity = np.empty((len(vectors), len(vectors)), dtype=np.float32)
    for start, block in similarity_blocks(vectors):
        np.maximum(block, 0, out=similarity[start : start + len(block)])
    best = np.zeros(len(vectors), dtype=np.float32)
    heap = [(-float(gain), item) for item, gain in enumerate(similarity.sum(axis=0, dtype=np.float64))]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < budget:
        _, item = heapq.heappop(heap)
        gain = float(np.maximum(similarity[item] - best, 0).sum(dtype=np.float64))
        if heap and (-gain, item) > heap[0]:
            heapq.heappush(heap, (-gain, item))
            continue
        chosen.append(item)
        np.maximum(best, similarity[item], out=best)
    return chosen


def k_centre(vectors: np.ndarray, budget: int, seed: int) -> list[int]:
    """Items such that no item is far from one: each time the item furthest from those taken, the first by chance.

    The largest distance left is at most twice the smallest possible (Gonzalez 1985). It seeks out oddities, where
    facility location seeks out what stands for many.
    """
    if not budget:
        return []
    chosen = [random.Random(seed).randrange(len(vectors))]  # noqa: S311 (a reproducible draw)
    nearest = vectors @ vectors[chosen[0]]
    nearest[chosen[0]] = np.inf
    while len(chosen) < budget:
        item = int(nearest.argmin())
        chosen.append(item)
        np.maximum(nearest, vectors @ vectors[item], out=nearest)
        nearest[item] = np.inf
    return chosen


def stratified(labels: Sequence[str], seed: int) -> list[int]:
    """One item of every concept, then a second one of every concept that has it, and so on; by chance within each."""
    draw = random.Random(seed)  # noqa: S311 (a reproducible draw)
    members: dict[str, list[int]] = {}
    for item in draw.sample(range(len(labels)), len(labels)):
        members.setdefault(labels[item], []).append(item)
    rounds = ((turn, label, item) for label, items in members.items() for turn, item in enumerate(items))
    return [item for _, _, item in sorted(rounds)]


def distinct(vectors: np.ndarray, limit: float) -> list[int]:
    """Items of which no two are as similar as `limit`: of near-duplicates the first one given stays."""
    _, pairs = near_duplicates(vectors, limit, len(vectors) ** 2)
    earlier: dict[int, list[int]] = {}
    for pair in pairs:
        earlier.setdefault(pair.b, []).append(pair.a)
    kept: set[int] = set()
    for item in range(len(vectors)):
        if not kept.intersection(earlier.get(item, ())):
            kept.add(item)
    return sorted(kept)


def interleave(items: Sequence[int], band: Callable[[int], object]) -> list[int]:
    """The items with every prefix as even over the bands as can be, in the order given within a band."""
    queues: dict[object, list[int]] = {}
    for item in items:
        queues.setdefault(band(item), []).append(item)
    rank = {item: number for number, item in enumerate(items)}
    turns = ((turn, rank[item], item) for queue in queues.values() for turn, item in enumerate(queue))
    return [item for _, _, item in sorted(turns)]


def hold_out(labels: Sequence[str], share: float, seed: int) -> set[str]:
    """Concepts, by chance, that together hold about `share` of the items: never none where share > 0, never all."""
    concepts = sorted(set(labels))
    random.Random(seed).shuffle(concepts)  # noqa: S311 (a reproducible draw)
    sizes = dict.fromkeys(concepts, 0)
    for label in labels:
        sizes[label] += 1
    held: set[str] = set()
    taken = 0
    for concept in concepts:
        overshoot = taken + sizes[concept] - share * len(labels)
        if share and len(held) < len(concepts) - 1 and (overshoot <= 0 or not held):
            held.add(concept)
            taken += sizes[concept]
    return held


def covered(vectors: np.ndarray, chosen: np.ndarray) -> float:
    """How well items are stood for: the mean over all items of the similarity to the most similar one chosen."""
    if not len(vectors) or not len(chosen):
        return 0.0
    best = [block.max(axis=1) for _, block in similarity_blocks(vectors, chosen)]
    return float(np.clip(np.concatenate(best), 0, 1).mean())
