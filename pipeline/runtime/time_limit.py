"""Ends Python code of this process that runs too long."""

from __future__ import annotations

import signal
from _signal import signal as handle  # ty: ignore[import-not-found]  # signal.signal, less what its enums cost: 5 µs
from collections.abc import Generator
from contextlib import contextmanager


class TimeLimit(BaseException):
    """The time is up. Not an Exception, so that `except Exception` in generated code does not swallow it."""


RING_AGAIN_S = 0.05
"""Seconds between two alarms once the time is up."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raise TimeLimit in the code inside after so many seconds of wall clock, again and again until it is out.

    For the main thread only. It interrupts Python code; code in C (SQL, some regular expressions) goes on until it
    returns, and code that swallows everything in a loop goes on as well: whoever waits for the process keeps a timer
    of their own.
    """
    inside = True

    def ring(*_: object) -> None:
        if inside:
            raise TimeLimit

    before = handle(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, RING_AGAIN_S)
    try:
        yield
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        handle(signal.SIGALRM, before)
