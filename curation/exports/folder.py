"""A folder of files that appears whole or not at all, and holds nothing private."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from pipeline.errors import UserError

Progress = Callable[[int, int], None]
"""Told how many of how many environments are written."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file of an export: how many rows it has, and the sha256 of its bytes."""

    rows: int
    sha256: str


_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SECRET_LENGTH = 8  # shorter values turn up in texts by chance


@contextmanager
def new_folder(folder: Path) -> Generator[Path]:
    """A draft folder that takes `folder`'s place at the end; on any error nothing of it stays.

    Raises UserError where `folder` exists and is not empty, or cannot be written (a full disk included).
    """
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.new")
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} exists and is not an empty folder: name one that does not exist yet.")
        draft.mkdir(parents=True)
        yield draft
        draft.replace(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


class Privacy:
    """What an export must not hold: this machine's paths, and the secrets in this process's environment."""

    def __init__(self, workspace: Path, environment: Mapping[str, str] | None = None) -> None:
        """Look for the workspace's path, the home folder's, and values of variables like `OPENAI_API_KEY`."""
        variables = os.environ if environment is None else environment
        self._forbidden = {str(workspace.resolve()): "the path of the workspace"}
        home = str(Path.home())
        if len(home) >= _SECRET_LENGTH:
            self._forbidden[home] = "the path of your home folder"
        for name, value in variables.items():
            if _SECRET_NAME.search(name) and len(value) >= _SECRET_LENGTH:
                self._forbidden[value] = f"the value of {name}"

    def check(self, text: str, where: str) -> None:
        """Raise UserError if a text that is about to be written holds any of it; `where` says what it belongs to."""
        for private, what in self._forbidden.items():
            if private in text:
                raise UserError(f"{where} holds {what}, so it is not exported: take it out there first.")

    def check_row(self, row: Mapping[str, Any], where: str) -> None:
        """Raise UserError if any text in a row, however deep, holds any of it."""
        self.check("\n".join(_texts(row)), where)

    def checked(
        self, rows: Iterable[dict[str, Any]], where: Callable[[dict[str, Any]], str]
    ) -> Generator[dict[str, Any]]:
        """The rows as they come, each checked; `where` tells what a row belongs to."""
        for row in rows:
            self.check_row(row, where(row))
            yield row


def _texts(value: Any) -> Generator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def write_json(path: Path, document: Any) -> WrittenFile:
    """Write one indented JSON document; its rows count as one."""
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return written(path, 1)


def write_text(path: Path, text: str) -> WrittenFile:
    """Write a text; its rows are its lines."""
    path.write_text(text, "utf-8")
    return written(path, text.count("\n"))


def written(path: Path, rows: int) -> WrittenFile:
    """What the report of an export says about a file."""
    with path.open("rb") as file:
        return WrittenFile(rows, hashlib.file_digest(file, "sha256").hexdigest())
