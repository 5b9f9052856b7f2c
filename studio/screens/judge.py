"""Judging pairs: the same concept, or not? The threshold follows from the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import work
from textual.widget import Widget
from textual.widgets import Static

from studio.actions import bindings
from studio.screens.pair import PairScreen

if TYPE_CHECKING:
    from pathlib import Path

    from curation.calibration import Calibration
    from curation.landscape import Landscape

ASKED = 50
"""Pairs asked about in one sitting: as many as a person judges in a quarter of an hour."""


class JudgeScreen(PairScreen):
    """One pair at a time, without its similarity, which would sway the answer."""

    ABOUT = (
        f"{ASKED} pairs that are neighbours, from the most to the least alike. Press s where a set with both "
        "has nothing more to teach than a set with one, else d. From 20 answers on, with both kinds among them, the "
        "threshold that agrees with them best takes the place of the default. Answers are kept at once."
    )
    BINDINGS = bindings("judge")

    def __init__(self, landscape: Landscape) -> None:
        super().__init__(landscape)
        self._landscape = landscape
        self._pairs: list[tuple[str, str, float]] = []
        self._at = 0
        self._keeping = asyncio.Lock()  # answers are kept one after the other, however quickly they come

    def body(self) -> Iterable[Widget]:
        """Which pair of how many, the two, what follows from the answers so far."""
        yield Static("", id="concepts-head", markup=False)
        yield from self.sides()
        yield Static("", id="calibrated", markup=False)

    def on_mount(self) -> None:
        """Choose the pairs."""
        super().on_mount()
        self._choose()

    @work(exclusive=True, group="judge")
    async def _choose(self) -> None:
        if self.studio.workspace is None:
            return
        found = await self.studio.ask(_choose, self._landscape, self.studio.workspace.path)
        if found is not None:
            self._pairs = found
            self._show()
            self._calibrate()

    def _show(self) -> None:
        head = self.query_one("#concepts-head", Static)
        if self._at >= len(self._pairs):
            head.update(f"All {len(self._pairs)} pairs were shown. Escape goes back." if self._pairs else NOTHING)
            return
        left, right, _ = self._pairs[self._at]
        head.update(f"Pair {self._at + 1} of {len(self._pairs)}: one concept (s) or two (d)? Space skips.")
        self.show_pair(left, right)

    @work(exclusive=True, group="calibrate")
    async def _calibrate(self) -> None:
        if self.studio.workspace is None:
            return
        answer = await self.studio.ask(_calibration, self._landscape, self.studio.workspace.path)
        if answer is not None:
            self.query_one("#calibrated", Static).update(said(*answer))

    # Actions

    def action_same(self) -> None:
        """The same concept."""
        self._answer(True)

    def action_different(self) -> None:
        """Different concepts."""
        self._answer(False)

    def _answer(self, same: bool) -> None:
        if self._at < len(self._pairs):
            left, right, _ = self._pairs[self._at]
            self._at += 1
            self._show()
            self._keep(left, right, same)

    @work
    async def _keep(self, left: str, right: str, same: bool) -> None:
        from curation.calibration import add_judgement

        if self.studio.workspace is not None:
            async with self._keeping:
                await self.studio.ask(add_judgement, self.studio.workspace.path, left, right, same)
            self._calibrate()

    def action_skip(self) -> None:
        """No answer."""
        self._at = min(self._at + 1, len(self._pairs))
        self._show()

    def action_before(self) -> None:
        """The pair before; another answer takes the place of the first."""
        self._at = max(0, self._at - 1)
        self._show()

    def action_back(self) -> None:
        """Back to the map."""
        self.dismiss()


NOTHING = "Every pair of neighbours has been judged, or there are no two environments. Escape goes back."


def _choose(landscape: Landscape, workspace: Path) -> list[tuple[str, str, float]]:
    from curation.calibration import pairs_to_judge, read_judgements

    return pairs_to_judge(landscape.survey.vectors, landscape.names, read_judgements(workspace), ASKED)


def _calibration(landscape: Landscape, workspace: Path) -> tuple[int, Calibration | None]:
    from curation.calibration import calibrate, read_judgements

    judged = read_judgements(workspace)
    return len(judged), calibrate(judged, landscape.names, landscape.survey.tree)


def said(judged: int, calibration: Calibration | None) -> str:
    """What follows from the answers so far, in a sentence."""
    from curation.calibration import ENOUGH

    if calibration is None:
        return f"{judged} judged. From {ENOUGH} on, with both answers among them, they set the threshold."
    return (
        f"{judged} judged, {calibration.same} the same: threshold {calibration.threshold:.2f}. It joins "
        f"{calibration.recall:.0%} of the pairs called the same; {calibration.precision:.0%} of what it joins was."
    )
