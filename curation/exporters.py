"""Give environments away in the AWM release layout."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from curation.awm_layout import FILES, About, file_of, write_row, write_scenario_row
from curation.exports.folder import Privacy, WrittenFile, new_folder
from pipeline.catalog import Catalog, Version
from pipeline.errors import UserError
from pipeline.model import Part
from pipeline.parts import SOURCE_PARTS, read_tasks


def export_awm(catalog: Catalog, folder: Path, names: Sequence[str] | None = None) -> dict[str, WrittenFile]:
    """Write environments (all, or those named) to a new folder in the AWM layout; returns its files by name.

    Importing the folder gives the same contents back: see `curation.awm_layout` for the two additions to upstream's
    layout. Versions, authors and check results stay behind. Files without rows are not written, and the folder
    appears whole or not at all.

    Raises UserError where the folder exists and is not empty, cannot be written, an environment is unknown, or there
    is nothing to export.
    """
    names = catalog.names() if names is None else sorted({catalog.resolve(name) for name in names})
    if not names:
        raise UserError("There is nothing to export: the workspace is empty.")
    with new_folder(folder) as draft:
        return write_awm(catalog, draft, names)


def write_awm(
    catalog: Catalog, folder: Path, names: Sequence[str], privacy: Privacy | None = None
) -> dict[str, WrittenFile]:
    """Write environments into a folder that is there; returns its files by name.

    Raises UserError where an environment holds what `privacy` keeps in.
    """
    with ExitStack() as stack:
        files = {file.name: _File(stack.enter_context((folder / file.name).open("wb"))) for file in FILES}
        for name in names:
            for file, row in _rows(catalog, name):
                if privacy:
                    privacy.check_row(row, name)
                files[file].write(row)
    for name in [name for name, file in files.items() if not file.rows]:
        (folder / name).unlink()
    return {name: WrittenFile(file.rows, file.digest.hexdigest()) for name, file in files.items() if file.rows}


class _File:
    """A file being written, counted and hashed."""

    def __init__(self, stream: BinaryIO) -> None:
        self.rows = 0
        self.digest = hashlib.sha256()
        self._stream = stream

    def write(self, row: dict[str, Any]) -> None:
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        self.rows += 1
        self.digest.update(line)
        self._stream.write(line)


def _rows(catalog: Catalog, name: str) -> list[tuple[str, dict[str, Any]]]:
    """The rows of one environment, each with the name of its file."""
    summary = catalog.summary(name)
    about = About(summary.title, summary.origin, summary.domain, summary.now)
    current = {(version.part, version.slot): version for version in catalog.current(name)}
    contents = {key: _content(catalog, version) for key, version in current.items()}
    tasks = read_tasks(contents.get((Part.tasks, ""), []), [])
    scenario = current.pop((Part.scenario, ""), None)
    extra = catalog.extra(scenario) if scenario else {}  # noqa: S610 (takes it for Django's)
    rows = [(FILES[0].name, write_scenario_row(name, contents.get((Part.scenario, "")), extra, about))]
    for (part, slot), version in current.items():
        extra = catalog.extra(version)  # noqa: S610
        row = write_row(name, part, slot, contents[part, slot], extra, title=about.title, tasks=tasks)
        rows.append((file_of(part, slot).name, row))
    return rows


def _content(catalog: Catalog, version: Version) -> Any:
    text = catalog.content(version.sha)
    return text if version.part in SOURCE_PARTS else orjson.loads(text)
