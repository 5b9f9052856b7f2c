"""Maps: coordinates that keep neighbours together and never change, and a page that needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("sklearn")

import numpy as np

from curation import maps
from curation.embeddings import VectorCache
from curation.map_files import require_format, write_map, write_page
from curation.maps import Layout, coordinates
from pipeline.errors import UserError


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[VectorCache]:
    opened = VectorCache(tmp_path / "vectors.db")
    yield opened
    opened.close()


def clusters() -> np.ndarray:
    vectors = np.repeat(np.eye(3), 8, axis=0) + np.random.default_rng(0).normal(0, 0.05, (24, 3))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def separation(points: np.ndarray) -> float:
    """The smallest distance between centres over the largest distance from one."""
    groups = points.reshape(3, 8, 2)
    centres = groups.mean(axis=1)
    apart = min(np.linalg.norm(centres[a] - centres[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
    return float(apart / np.linalg.norm(groups - centres[:, None], axis=2).max())


def test_pca_keeps_clusters_apart_within_the_frame(cache: VectorCache) -> None:
    points = coordinates(clusters(), Layout.pca, cache)
    assert separation(points) > 3
    assert np.abs(points).max() == pytest.approx(1)


def test_coordinates_are_kept(cache: VectorCache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = coordinates(clusters(), Layout.pca, cache)

    def fail(_: np.ndarray) -> np.ndarray:
        raise AssertionError("worked out again")

    monkeypatch.setattr(maps, "_pca", fail)
    assert np.array_equal(coordinates(clusters(), Layout.pca, cache), first)
    with pytest.raises(AssertionError):
        coordinates(clusters()[::-1], Layout.pca, cache)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("layout", list(Layout))
def test_very_few_items_have_places_too(cache: VectorCache, count: int, layout: Layout) -> None:
    points = coordinates(np.eye(3, dtype=np.float32)[:count], layout, cache)
    assert points.shape == (count, 2)
    assert len({tuple(point) for point in points.tolist()}) == count


def test_a_page_holds_everything_it_shows(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    path = tmp_path / "map.html"
    write_page(
        path,
        np.zeros((3, 2)),
        ["lending", "<b>uber</b>", "lyft"],
        [1, 0, 0],
        concepts=["rides", "books"],
        title="A map",
    )
    page = path.read_text("utf-8")
    assert "rides (2)" in page
    assert "lending" in page
    assert "<b>uber" not in page
    assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="http', page)
    assert str(tmp_path) not in page
    assert [entry.name for entry in tmp_path.iterdir()] == ["map.html"]


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    with pytest.raises(UserError, match=r"map\.html cannot be written"):
        write_page(tmp_path / "no" / "map.html", np.zeros((0, 2)), [], [], concepts=[], title="")


@pytest.mark.parametrize("name", ["map.svg", "map", "map.html.gz"])
def test_a_map_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"FILE\.html or FILE\.png"):
        require_format(tmp_path / name)


def test_a_picture_without_pillow_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.extras.missing", lambda extra: ("PIL",) if extra == "pictures" else ())
    with pytest.raises(UserError, match=r"A map as PNG needs PIL.*\[pictures\]"):
        require_format(tmp_path / "map.png")


def test_a_picture_has_every_concept_in_its_colour(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    points = np.array([[-1, -1], [1, 1], [0, 0.5]], dtype=np.float32)
    write_map(tmp_path / "map.png", points, list("abc"), [0, 0, 1], concepts=["rides", "farms"], title="Three")
    with image_module.open(tmp_path / "map.png") as image:
        assert image.size == (1600, 1000)
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}
    assert {(0, 0x72, 0xB2), (0xE6, 0x9F, 0)} <= colours
    assert list(tmp_path.iterdir()) == [tmp_path / "map.png"]


def test_a_picture_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    points = np.zeros((1, 2), dtype=np.float32)
    with pytest.raises(UserError, match="cannot be written"):
        write_map(tmp_path / "none" / "map.png", points, ["a"], [0], concepts=["one"], title="One")
