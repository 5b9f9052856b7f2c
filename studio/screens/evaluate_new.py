"""What a new evaluation should be: which suite, how much of it, which model, and what that will take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, Select, Static

from pipeline.errors import UserError
from pipeline.words import whole_number
from studio.screens.new import NewScreen

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.workspace import Workspace
    from train.harness.readiness import Readiness

OTHER = "other"
HELD_OUT = "heldout"
SCRIPTS = {
    "reference": "no model: the known solutions",
    "noop": "no model: does nothing",
    "random": "no model: calls at random",
}
"""What can be tried without a model, to know what a score means."""
PROTOCOLS = {"awm": "AWM's list_tools and call_tool", "native": "the server's own tool calling"}


class NewEvaluationScreen(NewScreen[tuple[str, ...]]):
    """Answers with the arguments for `awm-studio`."""

    def __init__(self, suites: Sequence[Readiness], suite: str = "") -> None:
        """`suite` is the one to begin with; else the first that can be run."""
        super().__init__()
        self._first = suite
        self._suites = {suite.name: suite for suite in suites}

    def compose(self) -> ComposeResult:
        """The choices, each on its line, and what they come to."""
        names = [(f"{s.title}{'' if s.state == 'ready' else f' ({s.state})'}", s.name) for s in self._suites.values()]
        first = self._first or next((s.name for s in self._suites.values() if s.state == "ready"), HELD_OUT)
        with VerticalScroll(classes="dialog", id="new-evaluation", can_focus=False):
            yield Static("A new evaluation", classes="title")
            yield Static("Suite", classes="field-label")
            yield Select(names, value=first if names else Select.NULL, prompt="none", compact=True, id="suite")
            yield Static("How much of it: a subset's held-out tasks, or a preset", classes="field-label")
            yield Select([], prompt="nothing can be run", compact=True, id="part")
            yield Static("Model", classes="field-label")
            yield Select(self._models(), allow_blank=False, compact=True, id="model")
            yield Static("Another model's name, and its server", classes="field-label")
            yield Input(placeholder="its name; empty: as chosen above", compact=True, id="new-model")
            yield Input(placeholder="its server's URL; empty: as the profile says", compact=True, id="new-base-url")
            yield Static("τ²-bench only: the model that plays the user", classes="field-label")
            yield Input(placeholder="a model's name, or a profile's", compact=True, id="new-user")
            yield Static("How it calls tools", classes="field-label")
            yield Select([(text, name) for name, text in PROTOCOLS.items()], value="awm", allow_blank=False,
                         compact=True, id="protocol")  # fmt: skip
            yield Static("Tries of each task (held-out and τ²-bench)", classes="field-label")
            yield Input("1", compact=True, id="new-tries")
            yield from self.ending()
        yield self.keys()

    def on_mount(self) -> None:
        """Begin with the suite."""
        self.query_one("#suite", Select).focus()
        self._offer_parts()

    def _models(self) -> list[tuple[str, str]]:
        from train.training_run import KIND

        studio = self.studio
        found = [(f"profile {name} ({p.model})", f"profile:{name}") for name, p in studio.settings.profiles.items()]
        trained = [run for run in studio.runs if run.kind == KIND and run.state == "done"]
        found += [(f"training {run.id}, {run.config.get('subset', '')}", f"checkpoint:{run.id}") for run in trained]
        scripts = [(about, f"policy:{name}") for name, about in SCRIPTS.items()]
        return [*found, ("the one named below", OTHER), *scripts]

    @on(Select.Changed, "#suite")
    def _offer_parts(self) -> None:
        """The subsets, or the presets of the suite."""
        from train.harness.presets import presets

        suite = self._suites.get(str(self.query_one("#suite", Select).value))
        if suite is None:
            return
        if suite.name == HELD_OUT:
            parts = [(f"{domain.name}: {domain.tasks} tasks", domain.name) for domain in suite.domains]
        else:
            parts = [(f"{preset.name}: {preset.about}", preset.name) for preset in presets(suite.name)]
        select = self.query_one("#part", Select)
        select.set_options(parts)
        if parts:
            select.value = parts[0][1]

    def taken(self) -> str:
        """Rollouts, or tries, requests, tokens and money."""
        workspace = self.studio.workspace
        self.answer()
        return self._taken(workspace) if workspace else ""

    def _taken(self, workspace: Workspace) -> str:
        suite = self._suites[self.chosen("suite")]
        tries = int(self.typed("tries"))
        if suite.name == HELD_OUT:
            tasks = next(domain.tasks or 0 for domain in suite.domains if domain.name == self.chosen("part"))
            return f"{tasks * tries:,} rollouts of at most 20 turns."
        from train.harness.offers import estimate_of, plan_for

        name: Any = suite.name
        protocol: Any = self.chosen("protocol")
        user = self._profile(workspace, self.typed("user")) if suite.name == "tau2" else None
        model = self._profile(workspace, self.typed("model"))
        plan = plan_for(name, self.chosen("part"), model, user=user, protocol=protocol, tries=tries,
                        checkout=_checkout() if suite.name == "mcp-universe" else None)  # fmt: skip
        taken = estimate_of(plan)
        tokens = taken.model.tokens_in
        read = "" if tokens is None else f", {tokens:,} tokens read and {taken.model.tokens_out:,} written"
        users = f"; the user's model: {taken.user.requests:,} requests" if taken.user else ""
        money = "What it costs is not known: no prices are set." if taken.usd is None else f"About ${taken.usd:,.2f}."
        return f"{taken.tries:,} tries, {taken.model.requests:,} requests{read}{users}.\n{money} Counted: {taken.how}."

    def _profile(self, workspace: Workspace, named: str) -> Profile:
        from pipeline.llm.profiles import choose
        from train.checkpoints import find_checkpoint

        kind, _, name = self.chosen("model").partition(":")
        if kind == "checkpoint" and not named:
            return find_checkpoint(workspace.runs, name).profile
        profiles = workspace.settings.profiles
        return choose(profiles, None, model=named or name or None, base_url=self.typed("base-url") or None)

    def answer(self) -> tuple[str, ...]:
        """The arguments."""
        return tuple(self._arguments())

    def _arguments(self) -> Iterator[str]:
        suite, part = self._suites.get(self.chosen("suite")), self.chosen("part")
        if suite is None or not part:
            raise UserError("Nothing can be run yet: make a subset that holds something out.")
        if suite.state != "ready":
            raise UserError(f"{suite.title} cannot be run: {'; '.join(suite.missing) or suite.state}. {suite.how}")
        yield from ("eval", suite.name, "--subset" if suite.name == HELD_OUT else "--preset", part)
        yield from self._model_arguments(suite.name)
        native = self.chosen("protocol") == "native"
        if suite.name == HELD_OUT:
            yield from ("--form", "native" if native else "text")
        else:
            yield from ("--protocol", "native" if native else "awm")
        tries = self.typed("tries")
        if not whole_number(tries):
            raise UserError(f"{tries!r} is no number of tries: write a whole number from 1.")
        if suite.name in (HELD_OUT, "tau2"):
            yield from ("--tries", tries)
        if suite.name == "tau2":
            if not self.typed("user"):
                raise UserError("τ²-bench needs a model that plays the user.")
            yield from ("--user-model", self.typed("user"))
        if suite.name != HELD_OUT:
            yield "--yes"

    def _model_arguments(self, suite: str) -> Iterator[str]:
        kind, _, name = self.chosen("model").partition(":")
        typed, url = self.typed("model"), self.typed("base-url")
        if typed:
            yield from ("--model", typed)
        elif kind == "checkpoint":
            if url:
                raise UserError("A checkpoint runs on this machine: leave the server empty, or name its model.")
            yield from ("--checkpoint", name)
            return
        elif kind == "policy":
            if suite != HELD_OUT:
                raise UserError("Without a model only held-out tasks can be tried: choose a model.")
            if url:
                raise UserError("Without a model there is no server: leave it empty, or name the server's model.")
            yield from ("--policy", name)
            return
        elif kind == "profile":
            yield from ("--model", name)
        else:
            raise UserError("Name a model, or choose a profile or a training.")
        if url:
            yield from ("--base-url", url)


def _checkout() -> Any:
    """MCP-Universe's task folder, where the environment names it."""
    import os
    from pathlib import Path

    from train.harness.readiness import CHECKOUT

    named = os.environ.get(CHECKOUT)
    if not named:
        raise UserError(f"Name MCP-Universe's task folder in {CHECKOUT} before the studio is started.")
    return Path(named)
