"""Harness processes: started apart from our secrets, with all they start, and ended with all of it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from train.proxy import DUMMY_KEY

PATIENCE_S = 10.0
"""Seconds a process gets to end after each signal, before the next one."""

LOOK_EVERY_S = 0.5
"""Seconds between two looks at what a harness has written."""

SCRIPTS = Path(__file__).parent / "scripts"

KEPT = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
KEPT_PREFIXES = ("OPENBLAS_", "OMP_", "MKL_")
"""What a harness finds of our environment: language, certificates, and how to compute. No keys, and no
`OPENAI_BASE_URL`, to which a judge of its own would otherwise talk."""


def environment(python: Path, root: Path, more: Mapping[str, str] = {}) -> dict[str, str]:
    """What a harness finds in its environment: its own virtual environment first, and a home in its run's root."""
    kept = {n: v for n, v in os.environ.items() if n in KEPT or n.startswith(KEPT_PREFIXES)}
    for folder in ("home", "tmp"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    return {
        **kept,
        "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "VIRTUAL_ENV": str(python.parent.parent),
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "PYTHONUNBUFFERED": "1",
        "PYTHON_DOTENV_DISABLED": "1",  # a .env file in a folder above would bring keys back
        "OPENAI_API_KEY": DUMMY_KEY,
        **more,
    }


def run(
    python: Path,
    script: str,
    arguments: Sequence[str],
    *,
    root: Path,
    log: Path,
    environ: Mapping[str, str],
    look: Callable[[], Any] = lambda: None,
    patience_s: float = PATIENCE_S,
) -> int:
    """Run one of our scripts in a harness's virtual environment to its end; returns the exit code.

    Its words go to `log`. `look` is called every half second; where it raises, or we are interrupted, the process and
    all it started are ended first. They also end where this process is killed. Raises UserError where it cannot start,
    OSError where the log cannot be written.
    """
    command = [str(python), str(SCRIPTS / "leash.py"), str(SCRIPTS / script), *arguments]
    with log.open("ab") as words:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # its leash: see scripts/leash.py
                stdout=words,
                stderr=words,
                cwd=root,
                env=dict(environ),
                start_new_session=True,
            )
        except OSError as error:
            raise UserError(f"{python} cannot be started ({error.strerror}): install the harness again.") from None
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(LOOK_EVERY_S)
            look()
    finally:
        end_group(process, patience_s)
        if process.stdin:
            process.stdin.close()


def end_group(process: subprocess.Popen[Any], patience_s: float = PATIENCE_S) -> int:
    """End a process that leads a group of its own, and the group: by SIGINT, then SIGTERM, then SIGKILL.

    Returns its exit code. Of a process that has ended already, what it had started is ended.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if process.poll() is not None:
            break
        _send(process, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
    _send(process, signal.SIGKILL)
    return process.wait()


def last_words(log: Path, lines: int = 1) -> str:
    """The last lines that say something in a log."""
    try:
        said = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    except OSError:
        said = []
    return " ".join(said[-lines:])[-400:] or "it gave no reason"


def _send(process: subprocess.Popen[Any], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
