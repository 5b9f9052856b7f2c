"""How alike two descriptions are, by whatever this installation has: embeddings, or character n-grams."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

SAME, NEAR = 0.85, 0.75
"""Cosines of sentence embeddings from which two descriptions are one scenario, or neighbours (AWM's thresholds,
arXiv 2602.10090, section 3.1)."""

NGRAM_SAME, NGRAM_NEAR = 0.40, 0.30
"""The same for character n-grams, whose cosines are lower and mean less: the nearest two of the 100 seeds reach 0.25,
two descriptions of one service by different authors 0.28 to 0.42, one retold sentence by sentence in other words only
0.17 (with embeddings 0.77, 0.58 to 0.68 and 0.60)."""

NGRAM_SIZES = (3, 4, 5)

Matrix = list[list[float]]


@dataclass(frozen=True, slots=True)
class Nearness:
    """A way to compare texts. `compare(new, known)` gives the cosine of each new text to each known one.

    From `same` on two texts are one scenario, from `near` on they are neighbours. `notice` says what is lost where it
    is not the best way, and is empty otherwise.
    """

    name: str
    compare: Callable[[Sequence[str], Sequence[str]], Awaitable[Matrix]]
    same: float = SAME
    near: float = NEAR
    notice: str = ""


def by_vectors(name: str, embed: Callable[[list[str]], Awaitable[Sequence[Sequence[float]]]]) -> Nearness:
    """Comparison by embeddings, which need not have length one."""

    async def compare(new: Sequence[str], known: Sequence[str]) -> Matrix:
        if not new or not known:
            return [[] for _ in new]
        vectors = [_unit(vector) for vector in await embed([*new, *known])]
        return [[sum(map(mul, one, other)) for other in vectors[len(new) :]] for one in vectors[: len(new)]]

    return Nearness(name, compare)


def by_ngrams() -> Nearness:
    """Comparison by TF-IDF over character n-grams, which needs nothing installed."""

    async def compare(new: Sequence[str], known: Sequence[str]) -> Matrix:
        return await asyncio.to_thread(ngram_cosines, new, known)

    notice = (
        "Near-duplicates are found by character n-grams, which miss scenarios that say the same in other words: "
        "pip install 'awm-studio[concepts]', or name an embedding profile in the settings (stages.embedding)."
    )
    return Nearness("character n-grams", compare, NGRAM_SAME, NGRAM_NEAR, notice)


def ngram_cosines(new: Sequence[str], known: Sequence[str]) -> Matrix:
    """Cosines of TF-IDF vectors (sublinear term frequency, smoothed document frequency over all the texts)."""
    counts = [_ngrams(text) for text in (*new, *known)]
    frequency = Counter(gram for count in counts for gram in count)
    weight = {gram: math.log((1 + len(counts)) / (1 + seen)) + 1 for gram, seen in frequency.items()}
    vectors = []
    for count in counts:
        vector = {gram: (1 + math.log(times)) * weight[gram] for gram, times in count.items()}
        length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
        vectors.append({gram: value / length for gram, value in vector.items()})
    return [
        [sum(value * other.get(gram, 0.0) for gram, value in one.items()) for other in vectors[len(new) :]]
        for one in vectors[: len(new)]
    ]


def unnamed(name: str, description: str) -> str:
    """A description without the service's own name, which would hide that two services are the same but for it.

    Words of the name that the description also writes in lower case are no names and stay.
    """
    brand = re.split(r"[(:–—|]| - ", name)[0].strip()
    plain = set(re.findall(r"\b[a-z]+\b", description))
    words = [word for word in re.findall(r"\w+", brand) if word.lower() not in plain and len(word) > 2]
    spellings = [re.escape(form) for form in (name, brand, *words) if form]
    return " ".join(re.sub(rf"(?i)\b(?:{'|'.join(spellings)})(?:['’]s)?", " ", description).split())


@lru_cache(maxsize=4096)
def _ngrams(text: str) -> Counter[str]:
    plain = f" {' '.join(text.lower().split())} "
    return Counter(plain[at : at + size] for size in NGRAM_SIZES for at in range(len(plain) - size + 1))


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]
