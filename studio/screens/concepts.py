"""Concepts: how many there really are, shown as a map, with what is too alike and where there is too little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from curation.extras import require
from pipeline.errors import UserError
from pipeline.words import number_of
from studio import launch
from studio.actions import bindings
from studio.bridge import News
from studio.concept_reading import VIEWS, Reading, headline, keep, pairs, point_lines, read, save_map
from studio.screens.ask import AskScreen
from studio.screens.choose import ChooseScreen
from studio.screens.duplicates import DuplicatesScreen
from studio.screens.environments import EnvironmentsScreen
from studio.screens.following import Following
from studio.screens.judge import JudgeScreen
from studio.screens.new_run import NewRunScreen
from studio.widgets.concept_map import ConceptList, ConceptMap, look
from studio.widgets.grid import Column, Grid
from studio.widgets.slider import ThresholdSlider
from studio.widgets.source import Source

if TYPE_CHECKING:
    from curation.landscape import Cut, Landscape
    from pipeline.workspace import Workspace

RUN = "diversity"
"""The kind of the runs that measure."""
SETTLE_S = 0.1
"""How long a threshold must rest before concepts are named for it; how many there are is known at once."""
COARSE, FINE = 0.05, 0.01
"""Steps of the threshold."""


class ConceptsScreen(Following):
    """Figures and threshold above, the map on the left, concepts and the current point on the right."""

    MODE = "concepts"
    ABOUT = (
        "Environments that mean the same, names of services masked, are one concept; how alike they must be is for you "
        "to say ([ and ]). Each point is an environment in its concept's glyph and colour; near points are alike. "
        "Points never share a cell while there is room, so a dense group looks as large as it is. The Vendi score is "
        "the effective number of different environments; it depends on the view, which is named beside it."
    )
    BINDINGS = bindings("concepts")

    zoomed: reactive[bool] = reactive(False, toggle_class="-zoomed")

    def __init__(self) -> None:
        super().__init__()
        self._reading: Reading | None = None
        self._cut: Cut | None = None
        self._settling: Timer | None = None
        self._sparse = -1
        self._progress: tuple[int, int] | None = None

    # What is shown

    def body(self) -> Iterable[Widget]:
        """Figures, threshold, a remark, map and side."""
        yield Static("", id="concepts-head", markup=False)
        yield ThresholdSlider(id="threshold")
        yield Static("", id="concepts-note", markup=False)
        with Horizontal():
            yield ConceptMap(id="map")
            with Vertical(id="concept-side"):
                yield ConceptList(
                    (
                        Column("look", "", lambda row: look(row[0]), width=1),
                        Column("size", "envs", lambda row: f"{row[1]:,}", width=5, right=True),
                        Column("words", "concept, by its own words", lambda row: row[2], width=20, flex=1),
                    ),
                    empty="",
                    id="concept-list",
                )
                yield Source(wrap=True, id="point")

    @property
    def map(self) -> ConceptMap:
        """The map."""
        return self.query_one(ConceptMap)

    @property
    def slider(self) -> ThresholdSlider:
        """The threshold."""
        return self.query_one(ThresholdSlider)

    @property
    def grid(self) -> Grid:
        """The concepts."""
        return self.query_one("#concept-list", Grid)

    @property
    def landscape(self) -> Landscape | None:
        """The last measurement."""
        return self._reading.landscape if self._reading else None

    @property
    def cut(self) -> Cut | None:
        """What it comes to at the threshold, once that has settled."""
        return self._cut

    def on_mount(self) -> None:
        """Begin with the map."""
        super().on_mount()
        self.map.focus()

    def heard(self, news: News) -> None:
        """How far a measurement is."""
        measuring = {run.id for run in self.studio.runs if run.kind == RUN}
        for event in news.events:
            if event.run in measuring and event.kind == "progress":
                self._progress = (event.data["done"], event.data["total"])
        self._say_note()

    async def read(self, workspace: Workspace) -> None:
        """Read again; the threshold stays where a person has put it, unless there is a new measurement."""
        try:
            require("concepts", "Counting concepts")
        except UserError as error:
            self.map.empty = [[(line, "warn")] for line in str(error).splitlines()]
            self.map.refresh()
            self.query_one("#concepts-head", Static).update(str(error))
            return
        before = self.landscape
        reading = await self.studio.ask(read, workspace, before)
        if reading is None:
            return
        self._reading = reading
        if reading.landscape is None:
            self._show_nothing()
        elif reading.landscape is not before:
            self._show_landscape(reading.landscape)
        else:
            self._colour()
        self._say_note()
        self._say_head()

    def _show_nothing(self) -> None:
        assert self._reading is not None
        self.map.empty = (
            [
                [("Nothing is measured yet.", "strong")],
                [],
                [("r", "accent"), (" compares ", ""), (number_of(self._reading.environments, "environment"), "strong")],
                [("  in a process of its own; Activity (7) shows how far it is.", "")],
                [("  The first time takes a minute or more: a sentence model is loaded.", "")],
            ]
            if self._reading.environments
            else [
                [("There are no environments to compare yet.", "strong")],
                [],
                [("2", "accent"), (" shows three ways to get some.", "")],
            ]
        )
        self.map.refresh()

    def _show_landscape(self, landscape: Landscape) -> None:
        assert self._reading is not None
        self._sparse = -1
        usual = self._reading.usual
        self.slider.show(landscape.survey.tree.count, usual=usual, value=usual)
        self.map.show([(x, y) for x, y in landscape.points.tolist()])
        self._cut_at(usual)

    @on(ThresholdSlider.Changed)
    def _threshold_changed(self, event: ThresholdSlider.Changed) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_S, lambda: self._cut_at(event.value))

    @work(exclusive=True, group="cut")
    async def _cut_at(self, threshold: float) -> None:
        """Work out what the landscape comes to at a threshold and show it."""
        from curation.landscape import cut

        if self.landscape is None:
            return
        found = await self.studio.ask(cut, self.landscape, threshold)
        if found is not None:
            self._cut = found
            self._colour()
            self._say_head()

    def _colour(self) -> None:
        if self._cut is None or self.landscape is None or self._reading is None:
            return
        aside = self._reading.aside or {}
        self.map.colour(self._cut.labels, {n for n, name in enumerate(self.landscape.names) if name in aside})
        sizes = Counter(self._cut.labels)
        concepts = [(concept, sizes[concept], words) for concept, words in enumerate(self._cut.names)]
        self.grid.show(concepts, cursor=self.map.concept or 0)
        self._show_point()

    def _say_head(self) -> None:
        if self.landscape is not None and self._reading is not None:
            undecided = sum(row.decision is None for row in pairs(self.landscape, self._reading.decisions))
            self.query_one("#concepts-head", Static).update(headline(self.landscape, self._cut, undecided))

    def _say_note(self) -> None:
        note = self.query_one("#concepts-note", Static)
        running = next((run for run in self.studio.runs if run.kind == RUN and run.state == "running"), None)
        if running is not None and not launch.is_orphaned(running):
            far = f", {self._progress[0]:,} of {self._progress[1]:,} texts embedded" if self._progress else ""
            said = f"▶ Run {running.id} measures{far}; this screen shows it when it is done."
        elif self.landscape is not None and self._reading is not None and self._reading.stale:
            changed = number_of(self._reading.stale, "environment")
            made = f"{self.landscape.made_at.astimezone():%m-%d %H:%M}"
            said = f"~ Stale: {changed} came, went or changed since {made}. r measures again."
        else:
            said = ""
        note.update(said)
        note.display = bool(said)

    # The point and the concept

    @on(ConceptMap.Moved)
    def _moved(self) -> None:
        if not self.grid.has_focus and self.map.concept is not None:
            with self.prevent(Grid.Highlighted):
                self.grid.cursor = self.map.concept
        self._show_point()

    @on(Grid.Highlighted, "#concept-list")
    def _concept_highlighted(self, event: Grid.Highlighted) -> None:
        if self.grid.has_focus and event.row is not None and self._cut is not None:
            self.map.spotlight = event.row[0]
            self.map.cursor = self._cut.centres[event.row[0]]

    def _show_point(self) -> None:
        if self.landscape is not None and self._cut is not None and self._reading is not None:
            aside = self._reading.aside or {}
            lines = point_lines(self.landscape, self._cut, self.map.cursor, aside.get(self._current, ""))
            self.query_one("#point", Source).show_lines(lines)

    @property
    def _current(self) -> str:
        return self.landscape.names[self.map.cursor] if self.landscape is not None else ""

    @on(ConceptMap.Chosen)
    def _to_list(self) -> None:
        self.zoomed = self.has_class("-narrow")
        self.call_after_refresh(self.grid.focus)

    @on(Grid.Selected, "#concept-list")
    def _to_point(self) -> None:
        self.query_one("#point", Source).focus()

    # Actions

    def action_lower(self) -> None:
        """Less alike is the same: fewer concepts."""
        self.slider.value -= FINE

    def action_higher(self) -> None:
        """Only what is more alike is the same: more concepts."""
        self.slider.value += FINE

    def action_much_lower(self) -> None:
        """Five steps at once."""
        self.slider.value -= COARSE

    def action_much_higher(self) -> None:
        """Five steps at once."""
        self.slider.value += COARSE

    def action_next_concept(self) -> None:
        """Light up the next concept."""
        self._turn(1)

    def action_previous_concept(self) -> None:
        """Light up the one before."""
        self._turn(-1)

    def _turn(self, steps: int) -> None:
        if self._cut is not None and (here := self.map.concept) is not None:
            concept = here if self.map.spotlight is None else (here + steps) % len(self._cut.names)
            self.map.spotlight = concept
            self.map.cursor = self._cut.centres[concept]

    def action_next_sparse(self) -> None:
        """To the environment with the least similar neighbours, then to the next."""
        from curation.sparse import sparsest

        if self.landscape is not None:
            order = sparsest(self.landscape)
            self._sparse = (self._sparse + 1) % len(order)
            self.map.cursor = order[self._sparse]

    @work(exclusive=True, group="make")
    async def action_make_here(self) -> None:
        """A synthesis that is told to make more of this kind."""
        from curation.sparse import hint_for

        if self.landscape is None or self._cut is None:
            self._say_measure_first()
            return
        hint = hint_for(self.landscape, self._cut, self.map.cursor)
        arguments = await self.studio.push_screen_wait(NewRunScreen(hint))
        if arguments is not None:
            self.studio.start_run(*arguments)
            self.notify("The synthesis is being started; Pipeline (1) shows it.")

    @work(exclusive=True, group="measure")
    async def action_measure(self) -> None:
        """Measure in a process of its own, by a view that is asked for."""
        if any(run.kind == RUN and run.state == "running" and launch.is_alive(run) for run in self.studio.runs):
            self.notify("It is being measured already: see Activity (7).", severity="warning")
            return
        now = self.landscape.survey.view.value if self.landscape is not None else "all"
        view = await self.studio.push_screen_wait(ChooseScreen("Compare environments by their", VIEWS, now=now))
        if view is not None:
            self._progress = None
            self.studio.start_run(RUN, "--keep", "--view", view)
            self.notify("Measuring …; the sentence model takes a while to load.")

    @work(exclusive=True, group="keep")
    async def action_keep(self) -> None:
        """Give each environment its concept in the catalog."""
        if self.landscape is None or self._cut is None or self.studio.workspace is None:
            self._say_measure_first()
            return
        found = self._cut
        kept = await self.studio.ask(keep, self.studio.workspace, self.landscape, found)
        if kept is not None:
            said = f"{number_of(kept, 'environment')} now say their concept: in the list, and in filters."
            self.notify(said, title=f"Concepts at {found.threshold:.2f}")

    async def action_open(self) -> None:
        """To the environment under the cursor, in the list of environments."""
        name = self._current
        if not name:
            return
        await self.studio.switch_mode("environments")
        screen = self.studio.screen
        if not isinstance(screen, EnvironmentsScreen) or not screen.grid.go_to(lambda row: row.name == name):
            self.studio.notify(f"{name} is not in the list as it is now: clear its filter.", markup=False)

    @work(exclusive=True, group="figure")
    async def action_save_figure(self) -> None:
        """Write the map as a page or a picture."""
        if self.landscape is None or self._cut is None:
            self._say_measure_first()
            return
        question = AskScreen(
            "Save the map as which file?",
            "FILE.html is a page to explore, FILE.png a picture.",
            value="concepts.html",
        )
        wanted = await self.studio.push_screen_wait(question)
        if wanted is None:
            return
        saved = await self.studio.ask(save_map, wanted, self.landscape, self._cut)
        if saved is not None:
            self.notify(f"Saved {saved}", markup=False)

    @work(exclusive=True, group="duplicates")
    async def action_duplicates(self) -> None:
        """Look at pairs that are nearly the same."""
        if self.landscape is None or self._reading is None:
            self._say_measure_first()
            return
        await self.studio.push_screen_wait(DuplicatesScreen(self.landscape, self._reading.decisions))
        self.reload()

    @work(exclusive=True, group="judging")
    async def action_judge(self) -> None:
        """Judge pairs; the threshold follows."""
        if self.landscape is None:
            self._say_measure_first()
            return
        await self.studio.push_screen_wait(JudgeScreen(self.landscape))
        before = self._reading.usual if self._reading else None
        await self.reload().wait()
        if self.landscape is not None and self._reading is not None and self._reading.usual != before:
            self._show_landscape(self.landscape)

    def _say_measure_first(self) -> None:
        self.notify("Nothing is measured yet: r does it.", severity="warning")

    def action_zoom(self) -> None:
        """The list alone, or the map."""
        self.zoomed = not self.zoomed
        self.call_after_refresh(self.grid.focus if self.zoomed else self.map.focus)

    def action_back(self) -> None:
        """From the list to the map; on the map, everything in sight again."""
        if self.zoomed or not self.map.has_focus:
            self.zoomed = False
            self.call_after_refresh(self.map.focus)
        else:
            self.map.action_whole()

    def copy_text(self) -> str:
        """The name of the environment under the cursor."""
        return self._current
