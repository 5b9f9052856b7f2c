"""A set of environments as points on a plane: coordinates, and a page to look at them in a browser."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np

from curation.embeddings import ModelFailed, VectorCache, model_process
from curation.extras import require
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


def require_format(path: Path) -> None:
    """Raise UserError unless a map can be written under this name, by its ending and what is installed."""
    match path.suffix.lower():
        case ".html":
            require("concepts", "A map as a page")
        case ".png":
            require("pictures", "A map as PNG")
        case _:
            raise UserError(f"A map is a page or a picture: name it FILE.html or FILE.png, not {path.name}.")


def write_map(
    path: Path, points: np.ndarray, names: Sequence[str], labels: Sequence[int], *, concepts: Sequence[str], title: str
) -> None:
    """Write a map in the format of its file's ending: an interactive page or a picture.

    Raises UserError for another ending, where what the format needs is not installed, or where it cannot be written.
    """
    require_format(path)
    if path.suffix.lower() == ".png":
        from curation.pictures import write_picture

        write_picture(path, points, labels, concepts=concepts, title=title)
    else:
        write_page(path, points, names, labels, concepts=concepts, title=title)


def write_page(
    path: Path,
    points: np.ndarray,
    names: Sequence[str],
    labels: Sequence[int],
    *,
    concepts: Sequence[str],
    title: str,
) -> None:
    """Write an interactive map as one self-contained HTML file (about 5 MB: it carries plotly's own script).

    A concept has its colour and shape, a name in the legend that hides and shows it, and its items' names on hover.
    Raises UserError where the file cannot be written.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for concept, words in enumerate(concepts):
        members = [number for number, label in enumerate(labels) if label == concept]
        figure.add_scatter(
            x=points[members, 0],
            y=points[members, 1],
            mode="markers",
            name=f"{concept} {words} ({len(members)})",
            text=[names[member] for member in members],
            hovertemplate="%{text}<extra>%{fullData.name}</extra>",
            marker={
                "color": look(concept)[0],
                "symbol": look(concept)[1],
                "size": 9,
                "line": {"width": 0.5, "color": "white"},
            },
        )
    figure.update_layout(title=title, template="simple_white", legend={"itemsizing": "constant"})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.write_text(figure.to_html(include_plotlyjs=True, full_html=True, default_height="95vh"), "utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"The map {path} cannot be written: {error.strerror}.") from None
