"""Work in processes of its own: the studio starts them and watches them through the catalog."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from pipeline.errors import UserError
from pipeline.records import Run

COMMAND = (sys.executable, "-m", "studio.cli")
"""`awm-studio`, whether or not it is on the PATH."""


async def finish(workspace: Path, *arguments: str) -> str:
    """Run a short `awm-studio` command on a workspace to its end and return its stdout.

    Raises UserError with what it said where it could not be done.
    """
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        "--workspace",
        str(workspace),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        said, complained = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        raise
    if process.returncode:
        words = complained.decode(errors="replace").strip().splitlines()
        raise UserError(words[-1] if words else f"awm-studio {arguments[0]} ended with {process.returncode}.")
    return said.decode(errors="replace")


def detach(workspace: Path, logs: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a long `awm-studio` command that outlives the studio; what it says goes to `logs`, by its verb.

    Raises UserError where it cannot be started.
    """
    try:
        with (logs / f"{arguments[0]}.log").open("ab") as output:
            return subprocess.Popen(
                [*COMMAND, *arguments, "--workspace", str(workspace)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise UserError(f"awm-studio {arguments[0]} could not be started: {error.strerror}.") from error


def last_words(logs: Path, verb: str) -> str:
    """The last line a detached command wrote to its log."""
    lines = (logs / f"{verb}.log").read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "It gave no reason."


def going_on(run: Run) -> tuple[str, ...] | None:
    """The command that goes on with a run, or None where nothing does."""
    if run.kind == "synthesis":
        return ("synth", "--resume", "--run", str(run.id))
    if run.kind == "blueprints":
        # Rules make the same environments from the same request: asking again makes those that are not there yet.
        asked = {name: run.config.get(name) for name in ("count", "seed", "size", "domain")}
        words = (word for name, value in asked.items() if value is not None for word in (f"--{name}", str(value)))
        return ("synth", "--offline", *words)
    if run.kind == "training":
        return ("train", "--resume", str(run.id), "--detach")
    if run.kind == "evaluation":
        return ("eval", run.config["suite"], "--resume", "--run", str(run.id))
    if run.kind == "ablation" and "preset" in run.config:  # one that trains; the others are asked for anew
        return ("ablate", run.config["ablation"], "--resume", str(run.id))
    if run.kind == "diversity":
        # What was embedded before is kept.
        words = (word for name, value in run.config.items() for word in (f"--{name}", str(value)))
        return ("diversity", "--keep", *words)
    if run.kind in ("check", "audit") and (names := run.config.get("environments")):
        # What was judged before is kept: asking again judges the rest.
        return (
            run.kind,
            *(["--all"] if names == "all" else names),
            *run.config.get("options", ()),
            "--fail-on",
            "never",
        )
    return None


def is_orphaned(run: Run) -> bool:
    """Whether a run says it is worked on and nobody does: its process was killed, or the machine went down."""
    return run.state == "running" and not is_alive(run)


def is_alive(run: Run) -> bool:
    """Whether the process that works on a run still exists (and is not a later one that got its number)."""
    import psutil

    if run.pid is None:
        return False
    try:
        return psutil.Process(run.pid).create_time() <= run.updated_at.timestamp() + 1
    except psutil.Error:
        return False


def stop(run: Run) -> int:
    """Ask a run's process to end as Ctrl-C would: what is done is kept. Returns the process's number.

    Raises UserError where there is no such process (any more).
    """
    if run.pid is None or not is_alive(run):
        raise UserError(f"Run {run.id} is not running any more.")
    try:
        os.kill(run.pid, signal.SIGINT)
    except OSError as error:
        raise UserError(f"Run {run.id} cannot be stopped: {error.strerror}.") from error
    return run.pid
