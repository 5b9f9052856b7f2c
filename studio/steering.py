"""Telling a run what to do, and what it answers: the same for `awm-studio run` and for the Pipeline screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

ANSWER_S = 10.0
"""Seconds to wait for the engine's answer to a command."""


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a command: its event, whether it was done (None: nobody has answered yet), and what is said."""

    command: int
    ok: bool | None
    said: str
    pid: int | None = None  # of the process that was started for it


def tell(
    opened: Workspace, run: int, do: str, *, scenario: str | None = None, data: Mapping[str, Any] | None = None
) -> Told:
    """Send a command to a run (`scenario` is a name, None means all) and wait for its answer.

    Where no process works on the run, the command is kept until one does; "resume" starts one.
    """
    from pipeline.engine.commands import answer, find_run, send
    from pipeline.engine.start import detach, is_worked_on

    given = {key: value for key, value in (data or {}).items() if value is not None}
    found = find_run(opened.catalog, run)
    command = send(opened.catalog, found.id, do, scenario=scenario, **given)
    if not is_worked_on(opened, found.id):
        if do == "resume":
            pid = detach(opened, found)
            return Told(command, True, f"Run {found.id} goes on in process {pid}.", pid)
        later = f"Kept for later: nobody works on run {found.id} now. Start it with awm-studio run resume {found.id}."
        return Told(command, None, later)
    late = f"Run {found.id} is busy and has not answered yet; awm-studio run show {found.id} shows it."
    ok, said = answer(opened.catalog, found.id, command, timeout_s=ANSWER_S) or (None, late)
    return Told(command, ok, said)
