"""What a new synthesis should be: the options of `awm-studio synth` that matter, as a small form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Select, Static

from pipeline.errors import UserError
from pipeline.places import named_place
from pipeline.words import whole_number
from studio.screens.new import NewScreen
from studio.synthesis import TOKENS_A_STAGE, read_gates

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile

OFFLINE = "offline"
USUAL = "usual"
FIELDS = {
    "count": ("How many environments", "20"),
    "model": ("Model's name, if not a profile's", "as the profile says"),
    "base-url": ("Its server", "as the profile says"),
    "seeds": ("Seeds: a JSONL file with name, description, category", "the hundred that are built in"),
    "gate": ("Gates: hold for approval", "for example: database:warn verification"),
    "budget": ("Budget in US dollars", "no limit"),
}
"""Each line to fill in: what it is, and what holds where it is left empty."""


class NewRunScreen(NewScreen[tuple[str, ...]]):
    """Answers with the arguments for `awm-studio`. A `hint`, what the model is told to make, can be edited."""

    def __init__(self, hint: str = "") -> None:
        super().__init__()
        self._hint = hint

    def compose(self) -> ComposeResult:
        """The choices, each on its line."""
        profiles = self.studio.settings.profiles
        makers = [("the usual model of the settings", USUAL)]
        makers += [(f"profile {name} ({profile.model})", f"profile:{name}") for name, profile in profiles.items()]
        makers.append(("rules, offline: no model, no cost", OFFLINE))
        with Vertical(classes="dialog", id="new-run"):
            yield Static("A new synthesis", classes="title")
            yield Static("Made by", classes="field-label")
            yield Select(makers, value=USUAL, allow_blank=False, compact=True, id="maker")
            for name, (label, empty) in FIELDS.items():
                yield Static(label, classes="field-label")
                yield Input("20" if name == "count" else "", placeholder=empty, compact=True, id=f"new-{name}")
            if self._hint:
                yield Static("What the model is told to make", classes="field-label")
                yield Input(self._hint, compact=True, id="new-hint")
            yield from self.ending()
        yield self.keys()

    def on_mount(self) -> None:
        """Begin with the count."""
        self.query_one("#new-count", Input).focus()

    def taken(self) -> str:
        """What it costs."""
        self.answer()
        if self.chosen("maker") == OFFLINE:
            return "It costs nothing."
        usd = _estimated(self.studio.settings.profiles, self.chosen("maker"), self.typed("model"))
        if usd is None:
            return "What it will cost is not known: no prices are set."
        return f"About ${usd * int(self.typed('count')):,.2f}, from what environments of the paper's size take."

    def answer(self) -> tuple[str, ...]:
        """The arguments."""
        return tuple(self._arguments())

    def _arguments(self) -> Iterator[str]:
        count = self.typed("count")
        if not whole_number(count):
            raise UserError(f"{count!r} is no number of environments: write a whole number from 1.")
        yield from ("synth", "--count", count)
        hint = self.typed("hint") if self._hint else ""
        if self.chosen("maker") == OFFLINE:
            if hint:
                raise UserError("Rules make what the domain files say: choose a model, or empty the last line.")
            yield "--offline"
            return
        if hint:
            yield from ("--hint", hint)
        kind, _, profile = self.chosen("maker").partition(":")
        if model := self.typed("model") or (profile if kind == "profile" else ""):
            yield from ("--model", model)
        if url := self.typed("base-url"):
            yield from ("--base-url", url)
        if seeds := self.typed("seeds"):
            if not named_place(seeds).is_file():
                raise UserError(f"There is no file {seeds}.")
            yield from ("--seeds", str(named_place(seeds)))
        gates = self.typed("gate").replace(",", " ").split()
        read_gates(gates)
        for gate in gates:
            yield from ("--gate", gate)
        if budget := self.typed("budget"):
            if not budget.replace(".", "", 1).isdecimal():
                raise UserError(f"{budget!r} is no amount: write a number of US dollars, for example 12.50.")
            yield from ("--budget", budget)
        yield from ("--yes", "--detach")


def _estimated(profiles: Mapping[str, Profile], maker: str, model: str) -> float | None:
    """US dollars an environment, or None where no price is known."""
    name = model if model in profiles else "" if model else maker.partition(":")[2] or "default"
    profile = profiles.get(name)
    if maker == OFFLINE or profile is None or profile.prices is None:
        return None
    prices = profile.prices
    return sum(prices.usd(*tokens) for tokens in TOKENS_A_STAGE.values())
