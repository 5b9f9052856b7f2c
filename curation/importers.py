"""Bring environments in: a folder in the AWM release layout, or the release itself from the Hugging Face hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from curation.awm_layout import FILES, About, LayoutFile, Row, RowFault, read_row
from curation.jsonl import Line, read_lines
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Mode, Part

BATCH_BYTES = 8 * 2**20
"""How much of a file goes into one transaction: what an interruption loses, and how long other writers wait."""

Progress = Callable[[str, int, int], None]
"""Called with a file's name and how many of how many bytes of all files have been read."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that could not be used, or not all of it; `line` counts from 1."""

    file: str
    line: int
    error: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A row for a part that an earlier row of the folder has already given; the earlier one counts.

    `titles` has both names as written where they differ: two scenarios whose names normalise to one.
    """

    file: str
    line: int
    scenario: str
    part: str
    task: int | None = None
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import found. `missing` pairs environments with the parts they still lack in the catalog."""

    files: dict[str, int]
    missing_files: list[str]
    environments: int
    tasks: int
    verifiers: dict[str, int]
    changed: int
    duplicates: list[Duplicate]
    malformed: list[Malformed]
    missing: list[tuple[str, tuple[Part, ...]]]

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON document."""
        return {
            "environments": self.environments,
            "tasks": self.tasks,
            "verifiers": self.verifiers,
            "duplicates": len(self.duplicates),
            "malformed": [asdict(fault) for fault in self.malformed],
            "missing": [{"scenario": name, "parts": list(parts)} for name, parts in self.missing],
            "changed": self.changed,
            "files": self.files,
            "missing_files": self.missing_files,
            "duplicate_rows": [asdict(row) for row in self.duplicates],
        }


def layout_files(folder: Path) -> list[tuple[LayoutFile, Path]]:
    """The files of the AWM layout in a folder, in the order they are read, plain before gzipped.

    Raises UserError where it is not a folder or has none of them.
    """
    if not folder.is_dir():
        hint = "give the folder it is in" if folder.exists() else "check the path"
        raise UserError(f"{folder} is not a folder: {hint}.")
    paths = [(file, folder / (file.name + end)) for file in FILES for end in ("", ".gz")]
    found = [(file, path) for file, path in paths if path.exists()]
    if not found:
        state = "has none of the files of the AWM layout" if any(folder.iterdir()) else "is empty"
        below = next((path.parent for path in sorted(folder.glob("*/gen_*.jsonl*"))), None)
        hint = (
            f"Did you mean {below}?" if below else "It should hold gen_scenario.jsonl, gen_tasks.jsonl, gen_db.jsonl, …"
        )
        raise UserError(f"{folder} {state}. {hint}")
    return found


def import_awm(
    catalog: Catalog,
    folder: Path,
    *,
    source: str | None = None,
    now: datetime | None = None,
    progress: Progress | None = None,
) -> ImportReport:
    """Read a folder in the AWM layout into the catalog; importing it again changes nothing.

    Rows are joined by normalised scenario name and the first of duplicates counts. What is missing or malformed is
    reported, not raised. `source` is what the versions name as their author (by default the folder's name); `now`
    is the pinned time to give the environments. Each batch of `BATCH_BYTES` is kept once read, so that an
    interrupted import goes on when repeated.

    Raises UserError where nothing could be imported.
    """
    found = layout_files(folder)
    intake = _Intake(catalog, Author(AuthorKind.imported, source or folder.resolve().name), now)
    total, done = sum(path.stat().st_size for _, path in found), 0
    for file, path in found:
        end = done + path.stat().st_size
        for batch in _batches(intake.lines(path)):
            with catalog.bulk():
                for line in batch:
                    intake.take(file, path.name, line)
            done = min(done + sum(line.size for line in batch), end)
            if progress:
                progress(path.name, done, total)
        done = end
    if not intake.known:
        why = "; ".join(f"{at.file}:{at.line}: {at.error}" for at in intake.malformed[:3]) or "its files are empty"
        raise UserError(f"Nothing in {folder} could be imported: {why}.")
    return intake.report([file for file, _ in found])


def download(repository: str) -> Path:
    """Fetch a dataset in the AWM layout from the Hugging Face hub, like "Snowflake/AgentWorldModel-1K".

    Returns the folder it is in; what was downloaded before is not fetched again. Raises UserError where the
    `huggingface_hub` package is missing, the hub has no such dataset, or it cannot be reached.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError, XetDownloadError
    except ModuleNotFoundError:
        raise UserError("Importing from the hub needs huggingface_hub: pip install 'awm-studio[hf]'.") from None
    patterns = [file.name + end for file in FILES for end in ("", ".gz")]
    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=patterns))
    except HFValidationError:
        raise UserError(f"{repository!r} is not the name of a dataset: write hf:OWNER/NAME.") from None
    except HfHubHTTPError as error:
        raise UserError(f"The hub would not give {repository}: {_first_line(error)}") from None
    except (HTTPError, XetDownloadError, OSError) as error:
        raise UserError(
            f"{repository} could not be downloaded ({_first_line(error)}): check the network, or download the dataset "
            "elsewhere and import its folder."
        ) from None


class _Intake:
    """What has been read of a folder so far, and the way of a line into the catalog."""

    def __init__(self, catalog: Catalog, author: Author, now: datetime | None) -> None:
        self.catalog, self.author, self.now = catalog, author, now
        self.known: dict[str, About] = {}
        self.malformed: list[Malformed] = []
        self._rows: Counter[str] = Counter()
        self._first: dict[tuple[str, Part, str], str] = {}
        self._duplicates: list[Duplicate] = []
        self._changed = 0
        self._newest = catalog.newest_version()
        self._there = set(catalog.names())

    def lines(self, path: Path) -> Iterator[Line]:
        """A file's lines; one that cannot be opened, or is no file, counts as malformed at line 0."""
        if not path.is_file():  # reading a named pipe would wait for a writer for ever
            self.malformed.append(Malformed(path.name, 0, "is not a file: put a plain file there"))
            return
        try:
            yield from read_lines(path)
        except OSError as error:
            self.malformed.append(Malformed(path.name, 0, f"cannot be read: {error.strerror}"))

    def take(self, file: LayoutFile, path: str, line: Line) -> None:
        """Put what a line holds into the catalog, or note why not."""
        if line.fault:
            self.malformed.append(Malformed(path, line.number, line.fault))
            if line.value is None:
                return
        try:
            row = read_row(file, line.value, self.known)
        except RowFault as fault:
            self.malformed.append(Malformed(path, line.number, str(fault)))
            return
        self._rows[path] += 1
        self.malformed += [Malformed(path, line.number, problem) for problem in row.problems]
        key = (row.name, row.part, row.slot)
        if key in self._first:
            titles = (self._first[key], row.written) if self._first[key] != row.written else ()
            task = int(row.slot.partition("/")[0]) if row.slot else None
            self._duplicates.append(Duplicate(path, line.number, row.name, row.part, task, titles))
            return
        self._first[key] = row.written
        self.known[row.name] = row.about
        if row.content is not None:
            self._put(row, row.content)

    def _put(self, row: Row, content: str) -> None:
        new = row.name not in self._there
        self._there.add(row.name)
        version = self.catalog.put(
            row.name,
            row.part,
            content,
            slot=row.slot,
            author=self.author,
            extra=row.extra,
            title=row.about.title if new else None,
            origin=row.about.origin if new else None,
            domain=row.about.domain if new else None,
            now=self.now or (row.about.now if new else None),
            revive=False,
        )
        if version.id > self._newest:
            self._changed += 1
            if row.part is Part.scenario and not new:
                self.catalog.describe(row.name, title=row.about.title)

    def report(self, files: Iterable[LayoutFile]) -> ImportReport:
        """What was found, once all files are read."""
        present = {file.name for file in files}
        modes = Counter(slot.partition("/")[2] for _, part, slot in self._first if part is Part.verifier)
        return ImportReport(
            files=dict(self._rows),
            missing_files=[file.name for file in FILES if file.part is not Part.solution and file.name not in present],
            environments=len(self.known),
            tasks=sum(len(about.tasks) for about in self.known.values()),
            verifiers={mode.value: modes[mode] for mode in Mode},
            changed=self._changed,
            duplicates=self._duplicates,
            malformed=self.malformed,
            missing=[(s.name, s.missing) for s in self.catalog.summaries() if s.missing and s.name in self.known],
        )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    batch: list[Line] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += line.size
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
