"""Where the studio meets what runs elsewhere: one thread opens the workspace, then tails its catalog.

Nothing is computed here. Other processes write environments, runs and events into the catalog; the bridge tells the
app about them, at most every INTERVAL_S however many there are. While nothing writes it only looks at a file's time.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.catalog import Event, Run
    from pipeline.workspace import Workspace

log = logging.getLogger("studio")

CATALOG = "catalog.db"
INTERVAL_S = 0.1
"""Ten updates a second are as many as an eye follows."""
BATCH = 1_000
"""The most events handed over at once; the rest come with the next update."""
RETRY_S = 1.0
"""How long to wait before a workspace that could not be read is tried again."""

ELSEWHERE_S = 1.0
"""How often a catalog that is not a file of the workspace is asked for news."""
GONE = (
    "The catalog of {} is gone: it was deleted or replaced while the studio was open. Put it back, or leave with ^q; "
    "what is on the screen can still be read and copied."
)

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
        self._opened: Path | None = None
        self._is_file = True
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
                text = str(error)
            except Exception as error:  # nothing in a catalog may end the studio: it says so and tries again
                log.exception("the catalog cannot be read")
                text = f"The catalog cannot be read: {error}."
            else:
                return
            if text != said and not (self._opened and said):
                self._post(Unusable(text))
            said = text
            self._stop.wait(RETRY_S)

    def _watch(self) -> None:
        """Open the workspace and report news until told to stop. Raises UserError where it cannot be read."""
        from pipeline.workspace import Workspace

        if self._opened is not None and self._is_file and not _is_catalog(self._opened / CATALOG):
            raise UserError(GONE.format(self._opened))
        with Workspace.open(self._path, create=self._opened is None) as workspace:
            self._opened = workspace.path
            here = self._is_file = workspace.settings.database_url is None
            catalog = workspace.catalog
            stamp = _stamp(workspace.path) if here else ()
            last = max((event.id for event in catalog.last_events()), default=0)
            self._post(Opened(workspace))
            self._post(News((), catalog.runs()))
            while not self._stop.wait(INTERVAL_S if here else ELSEWHERE_S):
                now = _stamp(workspace.path) if here else ()
                if here and now == stamp:
                    continue
                if here and _is_gone(stamp, now):
                    raise UserError(GONE.format(workspace.path))
                events = catalog.events(last, BATCH)
                last = events[-1].id if events else last
                stamp = now if len(events) < BATCH else ()
                self._post(News(events, catalog.runs()))


def _is_gone(before: Stamp, now: Stamp) -> bool:
    """Whether the catalog is no longer the file it was."""
    old, new = next(iter(before), None), now[0]
    return new is None or (old is not None and old[0] != new[0])


def _is_catalog(path: Path) -> bool:
    """Whether there is a catalog in this file, as against nothing, or an empty database that a late reader made."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'scenarios'").fetchall())
    except sqlite3.Error:
        return False


def _stamp(workspace: Path) -> Stamp:
    return tuple(map(_file_stamp, (workspace / CATALOG, workspace / f"{CATALOG}-wal")))


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
