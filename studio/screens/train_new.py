"""What a new training should be: a subset, a preset, and what is to differ from it; and what that will take."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Footer, Input, Select, Static

from pipeline.errors import UserError
from studio.actions import bindings
from studio.widgets.cells import count

if TYPE_CHECKING:
    from pipeline.workspace import Workspace
    from studio.app import Studio
    from train.config import TrainConfig
    from train.estimate import Estimate
    from train.preflight import Ready

SETTLE_S = 0.4
"""How long nothing must be typed before what is there is looked at: that reads the subset's environments."""

FIELDS = {
    "model": ("Model: a name on the Hugging Face hub, or a folder", "the preset's"),
    "steps": ("Steps", "the preset's"),
    "set": ("Other fields that are to differ", "for example: grpo.options.learning_rate=1e-5 rules.window=5"),
}
"""Each line to fill in: what it is, and what holds where it is left empty."""


class NewTrainingScreen(ModalScreen[int | None]):
    """Starts a training in a process of its own and answers with its number, or with None."""

    BINDINGS = bindings("new")

    def __init__(self) -> None:
        super().__init__()
        self._settling: Timer | None = None

    def compose(self) -> ComposeResult:
        """The choices, each on its line, and what they come to."""
        from train.config import load, preset_names

        studio = cast("Studio", self.app)
        subsets = [stored.name for stored in studio.workspace.catalog.subsets()] if studio.workspace else []
        presets = [(f"{name}: {load(name).about.splitlines()[0]}", name) for name in preset_names()]
        with VerticalScroll(classes="dialog", id="new-training", can_focus=False):
            yield Static("A new training", classes="title")
            yield Static("Subset to train on; its held-out tasks are tried before and after", classes="field-label")
            yield Select([(name, name) for name in subsets], prompt="none yet: awm-studio subset makes one",
                         compact=True, id="subset", value=subsets[0] if subsets else Select.NULL)  # fmt: skip
            yield Static("Preset", classes="field-label")
            yield Select(presets, value=presets[0][1], allow_blank=False, compact=True, id="preset")
            for name, (label, empty) in FIELDS.items():
                yield Static(label, classes="field-label")
                yield Input(placeholder=empty, compact=True, id=f"new-{name}")
            yield Static("", id="new-cost", classes="hint", markup=False)
            yield Static("", id="new-problem", classes="field-problem", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin with the subset."""
        self.query_one("#subset", Select).focus()

    @property
    def _subset(self) -> str:
        chosen = self.query_one("#subset", Select).value
        return chosen if isinstance(chosen, str) else ""

    def _typed(self, name: str) -> str:
        return self.query_one(f"#new-{name}", Input).value.strip()

    def _config(self) -> tuple[str, TrainConfig]:
        """The preset's name, and it with what is to differ. Raises UserError where that does not fit."""
        from train.config import load

        preset = str(self.query_one("#preset", Select).value)
        try:
            overrides = shlex.split(self._typed("set"))
        except ValueError as error:
            raise UserError(f"The fields that are to differ cannot be read: {error}.") from None
        if model := self._typed("model"):
            overrides.append(f"model.name={model}")
        if steps := self._typed("steps"):
            overrides.append(f"grpo.steps={steps}")
        return preset, load(preset, overrides)

    @on(Select.Changed)
    @on(Input.Changed)
    def _changed(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_S, self._look)

    @work(exclusive=True, group="look")
    async def _look(self) -> None:
        """Say what it will take, or what is wrong with it."""
        studio = cast("Studio", self.app)
        found = await studio.ask(self._checked, studio.workspace) if studio.workspace else None
        if isinstance(found, str):
            self._say("", found)
        elif found is not None:
            self._say(told(found), "")

    def _checked(self, workspace: Workspace) -> Ready | str:
        from train import preflight

        try:
            _, config = self._config()
            return preflight.check(workspace, config, self._subset) if self._subset else "There is no subset yet."
        except UserError as error:
            return str(error)

    def _say(self, cost: str, problem: str) -> None:
        self.query_one("#new-cost", Static).update(cost)
        shown = self.query_one("#new-problem", Static)
        shown.update(f"✗ {problem}" if problem else "")
        shown.display = bool(problem)

    @on(Input.Submitted)
    @work(exclusive=True, group="look")
    async def action_start(self) -> None:
        """Start it, or say what is wrong."""
        studio = cast("Studio", self.app)
        started = await studio.ask(self._start, studio.workspace) if studio.workspace else None
        if isinstance(started, str):
            self._say("", started)
        elif started is not None:
            self.dismiss(started)

    def _start(self, workspace: Workspace) -> int | str:
        """The number of the training that was started, or why none was."""
        from train import training_run

        try:
            if not self._subset:
                raise UserError("There is no subset yet: make one with awm-studio subset, or on the Subsets screen.")
            preset, config = self._config()
            run = training_run.create(workspace, config, self._subset, preset=preset)
            training_run.start(workspace, run, detached=True)
        except UserError as error:
            return str(error)
        return run.id

    def action_close(self) -> None:
        """Start nothing."""
        self.dismiss(None)


def told(ready: Ready) -> str:
    """What a training will take, in lines."""
    taken = ready.estimate
    passes = "" if taken.passes is None else f", each of {len(ready.train)} tasks about {taken.passes:.1f} times"
    lines = [
        f"{taken.instances:,} instances at once, {taken.rollouts:,} rollouts in all{passes}; "
        f"{len(ready.test)} held-out tasks.",
        f"At most {count(taken.most_tokens)} sampled tokens a step ({taken.most_turns:,} turns at their longest).",
        _memory(taken),
    ]
    return "\n".join(lines)


def _memory(taken: Estimate) -> str:
    low, high = map(_size, taken.environment_bytes)
    environments = f"environments {low} to {high}"
    if taken.model_bytes is None or taken.parameters is None or taken.disk_bytes is None:
        return f"Memory: {environments}; the model's size is not known before it is loaded."
    model = f"{_size(taken.model_bytes)} for {count(taken.parameters)} parameters without activations"
    return f"Memory: {environments}; {model}. Disk: {_size(taken.disk_bytes)}."


def _size(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
