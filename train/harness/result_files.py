"""Reading what harnesses write. What is damaged, or says NaN, is a fault with a place, and never a number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.errors import UserError


class Damaged(UserError):
    """A harness's result file that cannot be relied on. The message names the file and the place."""


def read_json(path: Path) -> Any:
    """A file's document. Raises Damaged where it is not JSON or holds a NaN."""
    try:
        return json.loads(path.read_bytes(), parse_constant=_refuse)
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error}).") from None


def read_lines(path: Path, *, finished: bool = False) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines; none where there is no file.

    A last line without its end is being written, and is left out unless the file is `finished`. Raises Damaged where a
    line is not an object, or holds a NaN.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror}).") from None
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        if not (finished or line.endswith(b"\n")):
            return
        try:
            row = json.loads(line, parse_constant=_refuse)
        except ValueError as error:
            raise Damaged(f"{path}, line {number} is damaged ({error}).") from None
        if not isinstance(row, dict):
            raise Damaged(f"{path}, line {number} is not an object.")
        yield row


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a result")
