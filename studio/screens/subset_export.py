"""Where a subset is to be written, and in which format."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Select, Static

from pipeline.errors import UserError
from pipeline.places import named_place
from studio.actions import bindings
from studio.subset_reading import FORMATS


class ExportScreen(ModalScreen[tuple[str, ...] | None]):
    """Answers with the arguments for `awm-studio export`, or None."""

    BINDINGS = bindings("form")

    def __init__(self, subset: str) -> None:
        super().__init__()
        self._subset = subset

    def compose(self) -> ComposeResult:
        """Format and folder."""
        with Vertical(classes="dialog form"):
            yield Static(f"Export {self._subset}", classes="title", markup=False)
            yield Static("As", classes="field-label")
            yield Select([(said, name) for name, said in FORMATS.items()], value="hf", allow_blank=False, compact=True)
            yield Static("To a new folder", classes="field-label")
            yield Input(f"{self._subset}-hf", compact=True)
            yield Static("", id="form-problem", classes="field-problem", markup=False)
            yield Static("It appears whole or not at all, and holds no secrets and no paths.", classes="hint")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin with the folder."""
        self.query_one(Input).focus()

    @on(Select.Changed)
    def _suggest(self, event: Select.Changed) -> None:
        """A folder that was only suggested follows the format."""
        folder = self.query_one(Input)
        if folder.value in {f"{self._subset}-{name}" for name in FORMATS}:
            folder.value = f"{self._subset}-{event.value}"

    @on(Input.Submitted)
    def action_start(self) -> None:
        """Start it, or say what is wrong."""
        problem = self.query_one("#form-problem", Static)
        try:
            folder = _new_folder(self.query_one(Input).value)
        except UserError as error:
            problem.update(f"✗ {error}")
            problem.display = True
            return
        self.dismiss((str(folder), "--format", str(self.query_one(Select).value), "--subset", self._subset))

    def action_close(self) -> None:
        """Export nothing."""
        self.dismiss(None)


def _new_folder(typed: str) -> Path:
    """The folder that was typed. Raises UserError where nothing was, or it holds something already."""
    if not typed.strip():
        raise UserError("Name a folder that does not exist yet.")
    folder = named_place(typed.strip())
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} exists and is not an empty folder: name one that does not exist yet.")
    except OSError as error:
        raise UserError(f"{folder} cannot be looked at: {error.strerror}.") from None
    return folder
