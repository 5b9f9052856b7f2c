"""Concepts: which items mean the same thing, how that depends on the threshold, and what the groups are called.

An item is a unit vector; two items are as similar as their cosine. Concepts are the clusters of average linkage
(UPGMA, Sokal and Michener 1958) cut at a similarity: average linkage gave the best agreement with concepts labelled
by hand (adjusted Rand index 0.82), where density clustering called 16 to 42 % of the items noise.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.errors import UserError

ITEM_LIMIT = 20_000
"""The most items at once: the distances of 20,000 take 3.2 GB, those of 10,000 take 0.8 GB."""
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class Tree:
    """An average-linkage tree over items: every threshold's concepts without clustering again.

    `merges` is SciPy's linkage matrix, with distance one minus similarity.
    """

    items: int
    merges: np.ndarray

    def count(self, threshold: float) -> int:
        """How many concepts there are where items as similar as `threshold` (on average) are one."""
        return self.items - int(np.count_nonzero(self.merges[:, 2] <= 1 - threshold)) if self.items else 0

    def cut(self, threshold: float) -> np.ndarray:
        """Each item's concept at a threshold: 0 for the largest one, ties by first member."""
        if self.items < 2:
            return np.zeros(self.items, dtype=np.int64)
        from scipy.cluster.hierarchy import fcluster

        return by_size(fcluster(self.merges, 1 - threshold, criterion="distance"))

    def joined_at(self, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        """The similarity at which each pair of items becomes one concept (the cophenetic one)."""
        parent = np.full(2 * self.items - 1, -1)
        for number, merge in enumerate(self.merges):
            parent[merge[:2].astype(int)] = self.items + number
        joined = np.ones(len(pairs))
        for number, pair in enumerate(pairs):
            low, high = sorted(pair)
            while low != high:  # a parent's number is above its children's, so the lower of the two moves up
                low, high = sorted((high, int(parent[low])))
            joined[number] = 1.0 if low < self.items else 1 - self.merges[low - self.items, 2]
        return joined


def by_size(labels: np.ndarray) -> np.ndarray:
    """The same grouping, numbered from 0 by falling size, ties by first member."""
    _, first, group, sizes = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return rank[group]


def grow(vectors: np.ndarray) -> Tree:
    """The average-linkage tree of unit vectors. Takes 16 bytes a pair and seconds for 10,000.

    Raises UserError for more than `ITEM_LIMIT` items.
    """
    count = len(vectors)
    if count > ITEM_LIMIT:
        raise UserError(
            f"{count:,} items are more than can be clustered at once ({ITEM_LIMIT:,}): narrow them with --where."
        )
    if count < 2:
        return Tree(count, np.zeros((0, 4)))
    from scipy.cluster.hierarchy import linkage

    distances = np.empty(count * (count - 1) // 2)
    end = 0
    for start, block in similarity_blocks(vectors):
        for row, similarities in enumerate(block, start):
            begin, end = end, end + count - row - 1
            np.subtract(1, similarities[row + 1 :], out=distances[begin:end])
    np.maximum(distances, 0, out=distances)
    return Tree(count, linkage(distances, "average"))


def similarity_blocks(vectors: np.ndarray, against: np.ndarray | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """Cosines of all items against all (or against others), some rows at a time, with the first row's number."""
    others = vectors if against is None else against
    for start in range(0, len(vectors), _BLOCK):
        yield start, vectors[start : start + _BLOCK] @ others.T


@dataclass(frozen=True, slots=True)
class Pair:
    """Two items (by position) and their cosine."""

    a: int
    b: int
    similarity: float


def near_duplicates(vectors: np.ndarray, threshold: float, limit: int = 1000) -> tuple[int, list[Pair]]:
    """How many pairs are at least as similar as `threshold`, and the `limit` most similar ones, most similar first."""
    total, found = 0, []
    for start, block in similarity_blocks(vectors):
        rows, columns = np.nonzero(block >= threshold)
        upper = columns > rows + start
        rows, columns = rows[upper], columns[upper]
        total += len(rows)
        similarities = block[rows, columns]
        best = np.argsort(-similarities, kind="stable")[:limit]
        found += [Pair(int(rows[n]) + start, int(columns[n]), min(1.0, float(similarities[n]))) for n in best]
        found = sorted(found, key=lambda pair: (-pair.similarity, pair.a, pair.b))[:limit]
    return total, found


def neighbours(vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Each item's most similar others, most similar first (fewer than `count` where there are no more): a row of
    positions and a row of cosines for each item."""
    count = min(count, max(len(vectors) - 1, 0))
    nearest, similarities = [], []
    for start, block in similarity_blocks(vectors):
        block[np.arange(len(block)), np.arange(start, start + len(block))] = -np.inf
        found = np.argsort(-block, axis=1, kind="stable")[:, :count]
        nearest.append(found)
        similarities.append(np.take_along_axis(block, found, axis=1))
    if not nearest:
        return np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
    return np.concatenate(nearest), np.concatenate(similarities)


def medoids(vectors: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For each concept (numbered from 0) the member that is most similar to all its members, the first of equals."""
    sums = np.zeros((int(labels.max(initial=-1)) + 1, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, labels, vectors)
    closeness = np.einsum("ij,ij->i", vectors, sums[labels])
    order = np.lexsort((np.arange(len(labels)), -closeness, labels))
    return order[np.unique(labels[order], return_index=True)[1]]


def curve(tree: Tree, thresholds: Sequence[float]) -> list[tuple[float, int]]:
    """The number of concepts at each threshold."""
    return [(threshold, tree.count(threshold)) for threshold in thresholds]


def adjusted_rand(labels: Sequence[object], known: Sequence[object]) -> float:
    """How well two groupings of the same items agree: 1 fully, 0 as by chance (Hubert and Arabie 1985)."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(list(known), list(labels)))


_WORD = re.compile(r"[^\W\d_]{3,}")
_STOP = frozenset(
    _WORD.findall("""
    about after all also and any are available been before being between both but can could each either for from get
    had has have her his how into its list make may more most must name not one only other our out over own same set
    shall should some such than that the their them then there these they this those through under until use used
    uses using was were what when where which while who whose why will with within without would you your
    add create current currently data date delete entities every find first give include includes including last
    management next per platform record records remove show status support supports system three time two update
    user users based across core workflow workflows etc
    """)
)
"""Words that name nothing: function words, and those that any description of a service has."""


def concept_names(texts: Sequence[str], labels: Sequence[int], words: int = 3) -> list[str]:
    """A name for each concept, no two alike: the words that set its texts apart, most telling first.

    Class-based TF-IDF (Grootendorst 2022, arXiv 2203.05794): a word's weight in the concept times the log of one
    plus the average weight of a concept's words over the word's weight everywhere. A text gives a word the log of
    one plus its uses there, so that one long text does not name the others' concept.
    """
    weights: list[defaultdict[str, float]] = [defaultdict(float) for _ in range(max(labels, default=-1) + 1)]
    everywhere: defaultdict[str, float] = defaultdict(float)
    for text, label in zip(texts, labels, strict=True):
        for word, uses in _word_counts(text).items():
            weights[label][word] += math.log1p(uses)
            everywhere[word] += math.log1p(uses)
    average = sum(everywhere.values()) / max(len(weights), 1)
    names = []
    for concept in weights:
        score = {word: weight * math.log1p(average / everywhere[word]) for word, weight in concept.items()}
        names.append(", ".join(sorted(score, key=lambda word: (-score[word], word))[:words]) or "unnamed")
    uses = Counter(names)
    return [name if uses[name] == 1 else f"{name} ({number})" for number, name in enumerate(names)]


@lru_cache(maxsize=ITEM_LIMIT)
def _word_counts(text: str) -> Counter[str]:
    """Kept, because the same texts are named again at every threshold."""
    return Counter(_telling_words(text))


def _telling_words(text: str) -> Iterator[str]:
    """The words of a text that may name a concept: no names of people and places, so none with a capital."""
    for word in _WORD.findall(text):
        if word not in _STOP and not word[0].isupper():
            yield _singular(word)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
