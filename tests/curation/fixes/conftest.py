"""One host for a test file, with short limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.runtime.host import Host
from pipeline.runtime.limits import Limits


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(limits=Limits(call_timeout_s=2, verify_timeout_s=3)) as started:
        yield started
