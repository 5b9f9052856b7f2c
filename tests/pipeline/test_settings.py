"""The settings file: what it may say, and what is said about what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import settings
from pipeline.errors import UserError
from pipeline.settings import Settings


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "config.toml"


def test_no_file_means_the_defaults(path: Path) -> None:
    assert settings.load(path) == Settings()
    assert (Settings().call_timeout_s, Settings().memory_mb, Settings().database_url) == (10, 1024, None)
    assert Settings().workers >= 1


def test_what_is_saved_is_loaded(path: Path) -> None:
    chosen = Settings(call_timeout_s=2.5, workers=3, worker_python="/usr/bin/python3.12")
    assert settings.save(chosen, path) == path
    assert settings.load(path) == chosen


def test_saving_writes_only_what_was_chosen_and_keeps_comments(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("# mine\nmemory_mb = 2048 # enough\nworker_python = 'py'\n")
    settings.save(Settings(memory_mb=512), path)
    assert path.read_text() == "# mine\nmemory_mb = 512 # enough\n"
    settings.save(Settings(), path)
    assert "memory_mb = 1024" in path.read_text()


def test_whole_numbers_do_for_seconds(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("call_timeout_s = 3\n")
    assert settings.load(path).call_timeout_s == 3.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("call_timeout = 3", "no setting 'call_timeout'. Did you mean call_timeout_s"),
        ("colour = 'red'", "no setting 'colour'. There are database_url, "),
        ("memory_mb = '1 GB'", "memory_mb is '1 GB'; input should be a valid integer"),
        ("workers = 0", "workers is 0; input should be greater than or equal to 1"),
        ("call_timeout_s = -1", "call_timeout_s is -1; input should be greater than 0"),
        ("memory_mb = \nworkers = 3", "not TOML: .*line 1"),
    ],
)
def test_a_fault_names_the_file_and_the_key(path: Path, text: str, said: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UserError, match=said) as raised:
        settings.load(path)
    assert str(path) in str(raised.value)


def test_a_file_that_is_not_text(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        settings.load(path)


def test_a_folder_in_its_place(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(UserError, match="cannot be read"):
        settings.load(path)
    with pytest.raises(UserError, match="cannot be written"):
        settings.save(Settings(), path)


def test_the_variable_names_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWM_CONFIG", str(path))
    settings.save(Settings(workers=7))
    assert path.is_file()
    assert settings.load().workers == 7
