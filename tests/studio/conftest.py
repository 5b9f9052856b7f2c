"""A studio on a small workspace, driven as a person would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot

from pipeline.runtime.host import Host
from pipeline.settings import Settings
from studio.app import Studio
from tests.studio.worlds import fill


async def until(pilot: Pilot[None], happens: Callable[[], object], *, seconds: float = 60) -> None:
    """Wait until something has happened; fail with its source where it does not."""
    loop = pilot.app._loop
    assert loop is not None
    end = loop.time() + seconds
    while not happens():
        assert loop.time() < end, f"did not happen within {seconds} s: {happens.__code__.co_names}"
        await pilot.pause(0.02)
    await pilot.pause()


class Kept:
    """A host that several studios of a test run use in turn: starting one costs seconds, and most tests need none of
    their own."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __getattr__(self, name: str) -> object:
        return getattr(self._host, name)

    def close(self) -> None:
        """Left to the end of the session."""

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture(scope="session")
def kept_host() -> Iterator[Kept]:
    with Host() as host:
        yield Kept(host)


@pytest.fixture(autouse=True)
def one_host(kept_host: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Studios and commands with the default limits share a host."""
    own = Host.from_settings

    def from_settings(settings: Settings) -> Host | Kept:
        return kept_host if settings.call_timeout_s == Settings().call_timeout_s else own(settings)

    monkeypatch.setattr(Host, "from_settings", from_settings)


@pytest.fixture(scope="session")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that tests only read."""
    return fill(tmp_path_factory.mktemp("small") / "ws")


@pytest.fixture(scope="session")
def trust_world(tmp_path_factory: pytest.TempPathFactory, kept_host: Kept) -> Path:
    """A workspace with a desk that was checked and audited, for tests that only read it."""
    from tests.studio.trust import fill_with_trust

    return fill_with_trust(tmp_path_factory.mktemp("trust") / "ws", cast("Host", kept_host))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace of the test's own."""
    return fill(tmp_path / "ws")


@asynccontextmanager
async def studio_on(
    path: Path, *, size: tuple[int, int] = (120, 36), theme: str = "dark", wait: bool = True, **options: object
) -> AsyncIterator[tuple[Studio, Pilot[None]]]:
    """A studio on a workspace, by default once its list has been read and the first environment is shown."""
    studio = Studio(path, settings=Settings(theme=theme), **options)
    async with studio.run_test(size=size, notifications=True) as pilot:
        if wait:
            await until(pilot, lambda: studio.workspace and studio.screen.query_one("#detail").dossier)
        yield studio, pilot
