"""What a new training should be: a subset, a preset, and what is to differ from it; and what that will take."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input, Select, Static

from pipeline.errors import UserError
from pipeline.words import number_of
from studio.screens.new import NewScreen
from studio.widgets.cells import count

if TYPE_CHECKING:
    from train.config import TrainConfig
    from train.estimate import Estimate
    from train.preflight import Ready

FIELDS = {
    "model": ("Model: a name on the Hugging Face hub, or a folder", "the preset's"),
    "steps": ("Steps", "the preset's"),
    "set": ("Other fields that are to differ", "for example: grpo.options.learning_rate=1e-5 rules.window=5"),
}
"""Each line to fill in: what it is, and what holds where it is left empty."""


class NewTrainingScreen(NewScreen[int]):
    """Starts a training in a process of its own and answers with its number."""

    def compose(self) -> ComposeResult:
        """The choices, each on its line, and what they come to."""
        from train.config import load, preset_names

        workspace = self.studio.workspace
        subsets = [stored.name for stored in workspace.catalog.subsets()] if workspace else []
        presets = [(f"{name}: {load(name).about.splitlines()[0]}", name) for name in preset_names()]
        with VerticalScroll(classes="dialog", id="new-training", can_focus=False):
            yield Static("A new training", classes="title")
            yield Static("Subset to train on; its held-out tasks are tried before and after", classes="field-label")
            prompt = "choose one" if subsets else "none yet: awm-studio subset makes one"
            first = subsets[0] if subsets else Select.NULL
            yield Select([(name, name) for name in subsets], prompt=prompt, compact=True, id="subset", value=first)
            yield Static("Preset", classes="field-label")
            yield Select(presets, value=presets[0][1], allow_blank=False, compact=True, id="preset")
            for name, (label, empty) in FIELDS.items():
                yield Static(label, classes="field-label")
                yield Input(placeholder=empty, compact=True, id=f"new-{name}")
            yield from self.ending()
        yield self.keys()

    def on_mount(self) -> None:
        """Begin with the subset."""
        self.query_one("#subset", Select).focus()

    def _asked(self) -> tuple[str, TrainConfig]:
        """The subset, and the preset with what is to differ. Raises UserError where that does not fit."""
        from train.config import load

        subset = self.chosen("subset")
        if not subset:
            raise UserError("There is no subset yet: make one with awm-studio subset, or on the Subsets screen.")
        try:
            overrides = shlex.split(self.typed("set"))
        except ValueError as error:
            raise UserError(f"The fields that are to differ cannot be read: {error}.") from None
        if model := self.typed("model"):
            overrides.append(f"model.name={model}")
        if steps := self.typed("steps"):
            overrides.append(f"grpo.steps={steps}")
        return subset, load(self.chosen("preset"), overrides)

    def taken(self) -> str:
        """Instances, rollouts, tokens, memory, disk."""
        from train import preflight

        subset, config = self._asked()
        workspace = self.studio.workspace
        return told(preflight.check(workspace, config, subset)) if workspace else ""

    def answer(self) -> int:
        """The number of the training that was started."""
        from train import training_run

        subset, config = self._asked()
        workspace = self.studio.workspace
        if workspace is None:
            raise UserError("The workspace is still being opened.")
        run = training_run.create(workspace, config, subset, preset=self.chosen("preset"))
        training_run.start(workspace, run, detached=True)
        return run.id


def told(ready: Ready) -> str:
    """What a training will take, in lines."""
    taken = ready.estimate
    passes = "" if taken.passes is None else f", each of {len(ready.train)} tasks in about {taken.passes:.1f} groups"
    lines = [
        f"{taken.instances:,} instances at once, {taken.rollouts:,} rollouts in all{passes}; "
        f"{number_of(len(ready.test), 'held-out task')}.",
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
