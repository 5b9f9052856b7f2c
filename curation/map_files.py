"""Maps as files: an interactive page for a browser, or a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.extras import require
from curation.maps import look
from curation.pictures import write_picture
from pipeline.errors import UserError

if TYPE_CHECKING:
    import numpy as np


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
