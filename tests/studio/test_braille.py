"""Charts of dots: where lines run, what the axes say, how lines are told apart."""

from __future__ import annotations

import pytest

from studio.widgets.braille import AXIS, Axes, Line, draw, legend, number

UNIT = Axes(0, 1, 0, 1)


def rows(lines: list[Line], *, width: int = 20, height: int = 6, axes: Axes = UNIT) -> list[str]:
    return ["".join(text for text, _ in row) for row in draw(lines, axes, width, height)]


def dots(text: str) -> int:
    return sum((ord(character) - 0x2800).bit_count() for character in text if 0x2800 <= ord(character) <= 0x28FF)


def test_a_line_runs_from_the_lower_left_to_the_upper_right() -> None:
    drawn = rows([Line("up", [(0, 0), (1, 1)], 0)])
    assert drawn[0].rstrip()[-1] != "│"
    assert drawn[0][AXIS + 1] == " "
    assert dots(drawn[4][AXIS + 1]) > 0
    assert all(len(row) == 20 for row in drawn)


def test_the_axes_name_their_ends() -> None:
    drawn = rows([Line("flat", [(0, 250), (30, 1250)], 0)], axes=Axes(0, 30, 250, 1250))
    assert drawn[0].startswith("  1.2k┤")
    assert drawn[-2].startswith("   250┤")
    assert drawn[-1].split("└")[1].split() == ["0", "30"]


def test_a_point_alone_is_seen_and_what_is_beyond_lies_on_the_edge() -> None:
    assert dots("".join(rows([Line("one", [(0.5, 0.5)], 0)]))) == 1
    assert dots(rows([Line("beyond", [(0, 9), (1, 9)], 0)])[0]) > 10


def test_lines_differ_without_colours() -> None:
    flat = [(0.0, 0.5), (1.0, 0.5)]
    drawn = {"".join(rows([Line("line", flat, look)], width=40)) for look in range(4)}
    assert len(drawn) == 4
    named = legend([Line("a", flat, 0), Line("b", flat, 1)], 40)
    assert [text.split()[0] for text, _ in named] == ["──", "╌╌"]


def test_a_legend_leaves_out_what_does_not_fit() -> None:
    named = legend([Line("a long name", [(0, 1)], 0), Line("another one", [(0, 1)], 1)], 24)
    assert sum(len(text) for text, _ in named) <= 24


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (0.5, "0.50"), (12.345, "12.3"), (812, "812"), (2048, "2.0k"), (0.0007, "7e-4"),
                         (-0.0007, "-7e-4"), (1_500_000, "2e6")]
)  # fmt: skip
def test_numbers_are_short(value: float, shown: str) -> None:
    assert number(value) == shown
