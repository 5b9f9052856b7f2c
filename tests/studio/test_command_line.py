"""The command line as a whole: what it says when it is interrupted, and when nobody answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from studio.cli import way_on


@pytest.mark.parametrize(
    ("typed", "goes_on"),
    [
        ("rollout --policy noop --task all", "awm-studio rollout --resume goes on"),
        ("-w elsewhere eval heldout --subset mix", "awm-studio eval heldout --resume goes on"),
        ("synth --count 3", "awm-studio synth --resume goes on"),
        ("check --all", "run the same command to go on"),
        ("", "run the same command to go on"),
    ],
)
def test_an_interrupted_command_says_how_to_go_on(typed: str, goes_on: str) -> None:
    assert way_on(typed.split()).startswith(goes_on)


def test_a_question_that_nobody_can_answer_is_bad_input(tmp_path: Path) -> None:
    asking = "import rich_click as click, studio.cli as cli\n"
    asking += "cli.awm_studio.callback = lambda **_: click.prompt('Which')\ncli.main()"
    command = [sys.executable, "-c", asking]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nobody answers: run it in a terminal" in done.stderr
