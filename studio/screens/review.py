"""The review queue: what checks and audits leave to a person, and what the person decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from textual import on, work
from textual.widget import Widget
from textual.widgets import Static

from curation.fixes.proposals import fixes_of
from curation.review import RUBRIC, Decision, Entry, Item, decide, entries, queue
from curation.review_export import export_reviews
from pipeline.places import named_place
from studio.actions import bindings
from studio.person import person
from studio.screens.ask import AskScreen
from studio.screens.choose import ChooseScreen
from studio.screens.fixes import FixesScreen
from studio.screens.following import Following
from studio.widgets.grid import Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text
from studio.widgets.states import state

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

DECISIONS: dict[str | None, Piece] = {
    None: ("?", "warn"),
    "accept": ("✓ accepted", "ok"),
    "waive": ("~ waived", "muted"),
    "fix": ("! to fix", "warn"),
    "drop": ("✗ dropped", "fail"),
}
"""How decisions are shown."""


def _decision(entry: Entry) -> Piece:
    return DECISIONS[entry.decision]


def _reviewer(entry: Entry) -> Piece:
    return (entry.review.reviewer, "muted") if entry.review else ("", "")


class Queue(Listing):
    """Every item; below, its evidence, what to do, and what was decided."""

    EMPTY = "Reading what was found …"
    COLUMNS = (
        Column("severity", "", lambda entry: state(entry.item.severity), width=7),
        Column("environment", "environment", lambda entry: entry.item.environment, width=20, flex=2),
        Column("code", "what", lambda entry: (entry.item.code, "name"), width=16, flex=1),
        Column("where", "where", lambda entry: entry.item.where, width=16, flex=2, drop=2),
        Column("decision", "decision", _decision, width=10),
        Column("reviewer", "by", _reviewer, width=10, drop=3),
        Column("message", "message", lambda entry: (entry.item.message, "muted"), width=16, flex=3, drop=1),
    )

    def explain(self, row: Entry) -> Text:
        """Message, evidence, remedy, decision."""
        return list(_explained(row))


def _explained(entry: Entry) -> Iterator[list[Piece]]:
    item, review = entry.item, entry.review
    yield [(item.message, "strong")]
    yield [("at ", "muted"), (item.where, ""), (f"   item {item.key}, found by the {item.source}", "muted")]
    if item.evidence:
        yield []
        yield from ([(line, "")] for line in item.evidence.splitlines())
    if item.remedy:
        yield []
        yield [("What to do: ", "accent"), (item.remedy, "")]
    yield []
    if review is None:
        yield [("Nobody has decided: Enter shows the choices.", "muted")]
        return
    yield [_decision(entry), (f"  by {review.reviewer}, {review.created_at.astimezone():%Y-%m-%d %H:%M}", "muted")]
    if review.reason:
        yield [(f"“{review.reason}”", "")]


class ReviewScreen(Following):
    """Items above, gravest first; keys decide."""

    MODE = "environments"
    ABOUT = (
        "Errors and warnings of the last checks, and verifiers that cannot be trusted. What is accepted or waived does "
        "not count in the list of environments any more; an environment that is dropped is left out of subsets. A "
        "decision is about what was seen: if a later check finds something else there, that is a new item."
    )
    BINDINGS = bindings("review")

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__()
        self._names = tuple(names)
        self._entries: list[Entry] = []
        self._words = ""
        self._decided = False
        self.opened: Item | None = None

    def body(self) -> Iterable[Widget]:
        """How much there is, then the queue."""
        yield Static("", id="queue-head", markup=False)
        yield Queue()

    @property
    def grid(self) -> Grid:
        """The items."""
        return self.query_one(Queue).grid

    @property
    def current(self) -> Entry | None:
        """The item under the cursor."""
        return self.grid.row

    def on_mount(self) -> None:
        """Begin with the queue."""
        super().on_mount()
        self.grid.focus()

    async def read(self, workspace: Workspace) -> None:
        """Read the queue."""
        found = await self.studio.ask(queue, workspace.catalog, self._names or None)
        if found is not None and (found != self._entries or not found):
            self._entries = found
            self._list()

    def _list(self) -> None:
        """Show what is wanted, the cursor where it was."""
        key, place = (self.current.item.key if self.current else ""), self.grid.cursor
        shown = [entry for entry in self._entries if (self._decided or entry.is_open) and self._has_words(entry)]
        still_open = sum(entry.is_open for entry in self._entries)
        self.grid.empty = "Nothing needs you." if not still_open else "No item has these words."
        there = next((number for number, entry in enumerate(shown) if entry.item.key == key), place)
        self.query_one(Queue).grid.show(shown, cursor=there)
        parts = [f"{still_open} to decide about", f"{len(self._entries) - still_open} decided"]
        parts += [f"only with “{self._words}”"] if self._words else []
        self.query_one("#queue-head", Static).update(" · ".join(parts))

    def _has_words(self, entry: Entry) -> bool:
        item = entry.item
        text = f"{item.environment} {item.severity} {item.code} {item.where} {item.message}".lower()
        return all(word in text for word in self._words.lower().split())

    # Deciding

    @on(Grid.Selected)
    def _selected(self) -> None:
        self.action_choose()

    @work(exclusive=True, group="decide")
    async def action_choose(self) -> None:
        """Show the rubric and decide."""
        if self.current is None:
            return
        possible = [one for one in RUBRIC if self.current.review or one is not Decision.reopen]
        labels = {one.value: f"{one.value:<7} {RUBRIC[one]}" for one in possible}
        chosen = await self.studio.push_screen_wait(ChooseScreen(self.current.item.message, labels, wide=True))
        if chosen is not None:
            await self._decide(Decision(chosen))

    @work(exclusive=True, group="decide")
    async def action_accept(self) -> None:
        """It is no fault."""
        await self._decide(Decision.accept)

    @work(exclusive=True, group="decide")
    async def action_waive(self) -> None:
        """It is a fault that does not matter."""
        await self._decide(Decision.waive)

    @work(exclusive=True, group="decide")
    async def action_fix(self) -> None:
        """It is to be put right; where that can be done mechanically, show how."""
        entry, workspace = self.current, self.studio.workspace
        if entry is None or workspace is None:
            return
        fixes = await self.studio.ask(fixes_of, workspace.catalog, entry.item.environment) or []
        if any(fix.where == entry.item.where for fix in fixes):
            item = entry.item
            self.studio.push_screen(FixesScreen(item.environment, item.environment, where=item.where))
        else:
            await self._decide(Decision.fix)
            self.notify("Noted as to be fixed: there is no mechanical remedy for it.")

    @work(exclusive=True, group="decide")
    async def action_drop(self) -> None:
        """Leave the environment out."""
        await self._decide(Decision.drop)

    @work(exclusive=True, group="decide")
    async def action_reopen(self) -> None:
        """Take the decision back."""
        if self.current is not None and self.current.review is not None:
            await self._decide(Decision.reopen)

    async def _decide(self, decision: Decision) -> None:
        entry, workspace = self.current, self.studio.workspace
        if entry is None or workspace is None:
            return
        reason = ""
        if decision in ("waive", "drop"):
            hint = "A waiver needs a reason." if decision == "waive" else "May be left empty."
            asked = AskScreen(f"Why {decision} it?", hint, required=decision == "waive")
            answer = await self.studio.push_screen_wait(asked)
            if answer is None:
                return
            reason = answer
        catalog, name = workspace.catalog, entry.item.environment
        if not await self.studio.ask(
            decide, catalog, name, entry.item.key, decision, reviewer=person().name, reason=reason
        ):
            return
        # The other environments' items are as they were: reading all of a large workspace takes seconds.
        now = {fresh.item.key: fresh for fresh in await self.studio.ask(entries, catalog, name) or ()}
        self._entries = [
            now.get(each.item.key, each) if each.item.environment == name else each for each in self._entries
        ]
        self._list()

    # Looking

    @work(exclusive=True, group="words")
    async def action_filter(self) -> None:
        """Show only items with these words."""
        asked = AskScreen("Show only items with these words", "Nothing shows all.", value=self._words, required=False)
        words = await self.studio.push_screen_wait(asked)
        if words is not None:
            self._words = words
            self._list()

    def action_decided(self) -> None:
        """Also what somebody has decided, or only what is open."""
        self._decided = not self._decided
        self._list()

    @work(exclusive=True, group="export")
    async def action_export(self) -> None:
        """Write the queue and all decisions to a file."""
        workspace = self.studio.workspace
        if workspace is None:
            return
        place = str(workspace.path / "review.csv")
        named = await self.studio.push_screen_wait(AskScreen("Export to which file?", "CSV, or .json.", value=place))
        if named is None:
            return
        path = await self.studio.ask(named_place, named)
        rows = await self.studio.ask(export_reviews, workspace.catalog, path) if path is not None else None
        if rows is not None:
            self.notify(f"{rows} rows in {path}", markup=False)

    def action_open(self) -> None:
        """To the environment, where the finding is."""
        if self.current is not None:
            self.opened = self.current.item
            self.dismiss()

    def action_back(self) -> None:
        """Back to the environments."""
        self.dismiss()
