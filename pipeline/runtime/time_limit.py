"""Ends Python code of this process that runs too long."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager


class TimeLimit(BaseException):
    """The time is up. Not an Exception, so that `except Exception` in generated code does not swallow it."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raise TimeLimit in the code inside after so many seconds of wall clock.

    For the main thread only. It interrupts Python code; code in C (SQL, some regular expressions) goes on until it
    returns, and a bare `except` can swallow it: whoever waits for the process keeps a timer of their own.
    """

    def ring(*_: object) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
