"""The studio: the Textual app that holds the screens, the themes, the open workspace and the sandbox."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from textual import on, work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.reactive import reactive
from textual.screen import Screen
from textual.signal import Signal
from textual.widget import Widget
from textual.worker import Worker, active_worker

from pipeline import settings as settings_file
from pipeline.errors import UserError
from pipeline.settings import Settings
from studio import launch, logs, themes
from studio.actions import available, bindings, keymap_path, read_keymap
from studio.bridge import Bridge, News, Opened, Unusable
from studio.screens import FIRST, MODES
from studio.screens.frame import Framed
from studio.widgets.masthead import Masthead

if TYPE_CHECKING:
    from textual.binding import Binding

    from pipeline.records import Run
    from pipeline.workspace import Workspace
    from studio.live import Live

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("studio")

LEAVING_S = 3.0
"""How long leaving on a signal may take: cutting off calls, closing the catalog, restoring the terminal."""
FINISHED = {"done": "✓ finished", "failed": "✗ failed", "stopped": "stopped", "interrupted": "was interrupted"}
"""Run states worth a notification when a run reaches them, and how it is said."""


class Studio(App[None]):
    """The terminal studio. It watches a workspace; long work runs in processes of its own."""

    TITLE = "awm-studio"
    CSS_PATH = "styles.tcss"
    MODES = {mode.name: mode.open for mode in MODES}
    BINDINGS: ClassVar[list[BindingType]] = bindings("app")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide"), (160, "-roomy")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]

    note: reactive[str] = reactive("opening the workspace …")

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        settings: Settings | None = None,
        is_light: bool | None = None,
        keymap: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare the studio for the workspace at `path` (None: the usual place); it is opened once the app runs."""
        super().__init__()
        self.settings = settings or Settings()
        self.is_light = is_light
        self.workspace: Workspace | None = None
        self.live: Live | None = None
        self.runs: list[Run] = []
        self.opened: Signal[Workspace] = Signal(self, "opened")
        self.news: Signal[News] = Signal(self, "news")
        self.crash_log: Path | None = None
        self._first_news = True
        self._bridge = Bridge(path, self.post_message)
        for theme in themes.THEMES:
            self.register_theme(theme)
        self.wear(self.settings.theme)
        self.set_keymap(keymap or {})

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours that themes other than ours lack."""
        return themes.VARIABLES

    def wear(self, choice: str) -> None:
        """Put on a theme of `themes.CHOICES`."""
        self.theme = themes.resolve(choice, is_light=self.is_light, colours=self.console.color_system)

    # Life

    async def on_mount(self) -> None:
        """Show the first screen, then let the bridge open the workspace."""
        await self.switch_mode(FIRST)
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self._leave_on, number)
        self.call_after_refresh(self._bridge.start)

    def _leave_on(self, number: int) -> None:
        logs.leave_within(seconds=LEAVING_S, code=128 + number)
        self.exit(return_code=128 + number)

    def on_unmount(self) -> None:
        """Stop what belongs to this studio; runs go on."""
        self._bridge.stop()
        if self.live is not None:
            self.live.close()

    def _handle_exception(self, error: Exception) -> None:
        """Keep what went wrong in the log before Textual ends the app."""
        self.crash_log = logs.keep_crash(error)
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        """A crash is told in two lines, not in pages of source: the pages are in the log."""
        if self.crash_log is None or self.is_headless:
            super()._print_error_renderables()

    async def ask(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Call something slow (catalog, sandbox, disk) in a thread. Problems are shown, and answered with None.

        Where the asking worker's screen has gone meanwhile, nothing comes back: the worker is cancelled.
        """
        try:
            answer = await asyncio.to_thread(function, *args, **kwargs)
            _still_here(active_worker.get(None))
            return answer
        except UserError as error:
            text = str(error)
        except OSError as error:  # a folder that is gone or may not be read, a full disk
            text = f"{error.filename or 'A file'} cannot be used: {error.strerror or error}."
        except Exception as error:
            from sqlalchemy.exc import SQLAlchemyError

            if not isinstance(error, SQLAlchemyError):
                _still_here(active_worker.get(None))  # a screen that is gone has nothing to be looked at
                raise
            text = f"The catalog cannot be read: {error}."
        log.warning("%s", text)
        self.notify(text, severity="error", timeout=12, markup=False)
        return None

    # The workspace

    @on(Opened)
    def _opened(self, event: Opened) -> None:
        from studio.live import Live

        if self.live is not None:
            self.live.close()
        self.workspace = event.workspace
        self.live = Live(event.workspace)
        logs.write_to(event.workspace.logs)
        self._say_note()
        self.opened.publish(event.workspace)

    @on(Unusable)
    def _unusable(self, event: Unusable) -> None:
        from studio.screens.problem import ProblemScreen

        log.warning("%s", event.text)
        if self.live is None:
            self.note = "no workspace"
            if isinstance(self.screen, ProblemScreen):
                self.screen.say(event.text)
            else:
                self.push_screen(ProblemScreen(event.text))
            return
        self.workspace = None
        self.note = "✗ the catalog cannot be read"
        self.notify(event.text, severity="error", timeout=30, markup=False)

    @on(News)
    def _hear(self, event: News) -> None:
        before = {run.id: run.state for run in self.runs}
        if self._first_news:
            self._first_news = False
            self._offer_to_resume(event.runs)
        self.runs = list(event.runs)
        for run in self.runs:
            if before.get(run.id, run.state) != run.state:
                self._tell(run)
        self._say_note()
        self.news.publish(event)

    def _offer_to_resume(self, runs: Sequence[Run]) -> None:
        orphans = [run for run in runs if launch.is_orphaned(run)]
        if orphans:
            names = ", ".join(f"{run.id} ({run.kind})" for run in orphans)
            self.notify(f"Interrupted: run {names}. Activity (7) goes on with it.", severity="warning", markup=False)

    def _tell(self, run: Run) -> None:
        if run.state in FINISHED:
            severity = "information" if run.state == "done" else "warning"
            self.notify(f"Run {run.id} ({run.kind}) {FINISHED[run.state]}.", severity=severity, markup=False)
        elif run.state == "waiting":
            self.notify(f"Run {run.id} ({run.kind}) waits for you.", title="?", severity="warning", markup=False)
            self.bell()

    def _say_note(self) -> None:
        if self.workspace is None:
            return
        states = [run.state for run in self.runs if not launch.is_orphaned(run)]
        parts = [f"▶{states.count('running')}"] if "running" in states else []
        parts += [f"?{states.count('waiting')}"] if "waiting" in states else []
        self.note = "  ".join([*parts, self.workspace.path.name])

    # Actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A digit is no mode's key on a screen where one may be typing."""
        return action != "switch_mode" or not (isinstance(self.screen, Framed) and self.screen.TYPED_IN)

    @on(Masthead.Chosen)
    async def _choose_mode(self, event: Masthead.Chosen) -> None:
        await self.switch_mode(event.mode)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action that is possible on the screen, for the command palette."""
        for action, key, enabled in available(screen):
            if action.palette and enabled:
                yield SystemCommand(f"{action.label}  ({key})", action.help, _runner(self, screen, action.id))

    @work(group="runs")
    async def start_run(self, *arguments: str) -> None:
        """Start a long `awm-studio` command; the catalog tells how it goes on, this tells if it fails."""
        if self.workspace is None:
            return
        logs = self.workspace.logs
        process = await self.ask(launch.detach, self.workspace.path, logs, *arguments)
        while process is not None and process.poll() is None:
            await asyncio.sleep(0.5)
        if process is not None and process.returncode not in (0, 130):
            text = f"{launch.last_words(logs, arguments[0])} (all of it: {logs / arguments[0]}.log)"
            self.notify(text, title=f"✗ {arguments[0]} failed", severity="error", timeout=20, markup=False)

    @work(group="import")
    async def import_folder(self, workspace: Path, folder: str) -> None:
        """Import a folder of environments in a process of its own and tell how it went, whatever screen is open."""
        try:
            report = json.loads(await launch.finish(workspace, "import", folder, "--json"))
        except UserError as error:
            self.notify(str(error), title="✗ Not imported", severity="error", timeout=20, markup=False)
            return
        self.notify(f"Imported {report['environments']} environments with {report['tasks']} tasks.")

    def show_page(self, url: str | None) -> None:
        """Open a page of this machine in the browser, or say how to get to it where there is none."""
        from studio.browser import has_browser
        from studio.screens.page import PageScreen

        if url is None:
            return
        if has_browser():
            self.open_url(url)
            self.notify(f"Opened {url}", markup=False)
        else:
            self.push_screen(PageScreen(url))

    def action_help(self) -> None:
        """Show what the screen is for and its keys."""
        from studio.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_copy(self) -> None:
        """Copy from the widget that has the keyboard, or the nearest one around it that knows what to copy."""
        text = self.screen.get_selected_text() or _copyable(self.focused)
        if not text:
            self.notify("Nothing to copy here.", severity="warning")
            return
        self.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        self.notify(f"Copied {lines} lines." if lines > 1 else f"Copied: {text[:60]}", markup=False, timeout=2)

    def action_theme(self) -> None:
        """The next theme, for this session; the settings keep one."""
        names = [theme.name for theme in themes.THEMES]
        now = names.index(self.theme) if self.theme in names else -1
        self.wear(names[(now + 1) % len(names)])
        self.notify(f"Theme: {self.theme}", timeout=2)

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: DOMNode) -> None:
        """Say which actions the keymap file has given the same key."""
        names = ", ".join(sorted({binding.id or binding.action for binding in clashed_bindings}))
        self.notify(f"The keymap gives one key to several actions: {names} lost theirs.", severity="warning")


def open_studio(path: str | Path | None) -> int:
    """Run the studio on this terminal until it is left; the answer is the exit code.

    Raises UserError where the settings or the keymap cannot be used.
    """
    settings = settings_file.load()
    keymap = read_keymap(keymap_path())
    is_light = themes.background_is_light() if settings.theme in ("auto", "terminal") else None
    studio = Studio(path, settings=settings, is_light=is_light, keymap=keymap)
    studio.run()
    if studio.crash_log is not None:
        print(f"awm-studio crashed. What happened is in its log: {studio.crash_log}", file=sys.stderr)
    return studio.return_code or 0


def _still_here(worker: Worker[Any] | None) -> None:
    """Raises CancelledError where the worker's node is being taken away; Textual would say so a moment later."""
    node = worker.node if worker is not None else None
    if node is not None and (not node.is_attached or node._pruning or node._closing):
        raise asyncio.CancelledError


def _runner(app: Studio, screen: Screen[object], action_id: str) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        for active in screen.active_bindings.values():
            if active.binding.id == action_id:
                await app.run_action(active.binding.action, active.node)
                return

    return run


def _copyable(widget: Widget | None) -> str:
    for node in widget.ancestors_with_self if widget is not None else ():
        copy = getattr(node, "copy_text", None)
        if copy is not None and (text := copy()):
            return text
    return ""
