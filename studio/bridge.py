"""Where the studio meets what runs elsewhere: one thread opens the workspace, then tails its catalog.

Nothing is computed here. Other processes write environments, runs and events into the catalog; the bridge tells the
app about them, at most every INTERVAL_S however many there are. While nothing writes it only looks at a file's time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.catalog import Event, Run
    from pipeline.workspace import Workspace

INTERVAL_S = 0.1
"""Ten updates a second are as many as an eye follows."""
BATCH = 1_000
"""The most events handed over at once; the rest come with the next update."""
RETRY_S = 1.0
"""How long to wait before a workspace that could not be read is tried again."""

Stamp = tuple[tuple[int, int, int] | None, ...]
"""Identity, time and size of the catalog's files; it changes with every commit."""


class Opened(Message):
    """The workspace is open (for the first time, or again after it could not be read)."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self.workspace = workspace


class Unusable(Message):
    """The workspace cannot be opened or read any more. `text` says what to do; the bridge goes on trying."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class News(Message):
    """Something was written to the catalog: these events are new, and this is how the runs stand."""

    def __init__(self, events: Sequence[Event], runs: Sequence[Run]) -> None:
        super().__init__()
        self.events = events
        self.runs = runs


class Bridge:
    """Watches one workspace. `post` is called from the bridge's own thread."""

    def __init__(self, path: str | Path | None, post: Callable[[Message], object]) -> None:
        self._path = path
        self._post = post
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="studio-bridge", daemon=True)

    def start(self) -> None:
        """Open the workspace and begin to watch it."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and close the workspace."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)

    def _run(self) -> None:
        said = ""
        while not self._stop.is_set():
            try:
                self._watch()
            except UserError as error:
                if str(error) != said:
                    said = str(error)
                    self._post(Unusable(said))
                self._stop.wait(RETRY_S)

    def _watch(self) -> None:
        """Open the workspace and report news until told to stop. Raises UserError where it cannot be read."""
        from pipeline.workspace import Workspace

        with Workspace.open(self._path, create=True) as workspace:
            catalog = workspace.catalog
            stamp = _stamp(workspace.path)
            last = max((event.id for event in catalog.last_events()), default=0)
            self._post(Opened(workspace))
            self._post(News((), catalog.runs()))
            while not self._stop.wait(INTERVAL_S):
                now = _stamp(workspace.path)
                if now == stamp:
                    continue
                if now[0] is None or (stamp[0] and now[0][0] != stamp[0][0]):
                    raise UserError(
                        f"The catalog of {workspace.path} is gone: it was deleted or replaced meanwhile. "
                        "Put it back, or leave with ^q; what was on screen is still there to read and copy."
                    )
                stamp = now
                events = catalog.events(last, BATCH)
                last = events[-1].id if events else last
                if len(events) == BATCH:
                    stamp = ()
                self._post(News(events, catalog.runs()))


def _stamp(workspace: Path) -> Stamp:
    return tuple(map(_file_stamp, (workspace / "catalog.db", workspace / "catalog.db-wal")))


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
