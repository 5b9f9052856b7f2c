"""What tests of agents share: one host, and a loaded pantry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.runtime.host import Host, HostedProgram
from pipeline.runtime.limits import Limits
from tests.train.pantry import pantry


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    with Host(limits=Limits(call_timeout_s=2)) as started:
        yield started


@pytest.fixture(scope="session")
def program(host: Host) -> Iterator[HostedProgram]:
    with host.program(pantry()) as loaded:
        yield loaded


@pytest.fixture
def one_host(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs use the host of the tests, which is not closed by them: starting one costs seconds."""

    class Kept:
        def __getattr__(self, name: str) -> object:
            return getattr(host, name)

        def __enter__(self) -> Kept:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(Host, "from_settings", lambda settings: Kept())
