"""The studio on a real (pseudo) terminal: it is restored after every kind of end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

LIMIT_S = 40

RESTORED = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?2004l", b"\x1b[<u")
"""Main screen, cursor, no mouse (twice), no bracketed paste, plain keyboard."""

CRASHING = """
import sys
from studio import app

def fall_over(self):
    raise RuntimeError("a fault made for a test")

app.Studio.action_theme = fall_over
sys.exit(app.open_studio(sys.argv[1]))
"""


TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal the controlling one of its session, as a login does, so that losing it is a SIGHUP."""


class Terminal:
    """A studio on a pseudo terminal, and everything it has written to it."""

    def __init__(self, command: list[str], *, columns: int = 100, rows: int = 30, env: dict[str, str]) -> None:
        self.master, self._slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self._slave)
        self.output = b""
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE_TERMINAL, *command],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            env={**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor", **env},
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def read_until(self, happens: Callable[[], object]) -> None:
        """Take in output until something has happened."""
        end = time.monotonic() + LIMIT_S
        while not happens():
            assert time.monotonic() < end, f"nothing of the kind within {LIMIT_S} s; the end was {self.output[-600:]!r}"
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.output += os.read(self.master, 65_536)
                except OSError:  # the other end has been closed
                    break

    def shows(self, text: str) -> bool:
        """Whether a text has been written, whatever colours are between its letters."""
        return text in re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]", "", self.output.decode(errors="replace"))

    def wait(self) -> int:
        self.read_until(lambda: self.process.poll() is not None)
        code = self.process.wait(LIMIT_S)
        while select.select([self.master], [], [], 0)[0]:
            self.output += os.read(self.master, 65_536)
        return code

    def is_restored(self) -> bool:
        return termios.tcgetattr(self._slave) == self.before and all(code in self.output for code in RESTORED)

    def hang_up(self) -> None:
        """Take the terminal away, as a closed window or a lost connection does."""
        os.close(self._slave)
        os.close(self.master)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for end in (self.master, self._slave):
            with suppress(OSError):
                os.close(end)


@pytest.fixture
def terminal(small_world: Path, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Opens the studio on a terminal once its first screen is there."""
    opened = []

    def open_terminal(*command: str, shows: str = "Airline", **env: str) -> Terminal:
        started = Terminal(
            [
                sys.executable,
                *(command or ("-m", "studio.cli")),
                *([] if command else ["--workspace", str(small_world)]),
            ],
            env={"AWM_CONFIG": str(tmp_path / "config.toml"), **env},
        )
        opened.append(started)
        started.read_until(lambda: started.shows(shows))
        return started

    yield open_terminal
    for started in opened:
        started.close()


def test_after_quitting_the_terminal_is_as_it_was(terminal) -> None:
    studio = terminal()
    studio.type(b"\x11")
    assert studio.wait() == 0
    assert studio.is_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_the_terminal_is_as_it_was(terminal, number: signal.Signals) -> None:
    studio = terminal()
    studio.process.send_signal(number)
    assert studio.wait() == 128 + number
    assert studio.is_restored()


def test_a_crash_restores_the_terminal_and_names_its_log(terminal, small_world: Path) -> None:
    studio = terminal("-c", CRASHING, str(small_world))
    studio.type(b"\x1b[21~")
    assert studio.wait() == 1
    assert studio.is_restored()
    log = re.search(r"its log: (\S+)", studio.output.decode(errors="replace"))
    assert log is not None
    assert Path(log[1]).is_relative_to(small_world / "logs")
    assert "a fault made for a test" in Path(log[1]).read_text()
    assert "Traceback" not in studio.output.decode(errors="replace"), "pages of source are for the log"


def test_when_the_terminal_goes_away_so_does_the_studio(terminal) -> None:
    studio = terminal()
    studio.hang_up()
    assert studio.process.wait(LIMIT_S) == 128 + signal.SIGHUP


def test_it_survives_any_size_at_any_time(terminal) -> None:
    studio = terminal()
    for columns, rows in ((40, 10), (12, 3), (200, 50), (80, 24)):
        seen = len(studio.output)
        studio.resize(columns, rows)
        last_line = b"\x1b[%d;1H" % rows
        studio.read_until(lambda seen=seen, last_line=last_line: last_line in studio.output[seen:])
    studio.type(b"\x11")
    assert studio.wait() == 0
    assert studio.is_restored()


def test_it_follows_a_light_terminal(small_world: Path, tmp_path: Path) -> None:
    studio = Terminal(
        [sys.executable, "-m", "studio.cli", "--workspace", str(small_world)],
        env={"AWM_CONFIG": str(tmp_path / "config.toml")},
    )
    try:
        studio.read_until(lambda: b"\x1b]11;?" in studio.output)
        studio.type(b"\x1b]11;rgb:fefe/fefe/fefe\x1b\\\x1b[?64;1c")
        studio.read_until(lambda: studio.shows("Environments"))
        assert b"48;2;251;251;249" in studio.output, "the background of the light theme"
        studio.type(b"\x11")
        assert studio.wait() == 0
    finally:
        studio.close()


def test_settings_that_cannot_be_used_are_told_before_anything_is_drawn(terminal, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("themes = 'dark'")
    studio = terminal(shows="there is no setting")
    assert studio.wait() == 2
    assert b"\x1b[?1049h" not in studio.output
