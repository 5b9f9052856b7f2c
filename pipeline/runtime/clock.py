"""The pinned clock: what time it is for an instance, in Python and in SQL.

An instance's now is its environment's time plus one second per call (its *tick*), so that the same calls give the
same bytes, and rows made by later calls still sort after rows made by earlier ones. Within one call time stands
still. Random numbers are part of it: they are a function of (now, tick) too.

The clock itself is here, with the SQL functions that follow it; `substitutes` has the Python modules that do.
"""

from __future__ import annotations

import functools
import random
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

STEP = timedelta(seconds=1)
"""How far one call moves the clock. SQLite's CURRENT_TIMESTAMP has a resolution of one second, and a smaller step
would leave rows of consecutive calls tied under ORDER BY created_at."""


class Clock:
    """The time and the randomness of the call that is running.

    `start` is the instance's time at tick 0; None gives the machine's own clock and real randomness (a live clock:
    nothing is reproducible). Times are naive UTC, as a server in UTC would see them.
    """

    def __init__(self, start: datetime | None) -> None:
        self.start = None if start is None else start.astimezone(UTC).replace(tzinfo=None)
        self.calls = 0
        self.random = CallRandom(self)
        self.at(0)

    @property
    def live(self) -> bool:
        """Whether this is the machine's own clock."""
        return self.start is None

    def at(self, tick: int) -> None:
        """Set the time to that of a call with the given tick, and start its random numbers afresh."""
        self.calls += 1
        self.random.gauss_next = None  # the half of a pair that gauss() keeps would outlive the call
        self._tick = tick
        if self.start is not None:
            self._now = self.start + tick * STEP

    @property
    def now(self) -> datetime:
        """The current time, naive UTC."""
        return self._now if self.start is not None else datetime.now(UTC).replace(tzinfo=None)

    @property
    def sql(self) -> str:
        """The current time as SQLite writes it, with milliseconds."""
        return self.now.isoformat(" ", "milliseconds")

    @property
    def timestamp(self) -> float:
        """The current time in seconds since 1970."""
        return self.now.replace(tzinfo=UTC).timestamp()

    @property
    def seed(self) -> str:
        """What this call's random numbers are made from."""
        return f"{self._now.isoformat()}+{self._tick}"


class CallRandom(random.Random):
    """Random numbers that start afresh with every call, from the clock's seed. Real ones where the clock is live.

    Seeding costs more than most calls need, so it happens when the first number of a call is drawn.
    """

    gauss_next: float | None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._call = -1
        super().__init__(0)

    def _settle(self) -> None:
        if self._call != self._clock.calls:
            self.seed(None if self._clock.live else self._clock.seed)

    def seed(self, a: int | float | str | bytes | bytearray | None = None, version: int = 2) -> None:
        """As `random.seed`; what it does lasts until the end of the call."""
        self._call = self._clock.calls
        super().seed(a, version)

    def random(self) -> float:
        """As `random.random`."""
        self._settle()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """As `random.getrandbits`."""
        self._settle()
        return super().getrandbits(k)


_TIME_FUNCTIONS = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1, "timediff": 0}
"""SQLite's date functions, and where their first time value is among the arguments (lang_datefunc.html)."""


def pin_sql_time(connection: sqlite3.Connection, clock: Clock) -> None:
    """Make every SQL function that reads the time follow the clock: date(), strftime(), CURRENT_TIMESTAMP, …

    So do random() and randomblob().

    Arguments that mean *now* are replaced and SQLite's own function does the rest, on another connection, so all
    formats and modifiers work. They are registered as deterministic because SQLite allows nothing else in CHECKs,
    indexes and generated columns, where it accepts its own date functions.
    """
    if clock.live:
        return
    for name, position in _TIME_FUNCTIONS.items():
        if _sqlite_has(name):
            connection.create_function(name, -1, _pinned(name, position, clock), deterministic=True)
    for name, length in {"current_timestamp": 19, "current_date": 10}.items():
        connection.create_function(name, 0, _prefix_of_now(clock, 0, length), deterministic=True)
    connection.create_function("current_time", 0, _prefix_of_now(clock, 11, 19), deterministic=True)
    connection.create_function("random", 0, lambda: clock.random.getrandbits(64) - (1 << 63))
    connection.create_function("randomblob", 1, lambda size: clock.random.randbytes(max(1, int(size or 0))))


def _prefix_of_now(clock: Clock, start: int, stop: int) -> Callable[[], str]:
    return lambda: clock.sql[start:stop]


def _pinned(name: str, position: int, clock: Clock) -> Callable[..., Any]:
    def call(*arguments: object) -> Any:
        if len(arguments) <= position:
            return _evaluate(name, (*arguments, clock.sql))
        if any(isinstance(value, str) and value.lower() in ("now", "subsec", "subsecond") for value in arguments):
            arguments = _with_now(arguments, position, clock.sql, second=name == "timediff")
        return _evaluate(name, arguments)

    return call


def _with_now(arguments: tuple[object, ...], position: int, now: str, *, second: bool) -> tuple[object, ...]:
    replaced = list(arguments)
    for index in (position, position + 1) if second else (position,):
        value = replaced[index] if index < len(replaced) else None
        if not isinstance(value, str):
            continue
        if value.lower() == "now":
            replaced[index] = now
        elif value.lower() in ("subsec", "subsecond"):  # a first argument of its own: now, with fractions
            replaced.insert(index, now)
    return tuple(replaced)


@functools.cache
def _plain_sqlite() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)


@functools.cache
def _sqlite_has(function: str) -> bool:
    found = _plain_sqlite().execute("SELECT 1 FROM pragma_function_list WHERE name = ?", (function,)).fetchone()
    return found is not None


@functools.lru_cache(maxsize=8192, typed=True)
def _evaluate(name: str, arguments: tuple[object, ...]) -> Any:
    marks = ", ".join("?" * len(arguments))
    return _plain_sqlite().execute(f"SELECT {name}({marks})", arguments).fetchone()[0]
