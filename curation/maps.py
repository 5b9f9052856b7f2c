"""A set of environments as points on a plane: where they lie, and what a concept looks like there."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import numpy as np

from curation.embeddings import ModelFailed, VectorCache, model_process
from pipeline.errors import UserError

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Eight colours that colour-blind readers can tell apart (Okabe and Ito 2008)."""
GLYPHS = ("circle", "square", "diamond", "triangle-up", "x", "star", "pentagon", "cross")
"""Marker shapes of page and picture; with the palette they make 64 looks: concepts never differ by colour alone."""


def look(concept: int) -> tuple[str, str]:
    """A concept's colour and marker shape on the page and the picture."""
    return PALETTE[concept % len(PALETTE)], GLYPHS[concept // len(PALETTE) % len(GLYPHS)]


class Layout(StrEnum):
    """How points are placed: `pca` keeps large distances and is instant; `umap` keeps neighbours together."""

    pca = "pca"
    umap = "umap"


def coordinates(vectors: np.ndarray, layout: Layout, cache: VectorCache, seed: int = 0) -> np.ndarray:
    """Two coordinates an item, between −1 and 1, the same for the same vectors, layout and seed; kept in the cache."""
    if len(vectors) < 3:
        return np.zeros((len(vectors), 2), dtype=np.float32) + np.arange(len(vectors))[:, None]
    digest = hashlib.sha256(f"{layout}#{seed}#{vectors.shape}".encode())
    digest.update(vectors.tobytes())
    if found := cache.get([digest.digest()]):
        return found[digest.digest()].reshape(-1, 2)
    placed = _pca(vectors) if layout is Layout.pca or len(vectors) < 5 else _umap(vectors, seed)
    placed = placed - (placed.max(axis=0) + placed.min(axis=0)) / 2
    placed = (placed / max(float(np.abs(placed).max()), 1e-12)).astype(np.float32)
    cache.put([(digest.digest(), placed.ravel())])
    return placed


def _pca(vectors: np.ndarray) -> np.ndarray:
    from sklearn.decomposition import PCA

    return PCA(n_components=2, svd_solver="randomized", random_state=0).fit_transform(vectors)


def _umap(vectors: np.ndarray, seed: int) -> np.ndarray:
    rows, columns = vectors.shape
    with model_process({"do": "layout", "rows": rows, "columns": columns, "seed": seed}) as process:
        process.send(np.ascontiguousarray(vectors, dtype=np.float32).tobytes())
        try:
            return process.receive()
        except ModelFailed as error:
            raise UserError(f"UMAP cannot place the items ({error}); the pca layout needs nothing more.") from error
