"""Harness processes: what they find in their environment, and that all of them end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pipeline.errors import UserError
from train.harness import launching

PYTHON = Path(sys.executable)


class Stop(Exception):
    """Raised by a test's look."""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs some code as a harness's script."""
    monkeypatch.setattr(launching, "LOOK_EVERY_S", 0.02)

    def run(code: str, look: Callable[[], object] = lambda: None, *, patience_s: float = 5) -> int:
        (tmp_path / "script.py").write_text(code)
        environ = launching.environment(PYTHON, tmp_path)
        return launching.run(
            PYTHON,
            str(tmp_path / "script.py"),
            ["one", "two"],
            root=tmp_path,
            log=tmp_path / "log",
            environ=environ,
            look=look,
            patience_s=patience_s,
        )

    return run


def when_there(path: Path) -> Callable[[], None]:
    """Stops as soon as a file is there."""

    def look() -> None:
        if path.exists():
            raise Stop

    return look


def test_no_key_and_no_address_of_ours_reaches_a_harness(
    start: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN", "SERP_API_KEY"):
        monkeypatch.setenv(name, "sk-real")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere")
    assert start("import os; print(sorted(os.environ.items()), os.getcwd())") == 0
    said = (tmp_path / "log").read_text()
    assert "sk-real" not in said
    assert "OPENAI_BASE_URL" not in said
    assert f"('OPENAI_API_KEY', '{launching.DUMMY_KEY}')" in said
    assert f"('HOME', '{tmp_path / 'home'}')" in said


def test_what_a_domain_needs_is_passed_on(tmp_path: Path) -> None:
    environ = launching.environment(PYTHON, tmp_path, {"SERP_API_KEY": "of-the-domain"})
    assert environ["SERP_API_KEY"] == "of-the-domain"
    assert environ["PATH"].split(os.pathsep)[0] == str(PYTHON.parent)


def test_a_script_gets_its_arguments_and_finds_nobody_to_ask(start: Callable[..., int], tmp_path: Path) -> None:
    assert start("import sys; print(sys.argv[1:], repr(sys.stdin.read()))\nsys.exit(3)") == 3
    assert (tmp_path / "log").read_text() == "['one', 'two'] ''\n"
    assert launching.last_words(tmp_path / "log") == "['one', 'two'] ''"


def test_stopping_is_asked_for_politely_first(start: Callable[..., int], tmp_path: Path) -> None:
    code = """
import pathlib, time
try:
    pathlib.Path("begun").touch()
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path("said goodbye").touch()
"""
    with pytest.raises(Stop):
        start(code, when_there(tmp_path / "begun"))
    assert (tmp_path / "said goodbye").exists()


def test_who_does_not_hear_sigint_hears_sigterm_or_is_ended(start: Callable[..., int], tmp_path: Path) -> None:
    code = """
import os, pathlib, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path("heard").touch())
pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
pathlib.Path("begun").touch()
while True:
    time.sleep(1)
"""
    with pytest.raises(Stop):
        start(code, when_there(tmp_path / "begun"), patience_s=0.3)
    assert (tmp_path / "heard").exists()
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_harness_ends_with_whoever_started_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\nprint('begun', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, str(launching.SCRIPTS / "leash.py"), str(tmp_path / "script.py")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, start_new_session=True
    )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"begun\n"
    process.stdin.close()  # as the system does for a process that was killed
    assert process.wait(10) != 0
    process.stdout.close()


def test_an_interpreter_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be started .*: install the harness again"):
        launching.run(tmp_path / "python", "x.py", [], root=tmp_path, log=tmp_path / "log", environ={})
