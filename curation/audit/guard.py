"""Guards: code added to a verifier so that nothing may change beyond what a known solution changes.

Whatever a verifier looks at, it looks at little: unrelated damage passes. A guard compares all tables of both databases
and allows each no more than the solution did: so many rows made, removed and changed, in those columns. It is plain
source at the end of the verifier, for a person to read, adopt and edit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pprint import pformat
from typing import Any

from curation.audit.subject import Diff
from pipeline.model import Mode
from pipeline.runtime.verifier_worker import FUNCTIONS, meaning_of

Footprint = Mapping[str, Mapping[str, Any]]
"""By table: how many rows a solution adds, removes and changes, and the columns it changes."""

MARK = "# Guard: only what a known solution changes may change."
"""The first line of every guard."""

_GUARD = '''

{mark} Adopted from the audit of verifiers.
# To allow more, edit MAY_CHANGE: rows added, removed and changed by table, and the columns that may change.
MAY_CHANGE = {footprint}
_unguarded = {name}


def _changed_beyond(initial_path, final_path):
    """The tables in which more has changed than may."""
    import sqlite3

    def rows_of(path):
        db = sqlite3.connect(f"file:{{path}}?mode=ro", uri=True)
        names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'")
        found = {{}}
        for (name,) in names.fetchall():
            quoted = '"' + name.replace('"', '""') + '"'
            columns = db.execute(f"PRAGMA table_info({{quoted}})").fetchall()
            places = [place for place, column in enumerate(columns) if column[5]] or range(len(columns))
            rows, seen = {{}}, {{}}
            for row in db.execute(f"SELECT * FROM {{quoted}}").fetchall():
                key = tuple(row[place] for place in places)
                seen[key] = seen.get(key, 0) + 1
                rows[key, seen[key]] = row
            found[name] = [column[1] for column in columns], rows
        db.close()
        return found

    before, after = rows_of(initial_path), rows_of(final_path)
    beyond = []
    for table in sorted(before.keys() | after.keys()):
        columns, new = after.get(table, ([], {{}}))
        _, old = before.get(table, ([], {{}}))
        allowed = MAY_CHANGE.get(table, {{}})
        changed = [(old[key], new[key]) for key in old if key in new and old[key] != new[key]]
        touched = {{name for was, now in changed for name, a, b in zip(columns, was, now) if a != b}}
        if (
            len(new.keys() - old.keys()) > allowed.get("added", 0)
            or len(old.keys() - new.keys()) > allowed.get("removed", 0)
            or len(changed) > allowed.get("changed", 0)
            or touched - set(allowed.get("columns", ()))
        ):
            beyond.append(table)
    return beyond


def {name}({parameters}):
    beyond = _changed_beyond({initial}, {final})
{verdict}
'''
_CODE = """\
    if beyond:
        return {{"result": "others", "changed_beyond": beyond}}
    return _unguarded({arguments})"""
_SQL = """\
    evidence = _unguarded({arguments})
    evidence["changed_beyond"] = beyond
    if "holds" in evidence:
        evidence["holds"] = bool(evidence["holds"]) and not beyond
    return evidence"""


def footprint(solutions: Iterable[Diff]) -> Footprint:
    """What solutions of a task change, as far as a guard looks at it: the most that any of them does."""
    allowed: dict[str, dict[str, Any]] = {}
    for differences in solutions:
        for table, found in differences.items():
            here = allowed.setdefault(table, {"added": 0, "removed": 0, "changed": 0, "columns": []})
            for kind in ("added", "removed", "changed"):
                here[kind] = max(here[kind], len(found[kind]))
            columns = {column for row in found["changed"] for column in (*row["before"], *row["after"])}
            here["columns"] = sorted(columns.union(here["columns"]))
    return allowed


def guarded(code: str, mode: Mode, allowed: Footprint) -> str | None:
    """A verifier's source with a guard at its end, in place of one it has.

    None where the source is not Python or has no function of a usual name that could be guarded.
    """
    code = code.partition(f"\n\n{MARK}")[0]
    try:
        functions = [node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    own = {function.name: function for function in functions}
    named = [name for name in FUNCTIONS if name in own] or [name for name in own if name.startswith("verify_")]
    if not named:
        return None
    function = own[named[0]]
    arguments = function.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    names = [*positional, *(argument.arg for argument in arguments.kwonlyargs)]
    initial, final = _paths(names)
    given = [
        *positional,
        *([f"*{arguments.vararg.arg}"] if arguments.vararg else []),
        *(f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs),
        *([f"**{arguments.kwarg.arg}"] if arguments.kwarg else []),
    ]
    if initial is None or final is None:
        if arguments.vararg is None or names:
            return None
        initial, final = f"{arguments.vararg.arg}[0]", f"{arguments.vararg.arg}[1]"
    verdict = (_SQL if mode is Mode.sql else _CODE).format(arguments=", ".join(given))
    return (
        code.rstrip("\n")
        + "\n"
        + _GUARD.format(
            mark=MARK,
            footprint=pformat(dict(allowed), sort_dicts=True, width=100),
            name=function.name,
            parameters=ast.unparse(arguments),
            initial=initial,
            final=final,
            verdict=verdict,
        )
    )


def _paths(names: list[str]) -> tuple[str | None, str | None]:
    """Which parameters are the two databases, told as the runtime tells them."""
    wanted = {name: meaning_of(name) for name in names}
    found = {meaning: name for name, meaning in reversed(wanted.items()) if meaning}
    rest = [name for name, meaning in wanted.items() if meaning is None]
    for meaning in ("initial", "final"):
        if meaning not in found and rest:
            found[meaning] = rest.pop(0)
    return found.get("initial"), found.get("final")
