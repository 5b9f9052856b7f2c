"""An evaluation in a line, in a row of a list, and as its result so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio.widgets.cells import duration
from studio.widgets.evaluation.bars import result_lines, so_far_lines
from studio.widgets.grid import Cell
from studio.widgets.lines import Piece
from studio.widgets.states import state

if TYPE_CHECKING:
    from studio.evaluation_watch import EvaluationWatch


def head(watch: EvaluationWatch) -> list[Piece]:
    """The line above: state, how far, the pass rate, the pace, the time that is left."""
    pieces: list[Piece] = [(f"run {watch.run.id} ", "strong"), state(watch.state)]
    if watch.done is not None:
        pieces += [(" │ ", "muted"), ("{}/{}".format(*watch.done), "")]
    score = watch.score
    if score is not None:
        so_far = " so far" if watch.is_running else ""
        pieces += [(f"  passed {score.estimate:.1%} ({score.low:.0%}–{score.high:.0%}){so_far}", "ok")]
    if watch.a_minute is not None:
        pieces += [(" │ ", "muted"), (f"{watch.a_minute:.1f}/min", "")]
    if watch.left_s is not None:
        pieces += [(f"  ETA {duration(watch.left_s)}", "")]
    if watch.excluded:
        pieces += [(" │ ", "muted"), (f"left out {watch.excluded}", "warn")]
    return [*pieces, (" │ ", "muted"), (f"{watch.suite} · {watch.model}", "muted")]


def score_cell(watch: EvaluationWatch) -> Cell:
    """Its score; a dot where there is none."""
    return "·" if watch.score is None else f"{watch.score.estimate:.3f}"


def done_cell(watch: EvaluationWatch) -> Cell:
    """Of how many tries how many were judged."""
    return "·" if watch.done is None else "{}/{}".format(*watch.done)


def result(watch: EvaluationWatch | None) -> list[list[Piece]]:
    """Its report; how it stands while there is none."""
    if watch is None:
        return [[("n starts an evaluation; Suites says what can be run.", "muted")]]
    if watch.report is None:
        if watch.is_running and watch.progress is not None:
            said = "Intervals come by task once it is done; until then tries count as if they were independent."
            return [*so_far_lines(watch.progress, watch.score), [], [(said, "muted")]]
        return [[("It has not said anything yet." if watch.is_running else "It has no report: r goes on.", "muted")]]
    return result_lines(watch.report)
