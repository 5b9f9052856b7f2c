"""The studio's themes, and how `auto` picks one for a terminal.

`colour-blind` uses the palette of Okabe and Ito (Color Universal Design, 2008): blue for good, orange for attention,
vermillion for wrong, which stay apart under protanopia, deuteranopia and tritanopia.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time

from textual.theme import Theme

THEMES = (
    Theme(
        name="dark",
        primary="#5AA9E6",
        secondary="#3B6E9C",
        accent="#E2B714",
        warning="#E2A03F",
        error="#E5637A",
        success="#5FBF77",
        foreground="#D8DEE6",
        background="#12161C",
        surface="#171C24",
        panel="#202733",
        variables={"quiet": "#8B96A5"},
    ),
    Theme(
        name="light",
        primary="#0B62A8",
        secondary="#5B7FA3",
        accent="#8A5A00",
        warning="#9A6200",
        error="#B3203A",
        success="#1F7A3D",
        foreground="#1D232B",
        background="#FBFBF9",
        surface="#F3F3EF",
        panel="#E5E6E1",
        dark=False,
        variables={"quiet": "#5F6670"},
    ),
    Theme(
        name="high-contrast",
        primary="#00BFFF",
        secondary="#FFFFFF",
        accent="#FFFF00",
        warning="#FFD000",
        error="#FF6B6B",
        success="#3CFF6B",
        foreground="#FFFFFF",
        background="#000000",
        surface="#000000",
        panel="#1A1A1A",
        luminosity_spread=0.25,
        text_alpha=1.0,
        variables={"quiet": "#C8C8C8"},
    ),
    Theme(
        name="colour-blind",
        primary="#56B4E9",
        secondary="#0072B2",
        accent="#F0E442",
        warning="#E69F00",
        error="#E8743B",
        success="#56B4E9",
        foreground="#E4E7EB",
        background="#12151A",
        surface="#181C22",
        panel="#232830",
        variables={"quiet": "#98A1AD"},
    ),
)

VARIABLES = {"quiet": "ansi_bright_black"}
"""What our style sheet uses beyond Textual's own colours, for themes that do not define it. `quiet` is less important
text; unlike Textual's muted colours it is opaque, so that it can be drawn on a cursor."""

CHOICES = ("auto", "dark", "light", "high-contrast", "colour-blind", "terminal")
"""What the settings offer. `auto` follows the terminal's background; `terminal` uses the terminal's own 16 colours."""

ANSWER_S = 0.2
"""How long a terminal may take to say its background colour; those that know the question answer in a few ms."""


def resolve(choice: str, *, is_light: bool | None, colours: str | None) -> str:
    """The name of the Textual theme for a choice.

    `is_light` is whether the terminal's background is (None where it does not say); `colours` is Rich's name of what
    the terminal can show ("standard" is 16 colours, where only the terminal's own palette is sure to be legible).
    """
    if choice == "terminal" or (choice == "auto" and colours == "standard"):
        return "ansi-light" if is_light else "ansi-dark"
    if choice == "auto":
        return "light" if is_light else "dark"
    return choice


def background_is_light() -> bool | None:
    """Whether the terminal's background is light, or None if it does not say.

    Looks at COLORFGBG, then asks the terminal (OSC 11) and waits at most ANSWER_S. Call it before the app takes the
    terminal over.
    """
    if match := re.fullmatch(r"\d+;(?:default;)?(\d+)", os.environ.get("COLORFGBG", "")):
        return int(match[1]) in (7, *range(9, 16))
    if not (sys.__stdin__ and sys.__stdout__ and sys.__stdin__.isatty() and sys.__stdout__.isatty()):
        return None
    return brightness(_ask(sys.__stdin__.fileno(), sys.__stdout__.fileno()))


def brightness(answer: bytes) -> bool | None:
    """Whether the colour in an OSC 11 answer is light; None if there is no answer in it."""
    match = re.search(rb"\x1b\]11;rgb:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})", answer)
    if match is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5


def _ask(stdin: int, stdout: int) -> bytes:
    """The terminal's answer to "which background", ended by its answer to "who are you", which every terminal gives."""
    import termios
    import tty

    before = termios.tcgetattr(stdin)
    answer, until = b"", time.monotonic() + ANSWER_S
    try:
        tty.setcbreak(stdin, termios.TCSANOW)
        os.write(stdout, b"\x1b]11;?\x1b\\\x1b[c")
        while not re.search(rb"\x1b\[\?[0-9;]*c", answer):
            ready, _, _ = select.select([stdin], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                break
            answer += os.read(stdin, 1_024)
    finally:
        termios.tcsetattr(stdin, termios.TCSANOW, before)
    return answer
