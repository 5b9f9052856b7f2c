"""What an empty workspace shows: three ways in, one key each."""

from __future__ import annotations

from collections.abc import Iterable

from textual import work
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from studio.actions import bindings
from studio.bridge import News
from studio.screens.ask import AskScreen
from studio.screens.frame import Framed

COUNT = 24
"""Environments made offline in one go: enough to filter and compare, made in well under a minute."""

WAYS = (
    ("m", f"Make {COUNT} environments now, offline", "From the built-in domains; no model, no network, no key."),
    ("i", "Import a folder", "In the AWM release layout: gen_scenario.jsonl, gen_tasks.jsonl and so on."),
    ("s", "Set up a model", "Name an OpenAI-compatible endpoint that will write new environments."),
)


class FirstStepsScreen(Framed):
    """Make environments offline, import a folder, or set up a model."""

    MODE = "environments"
    ABOUT = "This workspace has no environments yet. Each of the three ways in is one key."
    BINDINGS = bindings("first")

    def body(self) -> Iterable[Widget]:
        """The three ways."""
        with VerticalScroll(id="first"):
            yield Static("This workspace is empty. Three ways in:", classes="title")
            for key, title, text in WAYS:
                yield Static(f"[b $text-accent]{key}[/]  [b]{title}[/]\n   {text}", classes="way")
            yield Static("", id="first-progress", markup=False)

    def on_mount(self) -> None:
        """Go away once there is something to look at."""
        super().on_mount()
        self.studio.news.subscribe(self, self._heard)

    def on_screen_resume(self) -> None:
        """Look again: environments may have come while another screen was in front."""
        self._leave_if_filled()

    def _heard(self, _news: News) -> None:
        self._leave_if_filled()

    @work(exclusive=True)
    async def _leave_if_filled(self) -> None:
        assert self.studio.workspace is not None
        filled = await self.studio.ask(self.studio.workspace.catalog.names)
        if filled and self.is_active:  # dismissing takes away whatever screen is in front
            self.dismiss()

    def action_make(self) -> None:
        """Make environments offline."""
        self.studio.start_run("synth", "--offline", "--count", str(COUNT))
        self._say(f"Making {COUNT} environments; they appear as they are finished. Activity (7) shows progress.")

    def action_import(self) -> None:
        """Ask for a folder and import it."""
        question = AskScreen("Import environments from which folder?", "A folder in the AWM release layout.")
        self.studio.push_screen(question, self._import)

    def _import(self, folder: str | None) -> None:
        workspace = self.studio.workspace
        if folder is not None and workspace is not None:
            self._say(f"Importing {folder} …")
            self.studio.import_folder(workspace.path, folder)

    async def action_model(self) -> None:
        """Go to the settings of the model."""
        await self.studio.switch_mode("settings")

    def _say(self, text: str) -> None:
        self.query_one("#first-progress", Static).update(text)
