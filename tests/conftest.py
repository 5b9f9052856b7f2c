"""What every test shares: benchmarks stay out of `make test`, and the real data is found or skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

REAL = Path(__file__).resolve().parents[2] / "shared" / "awm-real"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect benchmarks unless they were asked for with `-m benchmark`."""
    if "benchmark" in (config.option.markexpr or ""):
        return
    measured = [item for item in items if item.get_closest_marker("benchmark")]
    if measured:
        config.hook.pytest_deselected(items=measured)
        items[:] = [item for item in items if not item.get_closest_marker("benchmark")]


@pytest.fixture(scope="session")
def awm_real() -> Path:
    """The folder of five real environments; tests that need it are skipped where it is absent."""
    if not REAL.is_dir():
        pytest.skip(f"the five real environments are not on this machine ({REAL.name} beside the checkout)")
    return REAL


@pytest.fixture(autouse=True)
def private_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep a person's own workspace and settings out of the tests."""
    monkeypatch.delenv("AWM_WORKSPACE", raising=False)
    monkeypatch.setenv("AWM_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
