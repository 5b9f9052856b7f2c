"""One virtual environment a harness version, in the user's cache folder and never in the studio's own.

A folder counts as installed only by the marker that is written into it last, so that an interrupted installation is
made again and never used.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.places import named_place
from pipeline.snapshots import replace_file
from train.harness.known import Harness
from train.harness.launching import end_group
from train.json_lines import json_line

MARKER = "awm-studio.json"
"""Written last: what was installed, with which Python, how large it is (MB) and how long it took (s)."""

LOG = "install.log"
PLACE = "AWM_HARNESSES"
"""The environment variable that moves the folder of all harnesses."""

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
KEPT_PREFIXES = ("PIP_", "XDG_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
"""What an installation finds of our environment: where packages come from, and no keys of models."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Installed:
    """A harness that can be used: its interpreter, and what its marker says."""

    python: Path
    facts: dict[str, Any]


def place() -> Path:
    """The folder of all harnesses: `$AWM_HARNESSES`, else in the user's cache folder."""
    if chosen := os.environ.get(PLACE):
        return named_place(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("awm-studio") / "harnesses"


def folder_of(harness: Harness) -> Path:
    """Where a harness version is installed, or would be."""
    return place() / f"{harness.package}-{harness.version}"


def installed(harness: Harness) -> Installed | None:
    """A harness that was installed whole, or None."""
    folder = folder_of(harness)
    python = folder / "bin" / "python"
    try:
        facts = json.loads((folder / MARKER).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(facts, dict) or facts.get("version") != harness.version or not python.exists():
        return None
    return Installed(python, facts)


def require(harness: Harness) -> Installed:
    """A harness that is installed. Raises UserError where it is not, with how to do it."""
    if found := installed(harness):
        return found
    raise UserError(f"{harness.title} is not installed: awm-studio eval harnesses --install {harness.name} does it.")


def site_packages(python: Path) -> Path:
    """Where an installation's packages are. Raises UserError where they are gone."""
    for found in (python.parent.parent / "lib").glob("python3.*/site-packages"):
        return found
    raise UserError(f"{python.parent.parent} has no packages any more: delete that folder and install again.")


def install(harness: Harness, tell: Tell, *, python: str | None = None) -> Installed:
    """Install a harness unless it is; `tell` is called with each step.

    `python` is the interpreter to use [default: this one, or the newest on the PATH that the harness accepts]. Raises
    UserError where Python is too new, a program or disk space is missing, or pip cannot do it; KeyboardInterrupt
    where it is interrupted. Both leave nothing that counts as installed.
    """
    if found := installed(harness):
        return found
    base = interpreter(harness, python)
    if lacking := lacks(harness):
        raise UserError(f"{harness.title} cannot be installed: {lacking[0]}.")
    folder = folder_of(harness)
    _make(place())
    with _alone(folder):
        if found := installed(harness):
            return found
        _require_space(harness)
        began = time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        try:
            tell(f"making a virtual environment with {base}")
            _run([base, "-m", "venv", str(folder)], _beside(folder, ".log"), lambda _: None, harness)
            own = folder / "bin" / "python"
            log = folder / LOG
            pip = [str(own), "-m", "pip", "--disable-pip-version-check", "--no-input"]
            get = [*pip, "install", "--progress-bar", "off", "--constraint", str(harness.lock)]
            _run([*get, harness.requirement, *harness.also], log, _steps(tell), harness)
            tell("trying it")
            _run([str(own), "-c", f"import {harness.module}"], log, lambda _: None, harness)
            frozen = subprocess.run([*pip, "freeze"], capture_output=True, text=True, check=True, env=_environment())
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        facts = {
            "package": harness.package,
            "version": harness.version,
            "python": base,
            "packages": sorted(frozen.stdout.split()),
            "megabytes": round(_size(folder) / 1e6),
            "seconds": round(time.monotonic() - began, 1),
        }
        replace_file(folder / MARKER, json_line(facts))
        _beside(folder, ".log").unlink(missing_ok=True)
    return require(harness)


def remove(harness: Harness) -> None:
    """Delete an installation, or what is left of one. Raises UserError where another process makes it."""
    folder = folder_of(harness)
    if not folder.exists():
        return
    with _alone(folder):
        (folder / MARKER).unlink(missing_ok=True)  # first, so that what is deleted in part does not count
        shutil.rmtree(folder, ignore_errors=True)


def lacks(harness: Harness) -> list[str]:
    """What this machine lacks to install a harness, each as words; its Python is left out (see `interpreter`)."""
    return [
        f"it needs {tool} to build one of its dependencies, which is not on the PATH"
        for tool in harness.tools
        if shutil.which(tool) is None
    ]


def interpreter(harness: Harness, chosen: str | None = None) -> str:
    """An interpreter that a harness can be installed on: the chosen one, this one, or the newest on the PATH.

    Raises UserError where there is none.
    """
    first, last = harness.python
    span = f"Python {first[0]}.{first[1]} to {last[0]}.{last[1]}"
    if chosen is not None:
        path = shutil.which(chosen)
        version = _version(path) if path else None
        if path is None or version is None:
            raise UserError(f"{chosen} is not a Python that can make virtual environments: name one of {span}.")
        if not first <= version <= last:
            raise UserError(
                f"{harness.requirement} needs {span}, and {chosen} is Python {version[0]}.{version[1]}: name another "
                "with --python."
            )
        return path
    minors = range(last[1], first[1] - 1, -1)
    for name in (getattr(sys, "_base_executable", sys.executable), *(f"python3.{minor}" for minor in minors)):
        path = shutil.which(name)
        if path and (version := _version(path)) and first <= version <= last:
            return path
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    raise UserError(
        f"{harness.requirement} needs {span}; this is Python {here}, and there is none of those on the PATH: install "
        f"python{last[0]}.{last[1]}, or name an interpreter with --python."
    )


def _version(path: str) -> tuple[int, int] | None:
    ask = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([path, "-c", ask], capture_output=True, text=True, timeout=30, check=True)
        major, minor = map(int, answer.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return major, minor


def _steps(tell: Tell) -> Callable[[str], None]:
    """Pip's own words as steps: what it collects, with its number, and what it installs."""
    seen = 0

    def hear(line: str) -> None:
        nonlocal seen
        words = line.split()
        if line.startswith("Collecting ") and len(words) > 1:
            seen += 1
            tell(f"collecting {words[1]} (package {seen})")
        elif line.strip().startswith("Building wheel"):
            tell(line.strip())
        elif line.startswith("Installing collected packages"):
            tell(f"installing {line.count(',') + 1} packages")

    return hear


def _run(command: list[str], log: Path, hear: Callable[[str], None], harness: Harness) -> None:
    """Run a step to its end, in a process group of its own. Raises UserError with its last words where it fails."""
    last = ""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}.") from None
    try:
        with log.open("a") as file:
            for line in process.stdout or ():
                file.write(line)
                hear(line)
                if line.strip() and not line.startswith(("WARNING", " ")):
                    last = line.strip()
                if "No space left on device" in line:
                    last = "ERROR: No space left on device"
        code = process.wait()
    except OSError as error:
        last, code = f"ERROR: {error.strerror}", 1
    finally:
        end_group(process)
    if code:
        raise UserError(_why(harness, last.removeprefix("ERROR: ").rstrip(".")))


def _why(harness: Harness, last: str) -> str:
    what = f"{harness.requirement} cannot be installed"
    if "No space left" in last:
        return f"{what}: the disk is full at {place()}. Free {harness.megabytes} MB, or set {PLACE} to another folder."
    if "No matching distribution" in last or "connection" in last.lower() or "Max retries" in last:
        return (
            f"{what}: pip finds no package index that has it ({last}). Check the network, or set PIP_INDEX_URL to a "
            "mirror, and try again."
        )
    return f"{what}: {last or 'pip gave no reason'}."


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.upper().startswith(KEPT_PREFIXES)}
    return kept | {"PYTHONUNBUFFERED": "1"}


def _require_space(harness: Harness) -> None:
    free, needed = shutil.disk_usage(place()).free / 1e6, 2 * harness.megabytes  # pip unpacks beside its downloads
    if free < needed:
        raise UserError(
            f"{harness.requirement} needs about {needed:,.0f} MB while it is installed and {place()} has {free:,.0f} "
            f"MB: free some space, or set {PLACE} to another folder."
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}): set {PLACE} to another folder.") from None


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(folder.name + ending)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    with _beside(folder, ".lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"Another process installs into {folder} now: wait for it.") from None
        yield
