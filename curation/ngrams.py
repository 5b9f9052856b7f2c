"""Texts as vectors of their character n-grams, fast enough for ten thousand and small enough to multiply.

TF-IDF over character 3- to 5-grams with sublinear term frequency and smoothed document frequency, as in
scikit-learn's `TfidfVectorizer(analyzer="char", ngram_range=(3, 5), sublinear_tf=True)`, with two differences: n-grams
are bytes of UTF-8, hashed by numpy instead of counted by Python (some 20 times faster), and the result is projected
to `width` dimensions by a signed hash (Weinberger et al. 2009, arXiv 0902.2206), which keeps cosines up to an error
of about 1/√width and, unlike an SVD, does not depend on which other texts there are. On five real environments 512
dimensions missed cosines near 0.2 by up to 0.09, the default by 0.03.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

SIZES = (3, 4, 5)
BUCKETS = 20  # as a power of two: a million buckets, so that two n-grams of one text seldom meet
WIDTH = 2048
_BLOCK = 256


def ngram_vectors(texts: Sequence[str], width: int = WIDTH) -> np.ndarray:
    """One unit vector (float32) a text; the zero vector for an empty one.

    Memory is `len(texts) * width * 4` bytes and a block's n-grams, whatever the texts' length.
    """
    frequency = np.zeros(1 << BUCKETS, dtype=np.int64)
    for text in texts:
        frequency[_count(text)[0]] += 1
    weight = (np.log((1 + len(texts)) / (1 + frequency)) + 1).astype(np.float32)
    project = _projection(width)
    vectors = np.zeros((len(texts), width), dtype=np.float32)
    for start in range(0, len(texts), _BLOCK):
        counted = [_count(text) for text in texts[start : start + _BLOCK]]
        rows = [weight[buckets] * (1 + np.log(counts, dtype=np.float32)) for buckets, counts in counted]
        ends = np.cumsum([0, *(len(row) for row in rows)])
        columns = np.concatenate([buckets for buckets, _ in counted])
        block = sparse.csr_array((np.concatenate(rows), columns, ends), shape=(len(rows), len(weight)))
        vectors[start : start + len(rows)] = (block @ project).toarray()
    return unit(vectors)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length one; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def _count(text: str) -> tuple[np.ndarray, np.ndarray]:
    """The buckets of a text's n-grams and how often each occurs."""
    raw = np.frombuffer(f" {' '.join(text.lower().split())} ".encode("utf-8", "replace"), dtype=np.uint8)
    codes = raw.astype(np.uint64)
    grams = []
    for size in SIZES:
        if len(codes) < size or not text.strip():
            continue
        packed = np.full(len(codes) - size + 1, size, dtype=np.uint64)
        for offset in range(size):
            packed = (packed << np.uint64(8)) | codes[offset : offset + len(packed)]
        grams.append(packed)
    if not grams:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    buckets, counts = np.unique(_mix(np.concatenate(grams)) >> np.uint64(64 - BUCKETS), return_counts=True)
    return buckets.astype(np.int64), counts


def _mix(values: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each value: the finaliser of MurmurHash3 (Appleby 2011, public domain)."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))


def _projection(width: int) -> sparse.csr_array:
    hashed = _mix(np.arange(1, (1 << BUCKETS) + 1, dtype=np.uint64))
    signs = np.where(hashed & np.uint64(1), 1, -1).astype(np.float32)
    columns = ((hashed >> np.uint64(1)) % np.uint64(width)).astype(np.int64)
    return sparse.csr_array((signs, columns, np.arange(len(signs) + 1)), shape=(len(signs), width))
