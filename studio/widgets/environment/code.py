"""The source of the environment's application."""

from __future__ import annotations

import re

from studio.widgets.environment.dossier import Dossier
from studio.widgets.source import Source


class Code(Source):
    """Highlighted, with line numbers; `show_handler` goes to the function behind a tool."""

    def __init__(self) -> None:
        super().__init__(numbered=True)

    def show_dossier(self, dossier: Dossier) -> None:
        """Show the code of an environment."""
        self.show(dossier.env.code or "# This environment has no code.", "python")

    def show_line(self, line: int) -> None:
        """Go to a line (from 1) and mark it."""
        self.show(self.text, "python", line=line)


def handler_line(source: str, operation_id: str) -> int | None:
    """The line (from 1) where the handler of an operation starts, judged by its text alone.

    Used where the code cannot be loaded; a loaded program knows its handlers' lines better.
    """
    wanted = re.escape(operation_id)
    for pattern in (rf"operation_id\s*=\s*[\"']{wanted}[\"']", rf"def\s+{wanted}\s*\("):
        if match := re.search(pattern, source):
            return source.count("\n", 0, match.start()) + 1
    return None
