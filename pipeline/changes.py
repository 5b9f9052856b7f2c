"""How a catalog changes: a part's new version, and the scenario's columns that follow from it, in one transaction.

The statements are built once. Building them for each of the 26,000 parts of an AWM release took four fifths of its
import.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import orjson
from sqlalchemy import Connection, Insert, LargeBinary, bindparam, exists, insert, select, update

from pipeline.catalog_tables import blobs, scenarios, versions
from pipeline.errors import UserError
from pipeline.model import DEFAULT_NOW, Author, Cost, Environment, Mode, Part, content_hash, normalise
from pipeline.parts import canonical, dumps, read_view
from pipeline.records import Version, read_version

COMPRESSION = 6
"""zlib's usual level. Level 1 imports an AWM release in 16 s instead of 18 and makes real contents 15 % larger."""

NAME_LIMIT = 200
"""The longest normalised scenario name, in characters: it names files (255 bytes at most) and is a key."""

_SCENARIO = select(scenarios).where(scenarios.c.name == bindparam("scenario")).with_for_update()
_INTRODUCE = insert(scenarios)
_DESCRIBE = update(scenarios).where(scenarios.c.name == bindparam("scenario"))
_HERE = (
    versions.c.scenario == bindparam("its_scenario"),
    versions.c.part == bindparam("its_part"),
    versions.c.slot == bindparam("its_slot"),
)
_EARLIER = select(versions).where(*_HERE).order_by(versions.c.number)
_RETIRE = update(versions).where(*_HERE, versions.c.current).values(current=False)
_ADD = insert(versions)
_STORE = insert(blobs).from_select(
    ["sha", "data"],
    select(bindparam("key", type_=blobs.c.sha.type), bindparam("data", type_=LargeBinary())).where(
        ~exists().where(blobs.c.sha == bindparam("key"))
    ),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A content for a part, with what goes into its version: see `Catalog.put`."""

    name: str
    part: Part
    slot: str
    content: str
    extra: Mapping[str, Any]
    author: Author
    parents: Sequence[int]
    cost: Cost | None


def put_version(connection: Connection, change: Change, about: Mapping[str, str | None], *, revive: bool) -> Version:
    """Make the version, unless the part has the content already; `about` are columns of the scenario to set.

    Raises UserError where the name or the content cannot be taken.
    """
    content = canonical(change.part, change.content)
    _require_name(change.name, change.part, content)
    extra = dumps(dict(sorted(change.extra.items()))) if change.extra else None
    sha, extra_sha = content_hash(content), content_hash(extra) if extra else None

    scenario = connection.execute(_SCENARIO, {"scenario": change.name}).one_or_none()
    if scenario is None:
        connection.execute(_INTRODUCE, _new_scenario(change) | _given(about))
        scenario = connection.execute(_SCENARIO, {"scenario": change.name}).one()
    here = {"its_scenario": change.name, "its_part": change.part, "its_slot": change.slot}
    earlier = connection.execute(_EARLIER, here).all()
    for row in reversed(earlier[-1:] if revive else earlier):
        if (row.sha, row.extra_sha) == (sha, extra_sha):
            update_scenario(connection, scenario, _given(about))
            return read_version(row)

    _store(connection, {sha: content} | ({extra_sha: extra} if extra_sha and extra else {}))
    if earlier:
        connection.execute(_RETIRE, here)
    version = _new_version(change, len(earlier) + 1, sha, extra_sha)
    key = add_row(connection, _ADD, version)
    counts = _counts(scenario, change.part, change.slot, content, first=not earlier)
    update_scenario(connection, scenario, _given(about) | counts | _stale(scenario, change.part))
    return read_version(SimpleNamespace(id=key, **version))


def update_scenario(connection: Connection, scenario: Any, values: Mapping[str, Any]) -> None:
    """Set columns of a scenario, given as its row. Another pinned time makes its check and its audit stale."""
    changed = {key: value for key, value in values.items() if scenario._mapping[key] != value}
    if "now" in changed:
        changed |= _stale(scenario)
    if changed:
        connection.execute(_DESCRIBE, {"scenario": scenario.name, **changed})


def add_row(connection: Connection, statement: Insert, values: Mapping[str, Any]) -> int:
    """Insert one row and return the id that the database has given it."""
    key = connection.execute(statement, values).inserted_primary_key
    assert key is not None  # it is None only after inserting many rows
    return key[0]


def unpack(data: bytes) -> str:
    """The text of a blob. Raises UserError where its bytes have been damaged."""
    try:
        return zlib.decompress(data).decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError):
        raise UserError("The catalog is damaged; restore it from a copy, or import into a new workspace.") from None


def clock() -> str:
    """The time as the catalog keeps it."""
    return datetime.now(UTC).isoformat()


def _stale(scenario: Any, part: str = "") -> dict[str, str]:
    """What was found out about a scenario holds no more; of solutions, a check says nothing."""
    columns = ("audit",) if part == Part.solution else ("check_status", "audit")
    return {column: "stale" for column in columns if scenario._mapping[column]}


def _given(about: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in about.items() if value is not None}


def _new_scenario(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "title": change.name,
        "origin": change.author.kind.value,
        "now": DEFAULT_NOW.isoformat(),
        "code_verifiers": 0,
        "sql_verifiers": 0,
        "missing": ",".join(Environment(change.name).missing),
    }


def _new_version(change: Change, number: int, sha: str, extra_sha: str | None) -> dict[str, Any]:
    cost = change.cost
    return {
        "scenario": change.name,
        "part": change.part,
        "slot": change.slot,
        "number": number,
        "current": True,
        "sha": sha,
        "extra_sha": extra_sha,
        "author_kind": change.author.kind,
        "author": change.author.name,
        "created_at": clock(),
        "parents": dumps(list(change.parents)),
        "tokens_in": cost and cost.tokens_in,
        "tokens_out": cost and cost.tokens_out,
        "usd": cost and cost.usd,
        "seconds": cost and cost.seconds,
    }


def _counts(scenario: Any, part: Part, slot: str, content: str, *, first: bool) -> dict[str, Any]:
    """The columns that `Catalog.summaries` reads and a part's new content decides."""
    view = Environment(scenario.name, **read_view({(part, slot): content}))
    missing = {Part(word) for word in scenario.missing.split(",") if word} - {part} | ({part} & set(view.missing))
    counts: dict[str, Any] = {"missing": ",".join(part for part in Part if part in missing)}
    match part:
        case Part.schema:
            counts["tables"] = len(view.schema)
        case Part.sample:
            counts["rows"] = sum(len(table.inserts) for table in view.sample)
        case Part.spec:
            counts["tools"] = len(view.operations)
        case Part.tasks:
            counts["tasks"] = len(view.tasks)
        case Part.verifier if first:
            column = "code_verifiers" if view.verifiers[0].mode is Mode.code else "sql_verifiers"
            counts[column] = scenario._mapping[column] + 1
    return counts


def _store(connection: Connection, texts: Mapping[str, str]) -> None:
    rows = [
        {"key": sha, "data": zlib.compress(text.encode("utf-8", "surrogatepass"), COMPRESSION)}
        for sha, text in texts.items()
    ]
    connection.execute(_STORE, rows)


def _require_name(name: str, part: Part, content: str) -> None:
    if not name or normalise(name) != name or len(name) > NAME_LIMIT:
        raise UserError(
            f"{name[:80]!r} is not a scenario name: 1 to {NAME_LIMIT} characters of a-z, 0-9 and single underscores."
        )
    if part is Part.scenario:
        title = orjson.loads(content).get("name")
        if not isinstance(title, str) or normalise(title) != name:
            raise UserError(
                f"The scenario's name {title!r} does not normalise to {name}: its other parts would be lost."
            )
