"""A recipe being written, and what it would pick, counted while it is typed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Footer, Input, Select, Static

from curation.filters import parse
from curation.subset import Method, Recipe, require_name
from curation.views import View
from pipeline.errors import UserError
from pipeline.words import whole_number
from studio.actions import bindings
from studio.concept_reading import VIEWS
from studio.subset_reading import METHODS, preview_lines, read_recipe_pool
from studio.widgets.lines import as_content

if TYPE_CHECKING:
    from curation.preview import Pool, Preview
    from studio.app import Studio

SETTLE_S = 0.25
"""How long typing must rest before the recipe is followed."""
FIELDS = {
    "name": ("Name", "mix-v1"),
    "where": ("Only environments that pass", "all, or for example: check:pass tools>5 -domain:travel"),
    "budget": ("How many environments", "all"),
    "held-out": ("Held out for tests", "none; a share of them, such as 0.1"),
    "tasks-each": ("Tasks an environment", "all"),
    "distinct": ("Never two as alike as", "they may be; for example 0.85"),
    "series": ("Nested sizes to describe", "none; for example 10,100,526"),
    "seed": ("Seed", "0"),
}
"""Each line to fill in: what it is, and what holds where it is left empty."""


class BuildScreen(ModalScreen[tuple[str, ...] | None]):
    """Answers with the arguments for `awm-studio subset`, or None."""

    BINDINGS = bindings("form")

    def __init__(self, taken: Collection[str]) -> None:
        super().__init__()
        self._taken = taken
        self._pool: Pool | None = None
        self._settling: Timer | None = None

    def compose(self) -> ComposeResult:
        """The choices, each on its line, and what they come to."""
        with Vertical(classes="dialog form", id="build"):
            yield Static("A new subset", classes="title")
            with VerticalScroll(can_focus=False):
                for name, (label, empty) in FIELDS.items():
                    with Horizontal(classes="form-line"):
                        yield Static(label, classes="field-label")
                        yield Input(placeholder=empty, compact=True, id=f"build-{name}")
                with Horizontal(classes="form-line"):
                    yield Static("Picked by", classes="field-label")
                    yield Select(
                        [(said, name) for name, said in METHODS.items()],
                        value="facility",
                        allow_blank=False,
                        compact=True,
                        id="build-method",
                    )
                with Horizontal(classes="form-line"):
                    yield Static("Compared by their", classes="field-label")
                    yield Select(
                        [(said, name) for name, said in VIEWS.items()],
                        value="all",
                        allow_blank=False,
                        compact=True,
                        id="build-cover",
                    )
            yield Static("", id="form-problem", classes="field-problem", markup=False)
            yield Static("Reading the catalog …", id="preview", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin with the name, and read what recipes choose from."""
        self.query_one("#build-name", Input).focus()
        self._read()

    @property
    def studio(self) -> Studio:
        """The app."""
        return cast("Studio", self.app)

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        if self.studio.workspace is None:
            return
        self._pool = await self.studio.ask(read_recipe_pool, self.studio.workspace)
        if self._pool is None:
            self.query_one("#preview", Static).update(
                "Nothing is measured yet, so nothing can be counted live: Concepts (3) measures. Picking works all the "
                "same."
            )
        else:
            self._follow()

    def _typed(self, name: str) -> str:
        return self.query_one(f"#build-{name}", Input).value.strip()

    @on(Input.Changed)
    @on(Select.Changed)
    def _changed(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_S, self._follow)

    @work(exclusive=True, group="follow")
    async def _follow(self) -> None:
        """Say what the recipe comes to, or what is wrong with it."""
        try:
            recipe = self._recipe()
        except UserError as error:
            self._complain(str(error))
            return
        self._complain("")
        if self._pool is None:
            return
        found = await self.studio.ask(_preview, self._pool, recipe)
        if isinstance(found, str):
            self._complain(found)
        elif found is not None:
            lines = [as_content(line) for line in preview_lines(self._pool, recipe, found)]
            self.query_one("#preview", Static).update(Content("\n").join(lines))

    def _complain(self, problem: str) -> None:
        shown = self.query_one("#form-problem", Static)
        shown.update(f"✗ {problem}" if problem else "")
        shown.display = bool(problem)

    def _recipe(self) -> Recipe:
        """What is filled in. Raises UserError naming the first line that cannot be read."""
        parse(self._typed("where"))
        return Recipe(
            name=self._typed("name"),
            budget=_whole(self._typed("budget"), "How many environments"),
            where=self._typed("where"),
            method=Method(str(self.query_one("#build-method", Select).value)),
            cover=View(str(self.query_one("#build-cover", Select).value)),
            tasks_each=_whole(self._typed("tasks-each"), "Tasks an environment"),
            distinct=_share(self._typed("distinct"), "Never two as alike as"),
            held_out=_share(self._typed("held-out"), "Held out for tests") or 0.0,
            series=_sizes(self._typed("series")),
            seed=_whole(self._typed("seed"), "Seed", least=0) or 0,
        )

    @on(Input.Submitted)
    def action_start(self) -> None:
        """Have it picked, or say what is wrong."""
        if self._settling is not None:  # what it would say must not take the place of what is said here
            self._settling.stop()
        self.workers.cancel_group(self, "follow")
        try:
            recipe = self._recipe()
            require_name(recipe.name)
            if recipe.name in self._taken:
                raise UserError(
                    f"There is a subset {recipe.name} already: choose another name, or forget that one first."
                )
        except UserError as error:
            self._complain(str(error))
            return
        self.dismiss(tuple(_arguments(recipe)))

    def action_close(self) -> None:
        """Pick nothing."""
        self.dismiss(None)


def _preview(pool: Pool, recipe: Recipe) -> Preview | str:
    """What a recipe would pick, or why it cannot be followed."""
    from curation.preview import preview

    try:
        return preview(pool, recipe)
    except UserError as error:
        return str(error)


def _arguments(recipe: Recipe) -> Iterator[str]:
    yield recipe.name
    yield from ("--budget", str(recipe.budget)) if recipe.budget else ("--all",)
    yield from ("--method", recipe.method, "--cover", recipe.cover, "--seed", str(recipe.seed))
    if recipe.where:
        yield from ("--where", recipe.where)
    if recipe.tasks_each:
        yield from ("--tasks-each", str(recipe.tasks_each))
    if recipe.distinct is not None:
        yield from ("--distinct", str(recipe.distinct))
    if recipe.held_out:
        yield from ("--held-out", str(recipe.held_out))
    if recipe.series:
        yield from ("--series", ",".join(map(str, recipe.series)))


def _whole(text: str, label: str, *, least: int = 1) -> int | None:
    if not text:
        return None
    number = whole_number(text)
    if number is None or number < least:
        raise UserError(f"{label}: {text!r} is not a whole number from {least}.")
    return number


def _share(text: str, label: str) -> float | None:
    if not text:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise UserError(f"{label}: {text!r} is not a number from 0 to below 1.")
    return share


def _sizes(text: str) -> tuple[int, ...]:
    sizes = [size.strip() for size in text.split(",") if size.strip()]
    if not all(map(whole_number, sizes)):
        raise UserError(f"Nested sizes to describe: {text!r} is not a list of sizes like 10,100,526.")
    return tuple(sorted({int(size) for size in sizes}))
