"""Browsing databases with Datasette: a child process that reads snapshots and ends with this one.

The child knows nothing about the workspace. It asks this process, over a socket that only the two share, what to
show; the answers come from a `Source`, so databases are built one at a time, when somebody opens them.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pipeline.errors import UserError
from pipeline.loopback import HOST, listen, port_of

START_SECONDS = 60
"""How long the child may take until it serves; importing Datasette takes about 1.3 s of CPU."""


@dataclass(frozen=True, slots=True)
class TableText:
    """What is said about a table: a sentence, and one about each column that has a description."""

    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """One database as it is shown. With `initial`, each changed table gets a query that shows what changed."""

    path: Path
    title: str = ""
    description: str = ""
    tables: Mapping[str, TableText] = field(default_factory=dict)
    initial: Path | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the index. What is not known is None and left blank."""

    name: str
    title: str = ""
    domain: str | None = None
    tables: int | None = None
    rows: int | None = None
    tools: int | None = None
    tasks: int | None = None
    check: str | None = None


class Source(Protocol):
    """Where pages come from. Both methods are called from other threads and may raise UserError."""

    def page(self, name: str) -> Page:
        """What to show at /NAME; UserError where there is no such thing."""
        ...

    def entries(self, words: str) -> list[Entry]:
        """The lines of the index that hold all of these words."""
        ...


class DatasetteServer:
    """A running Datasette on 127.0.0.1, as a context manager.

    `port` 0 takes a free one. `downloads` lets people download whole database files. The child's own messages go
    to the file `log`, or nowhere.
    """

    def __init__(self, source: Source, *, port: int = 0, downloads: bool = False, log: Path | None = None) -> None:
        self._source, self._port, self._downloads, self._log = source, port, downloads, log
        self._attached: dict[str, Page] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._answering = ThreadPoolExecutor(max_workers=4, thread_name_prefix="datasette")
        self._sending = threading.Lock()
        self._ready = threading.Event()
        self._serves = False

    def __enter__(self) -> DatasetteServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> str:
        """Start the child and return the index's URL once it serves.

        Raises UserError where the port is taken or the child does not start.
        """
        listener = listen(self._port)
        self._port = port_of(listener)
        self._control, theirs = socket.socketpair()
        with listener, theirs:
            self._child = self._start_child(theirs.fileno(), listener.fileno())
        threading.Thread(target=self._listen, args=(self._control,), name="datasette", daemon=True).start()
        self._ready.wait(START_SECONDS)
        if not self._serves:
            self.stop()
            raise UserError(f"Datasette did not start: {self._last_words()}")
        return self.url()

    def _start_child(self, control: int, listener: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "studio.datasette_child", str(control), str(listener)]
        command.append("downloads" if self._downloads else "pages")
        with self._open_log() as log:
            # A session of its own: Ctrl-C is for the parent, whose end ends the child.
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(control, listener),
                start_new_session=True,
            )

    def _open_log(self) -> Any:
        if self._log is None:
            return Path(os.devnull).open("wb")
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            return self._log.open("ab")
        except OSError as error:
            raise UserError(f"{self._log} cannot be written: {error.strerror}.") from None

    def _last_words(self) -> str:
        if self._log is None or not self._log.exists():
            return "it gave no reason."
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"{lines[-1] if lines else 'it gave no reason.'} (all of it: {self._log})"

    def url(self, name: str | None = None) -> str:
        """The URL of the index, or of one database."""
        return f"http://{HOST}:{self._port}/{name or ''}"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    def attach(self, name: str, page: Page) -> str:
        """Show a database that is not in the source, such as one of a call history, and return its URL.

        Attaching another page under the same name replaces it. The name must be letters, digits, `_` and `-`.
        """
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
            raise ValueError(f"not a name for a database: {name!r}")
        self._attached[name] = page
        return self.url(name)

    def wait(self) -> None:
        """Return when the child has ended, which it does not do by itself unless something is wrong."""
        assert self._child is not None
        self._child.wait()
        raise UserError(f"Datasette has ended: {self._last_words()}")

    def stop(self) -> None:
        """End the child; does nothing if it has ended."""
        if self._control is not None:
            with suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
        if self._child is not None:
            try:
                self._child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        self._answering.shutdown(wait=False, cancel_futures=True)

    def _listen(self, control: socket.socket) -> None:
        with control, control.makefile("rb") as lines:
            for line in lines:
                question = json.loads(line)
                if "ready" in question:
                    self._serves = True
                    self._ready.set()
                else:
                    with suppress(RuntimeError):  # stopping: the executor takes no more
                        self._answering.submit(self._reply, control, question)
        self._ready.set()

    def _reply(self, control: socket.socket, question: dict[str, Any]) -> None:
        try:
            answer = self._answer(question)
        except UserError as error:
            answer = {"refused": str(error)}
        except Exception as error:  # the browser gets the reason, the child must get an answer
            answer = {"refused": f"{type(error).__name__}: {error}"}
        line = json.dumps({"number": question["number"], **answer}).encode() + b"\n"
        with self._sending, suppress(OSError):  # the child may have gone
            control.sendall(line)

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        if question["ask"] == "page":
            name = question["name"]
            return _sent(self._attached.get(name) or self._source.page(name))
        start, words = question["start"], question["words"]
        entries = self._source.entries(words)
        attached = [Entry(name, page.title) for name, page in self._attached.items()]
        return {
            "total": len(entries),
            "entries": [asdict(entry) for entry in entries[start : start + question["count"]]],
            "attached": [asdict(entry) for entry in attached if holds(f"{entry.name} {entry.title}", words)],
        }


def holds(text: str, words: str) -> bool:
    """Whether a text holds every one of the words, whatever their case."""
    return all(word in text.lower() for word in words.lower().split())


def _sent(page: Page) -> dict[str, Any]:
    files = [page.path] if page.initial is None else [page.path, page.initial]
    return {
        "path": str(page.path.absolute()),
        "initial": page.initial and str(page.initial.absolute()),
        # Files are replaced, never changed in place, so this tells one content from another.
        "version": [[(facts := file.stat()).st_ino, facts.st_mtime_ns, facts.st_size] for file in files],
        "title": page.title,
        "description": page.description,
        "tables": {table: asdict(text) for table, text in page.tables.items()},
    }
