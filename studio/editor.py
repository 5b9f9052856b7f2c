"""A file in the person's own editor, while the studio leaves them the terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from textual.app import App, SuspendNotSupported

from pipeline.errors import UserError

USUAL = "vi"
"""The editor where neither VISUAL nor EDITOR names one, as POSIX has it."""


def edit(app: App[None], file: Path) -> None:
    """Open a file in $VISUAL or $EDITOR and wait until it is closed.

    Raises UserError where the editor cannot be started, or where the studio has no terminal to leave (in a browser).
    """
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or USUAL
    try:
        command = shlex.split(chosen)
    except ValueError as error:
        raise UserError(f"$EDITOR is {chosen!r}, which is no command line: {error}.") from error
    failed: OSError | None = None
    try:
        with app.suspend():
            try:
                subprocess.run([*command, str(file)], check=False)
            except OSError as error:  # caught in here: only a suspension that ends well gives the terminal back
                failed = error
    except SuspendNotSupported as error:
        raise UserError(f"There is no terminal for an editor here. The file is {file}.") from error
    if failed is not None:
        raise UserError(f"{command[0]} cannot be started: {failed.strerror}. Set $EDITOR to one that can.")
