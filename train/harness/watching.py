"""Whether the model's server still answers, as the proxy's log says while a harness runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pipeline.errors import UserError
from pipeline.llm.faults import says_overflow
from train.json_lines import read_json_line

LOST_IN_A_ROW = 8
"""Requests in a row without an answer, after which a harness is stopped: it would count the rest as failed."""


class Silent(UserError):
    """The model's server gives no answers any more. The message says why, and that it can be gone on with."""


@dataclass
class Watch:
    """Follows a proxy's log from where it ends now."""

    log: Path
    who: str = "the model's server"
    lost: int = 0
    last: str = ""
    _at: int = field(init=False)

    def __post_init__(self) -> None:
        self._at = self.log.stat().st_size if self.log.exists() else 0

    def look(self) -> None:
        """Read what is new. Raises Silent where the last requests in a row got no answer."""
        for line in self._new_lines():
            error = str(read_json_line(line).get("error") or "")
            self.last = error or self.last
            if not says_overflow(error):  # which says nothing about the server
                self.lost = self.lost + 1 if error else 0
        if self.lost >= LOST_IN_A_ROW:
            raise Silent(f"{self.lost} requests in a row got no answer from {self.who}: {self.last}")

    def _new_lines(self) -> list[bytes]:
        try:
            with self.log.open("rb") as file:
                file.seek(self._at)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._at += len(whole + newline)
        return whole.splitlines()
