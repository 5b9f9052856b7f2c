"""A SQLite connection that notices what a call leaves behind on it."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable
from typing import Any


class InstanceConnection(sqlite3.Connection):
    """A SQLite connection that notices what would outlive the call on it, so that it can be replaced afterwards."""

    marked = False
    """Whether something was done that the next call on this connection could see."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._opened: list[weakref.ref[Any]] = []

    def cursor(self, *args: Any, **kwargs: Any) -> sqlite3.Cursor:
        """As `sqlite3.Connection.cursor`."""
        cursor = super().cursor(*args, **kwargs)
        self._opened.append(weakref.ref(cursor))
        return cursor

    def blobopen(self, *args: Any, **kwargs: Any) -> sqlite3.Blob:
        """As `sqlite3.Connection.blobopen`."""
        blob = super().blobopen(*args, **kwargs)
        self._opened.append(weakref.ref(blob))
        return blob

    def close_all(self) -> None:
        """Close all cursors. Giving SQLite another database while a statement reads this one crashes the process."""
        for reference in self._opened:
            opened = reference()
            if opened is not None:
                opened.close()
        self._opened.clear()

    def _marking(name: str) -> Callable[..., Any]:
        def method(self: InstanceConnection, *args: Any, **kwargs: Any) -> Any:
            self.marked = True
            return getattr(sqlite3.Connection, name)(self, *args, **kwargs)

        method.__name__ = name
        return method

    create_function = _marking("create_function")
    create_aggregate = _marking("create_aggregate")
    create_collation = _marking("create_collation")
    create_window_function = _marking("create_window_function")
    set_trace_callback = _marking("set_trace_callback")
    set_authorizer = _marking("set_authorizer")
    set_progress_handler = _marking("set_progress_handler")
    del _marking
