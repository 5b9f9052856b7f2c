"""Work that takes a while, as a run that others can watch in the catalog."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from pipeline.catalog import Catalog
from pipeline.errors import UserError


class RunRecord:
    """One run that is worked on; `result` is kept at its end."""

    def __init__(self, catalog: Catalog, number: int, total: int = 0) -> None:
        self.number = number
        self.result: Mapping[str, Any] | None = None
        self._catalog = catalog
        self._total = total
        self._done = 0

    def note(self, scenario: str, said: str) -> None:
        """One more environment is done, and this came of it."""
        self._done += 1
        data = {"done": self._done, "total": self._total, "result": said}
        self._catalog.add_event(self.number, "progress", data, scenario=scenario)

    def progress(self, done: int, total: int) -> None:
        """So much is done, where work does not go environment by environment."""
        self._catalog.add_event(self.number, "progress", {"done": done, "total": total})


@contextmanager
def recorded(catalog: Catalog, kind: str, config: Mapping[str, Any], *, total: int = 0) -> Generator[RunRecord]:
    """Record what happens within the block as a run of this kind: running in this process, then done.

    An interrupt makes it stopped, another exception failed; both come through. What a UserError says is the result.
    """
    record = RunRecord(catalog, catalog.add_run(kind, config), total)
    catalog.update_run(record.number, state="running", pid=os.getpid())
    state = "failed"
    try:
        yield record
        state = "done"
    except KeyboardInterrupt:
        state = "stopped"
        raise
    except UserError as error:
        record.result = {"error": str(error)}
        raise
    finally:
        catalog.update_run(record.number, state=state, pid=None, result=record.result)
