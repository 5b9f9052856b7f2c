"""What tests of agents share: one host, and a loaded pantry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.runtime.host import Host, HostedProgram
from pipeline.runtime.limits import Limits
from pipeline.workspace import Workspace
from tests.train.pantry import broken, fill, pantry
from tests.train.small_trainings import make_subset


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


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with two pantries, an environment that does not load, and subsets of them."""
    folder = fill(tmp_path / "workspace", pantry(), pantry("larder"), broken("ruin"))
    with Workspace.open(folder) as opened:
        make_subset(opened.catalog, "both", [("pantry", 0), ("pantry", 1), ("ruin", 0)], [("larder", 0)])
        make_subset(opened.catalog, "empty", [], [])
        yield opened
