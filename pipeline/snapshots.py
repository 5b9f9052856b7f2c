"""The built databases of a workspace: one SQLite file an environment, kept until the environment changes.

`NAME.db` lies in the workspace's `databases` folder beside `NAME.json`, which says what the file was built from and
what its bytes hash to. Both are compared before the file is used, so a file that was cut short, edited, or written
by another process for another version of the environment is built again instead of shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.model import Environment
    from pipeline.runtime.host import Host
    from pipeline.workspace import Workspace


def snapshot_file(workspace: Workspace, env: Environment, host: Host) -> Path:
    """The file with the database that an environment's DDL and rows make, built only if there is no current one.

    The environment's code is not run, so tables that only it would add are not in the file. Statements that fail are
    left out, as in every build; the checks report them. Raises UserError if it cannot be built or written.
    """
    path = workspace.databases / f"{env.name}.db"
    key = snapshot_key(env)
    if not _is_current(path, key):
        _write(path, _initial(env, host), key)
    return path


def _initial(env: Environment, host: Host) -> bytes:
    """What instances start with; where the code does not load and none can start, the database as it is declared."""
    from pipeline.runtime.host import LoadFailed

    try:
        snapshot, _ = host.initial(env)
    except LoadFailed:
        snapshot = host.build(env).snapshot
    return snapshot


def snapshot_key(env: Environment) -> str:
    """What a snapshot depends on, as a sha256 hex digest: DDL, rows, code, the pinned time, and our own version."""
    made_from = {
        "schema": [asdict(table) for table in env.schema],
        "sample": [asdict(table) for table in env.sample],
        "code": env.code,
        "now": env.now.isoformat(),
        "version": version("awm-studio"),
    }
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()


def _is_current(path: Path, key: str) -> bool:
    try:
        facts = json.loads(path.with_suffix(".json").read_bytes())
        return facts == {"key": key, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    except (OSError, ValueError):
        return False


def _write(path: Path, snapshot: bytes, key: str) -> None:
    facts = {"key": key, "sha256": hashlib.sha256(snapshot).hexdigest()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, snapshot)
        replace_file(path.with_suffix(".json"), json.dumps(facts).encode())
    except OSError as error:
        raise UserError(
            f"{path} cannot be written: {error.strerror or error}; free some space there or make it writable."
        ) from error


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part. Raises OSError."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
