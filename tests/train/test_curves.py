"""What a training writes, followed as it grows: events, curves, rollouts by step, figures."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from pipeline.errors import UserError
from train.curves import CHARTS, Curves, bounds, curves_of
from train.drawing import as_svg
from train.figure import Drawn, Panel, figure, save_figure, ticks
from train.json_lines import json_line
from train.record_index import RecordIndex
from train.records import Records
from train.reward import Reward
from train.rules import Rules
from train.run_log import METRICS, Follower, RunLog
from train.trajectory import End, Trajectory, Turn


def step(number: int, **figures: float) -> dict[str, object]:
    return {"t": 0.0, "kind": "step", "step": number, **figures}


def test_a_run_is_followed_line_by_line(tmp_path: Path) -> None:
    follower, path = Follower(tmp_path), tmp_path / METRICS
    assert follower.news() == ([], False)
    path.write_bytes(json_line(step(1)) + b'{"kind": "st')
    events, anew = follower.news()
    assert ([event["step"] for event in events], anew) == ([1], True)
    path.write_bytes(json_line(step(1)) + json_line(step(2)))
    events, anew = follower.news()
    assert ([event["step"] for event in events], anew) == ([2], False)
    assert follower.news() == ([], False)


def test_a_run_that_was_rewound_is_read_again(tmp_path: Path) -> None:
    log, follower = RunLog(tmp_path), Follower(tmp_path)
    for number in (1, 2, 3):
        log.event("step", step=number)
    follower.news()
    log.rewind(1)
    events, anew = follower.news()
    assert ([event["step"] for event in events], anew) == ([1], True)


def test_curves_are_made_of_the_figures_of_their_kind_of_event() -> None:
    events = [
        {"kind": "warmup", "warmup_step": 10, "loss": 2.0},
        {"kind": "try", "step": 0, "rate": 0.25},
        step(1, reward=0.5, reward_std=0.2, step_time=5.0, loss=0.1, **{"rollout/seconds": 3.0}),
        step(2, reward=0.75),
    ]
    curves = curves_of(events)
    found = {chart.key: curves.of(chart) for chart in curves.charts}
    assert found["reward"] == {"mean": [(1.0, 0.5), (2.0, 0.75)], "spread": [(1.0, 0.2)]}
    assert found["held_out"] == {"complete": [(0.0, 0.25)]}
    assert found["seconds"] == {"rollouts": [(1.0, 3.0)], "training": [(1.0, 2.0)]}
    assert (found["loss"], found["warmup"]) == ({"loss": [(1.0, 0.1)]}, {"loss": [(10.0, 2.0)]})
    assert "kl" not in found


def test_a_figure_that_is_no_number_is_a_gap() -> None:
    assert curves_of([{**step(1), "reward": None}]).charts == []


def test_every_chart_says_what_it_means() -> None:
    assert all(chart.about.endswith(".") for chart in CHARTS)
    assert len({chart.key for chart in CHARTS}) == len(CHARTS)


@pytest.mark.parametrize(
    ("values", "is_share", "low", "high"),
    [([0.2, 0.4], True, 0.0, 1.0), ([2.0, 9.0], False, 0.0, 9.0), ([8.0, 9.0], False, 8.0, 9.0),
     ([4.0], False, 2.0, 6.0), ([0.0, 0.0], False, -1.0, 1.0)],
)  # fmt: skip
def test_axes_hold_all_values(values: list[float], is_share: bool, low: float, high: float) -> None:
    points = [(float(number), value) for number, value in enumerate(values)]
    assert bounds([points], is_share=is_share)[2:] == (low, high)


def record(number: int, step: int, *, complete: bool) -> Trajectory:
    reward = Reward(1.0, outcome="complete") if complete else Reward(0.0, excluded=True)
    turns = (Turn("list"), Turn("Done.", tokens_out=7))
    return Trajectory("pantry", 0, number, "Tidy up.", "p", Rules(), {}, "", (), turns, End.answered,
                      seconds=0.5, step=step, reward=reward)  # fmt: skip


def test_the_rollouts_of_a_step_are_found_without_reading_the_others_again(tmp_path: Path) -> None:
    index = RecordIndex(tmp_path)
    assert not index.catch_up()
    with Records(tmp_path) as records:
        for number in range(4):
            records.add(record(number, 1 + number // 2, complete=number == 3))
        assert index.catch_up()
        assert index.steps == [1, 2]
        assert [listed.key for listed in index.of_step(2)] == ["pantry/0/2", "pantry/0/3"]
        left_out, complete = index.of_step(2)
        assert (left_out.excluded, complete.outcome, complete.reward, complete.tokens) == (True, "complete", 1.0, 7)
        assert index.read(complete) == record(3, 2, complete=True)
        records.add(record(4, 3, complete=True))
    assert index.catch_up()
    assert not index.catch_up()
    assert index.steps == [1, 2, 3]


def test_a_figure_is_a_document_that_names_its_lines(tmp_path: Path) -> None:
    runs = [("run 1", curves_of([step(1, reward=0.1), step(2, reward=0.4)])), ("run 2", curves_of([step(1, reward=1)]))]
    path = save_figure(tmp_path / "figures" / "both.svg", runs)[0]
    root = ElementTree.fromstring(path.read_text())
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"reward", "run 1", "run 2", "step"} <= set(words)


def test_a_figure_is_a_picture_too(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pictures need the extra: pip install 'awm-studio[pictures]'")
    _, picture = save_figure(tmp_path / "one.svg", [("run 1", curves_of([step(1, reward=0.1), step(2, reward=0.4)]))])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to draw"):
        save_figure(tmp_path / "none.svg", [("run 1", Curves())])


def test_names_of_lines_are_text_and_bands_are_areas() -> None:
    line = Drawn("<three> & more", [(0, 0.2), (1, 0.5)], 0, band=[(0, 0.1, 0.3), (1, 0.4, 0.6)])
    written = as_svg(figure([Panel("held-out", [line], is_share=True)], "a title"))
    assert "&lt;three&gt; &amp; more" in written
    assert "<polygon" in written


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 1.0, [0.0, 0.5, 1.0]), (0.0, 30.0, [0, 10, 20, 30]), (-0.32, 0.86, [0.0, 0.5]), (1, 31, [10, 20, 30])],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected
