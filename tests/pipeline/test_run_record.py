"""Work that others can watch in the catalog."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.catalog import Catalog
from pipeline.run_record import recorded


def test_progress_is_told_while_it_works_and_the_result_at_the_end(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        with recorded(catalog, "check", {"environments": ["shop", "zoo"]}, total=2) as record:
            record.note("shop", "fail")
            [run] = catalog.runs()
            assert (run.state, run.pid, run.config) == ("running", os.getpid(), {"environments": ["shop", "zoo"]})
            [event] = catalog.events(run=run.id)
            assert (event.scenario, event.data) == ("shop", {"done": 1, "total": 2, "result": "fail"})
            record.result = {"fail": 1}
        [run] = catalog.runs()
        assert (run.state, run.pid, run.result) == ("done", None, {"fail": 1})


@pytest.mark.parametrize(("ended_by", "state"), [(KeyboardInterrupt, "stopped"), (RuntimeError, "failed")])
def test_what_ends_it_early_is_written_down_and_comes_through(
    tmp_path: Path, ended_by: type[BaseException], state: str
) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        with pytest.raises(ended_by), recorded(catalog, "audit", {}, total=3):
            raise ended_by
        [run] = catalog.runs()
        assert (run.state, run.pid) == (state, None)
