"""State that a program keeps in its module instead of its database: counters, caches, sessions in a dict.

Instances share the module, so such state would leak from one to the other. It is found by looking at what the module
holds and at what its functions change, and every instance's copy is carried along with its database.
"""

from __future__ import annotations

import ast
import collections
import enum
import functools
import io
import itertools
import pickle
import random
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from sqlalchemy.orm import DeclarativeBase

from pipeline.findings import Finding

_CONTAINERS = (dict, list, set, bytearray, collections.deque, random.Random, itertools.count)
_CHANGING_METHODS = frozenset(
    {
        *("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard", "popitem"),
        *("sort", "reverse", "appendleft", "popleft", "extendleft", "rotate", "subtract", "difference_update", "seed"),
    }
)


class ModuleState:
    """What a program's module holds besides code, to be saved after a call and restored before the next.

    `save` gives bytes (None if there is nothing to carry), equal for equal states; `restore` puts them back.
    """

    def __init__(self, module: types.ModuleType, app_state: dict[str, Any], tree: ast.Module) -> None:
        rebound = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        places = list(_places(module, app_state, rebound))
        changes = {change.name: change for change in _changes(tree)} if places else {}
        self._caches = [value for value in _values(module) if isinstance(value, functools._lru_cache_wrapper)]
        self._places: list[_Place] = []
        findings = []
        for place in places:
            change = changes.get(place.name)
            carried = _pickled([place.value]) is not None
            if carried:
                self._places.append(place)
            if change is not None and (not carried or place.is_changed_by(change)):
                findings.append(_finding(place.name, change, carried=carried))
        self.findings: tuple[Finding, ...] = tuple(findings)
        self._held = _pickled([place.value for place in self._places]) if self._places else None

    def save(self) -> bytes | None:
        """The module's state now. What a call has put there that cannot be copied is forgotten again."""
        if not self._places:
            return None
        current = _pickled([place.value for place in self._places])
        if current is None:
            for place, before in zip(self._places, _unpickled(self._held), strict=True):
                if _pickled([place.value]) is None:
                    place.put(before)
            current = _pickled([place.value for place in self._places])
        if current != self._held:
            self._held = current
        return self._held

    def restore(self, saved: bytes | None) -> None:
        """Make `saved`, which `save` gave, the module's state. Cached results of functions are forgotten."""
        for cache in self._caches:
            cache.cache_clear()
        if saved is None or saved is self._held:
            return
        for place, value in zip(self._places, _unpickled(saved), strict=True):
            place.put(value)
        self._held = saved

    def discard(self) -> None:
        """Say that the module's state is not one that `save` gave or will be asked for: a call was cut off."""
        self._held = None


class _Absent:
    """The value of a name that is not there: a function assigns it first (`global`)."""


@dataclass(frozen=True)
class _Place:
    """Where a value that can change is kept: under a name of the module, of one of its classes, of the app's state."""

    name: str
    owner: Any
    key: str

    @property
    def value(self) -> Any:
        """The value that is there now."""
        return (self.owner if isinstance(self.owner, dict) else vars(self.owner)).get(self.key, _Absent)

    def is_changed_by(self, change: _Change) -> bool:
        """Whether a change of the code is one of what is kept here, not of something behind it."""
        return change.rebound or change.inside or isinstance(self.value, _CONTAINERS)

    def put(self, value: Any) -> None:
        """Put a value there; into the object that is there already, if it can be, since others may refer to it."""
        if value is _Absent:
            self.owner.pop(self.key, None)
        elif not _refill(self.value, value):
            if isinstance(self.owner, dict):
                self.owner[self.key] = value
            else:
                setattr(self.owner, self.key, value)


def _refill(target: Any, value: Any) -> bool:
    if type(target) is not type(value) or isinstance(target, itertools.count):
        return False
    if isinstance(target, dict | set):
        target.clear()
        target.update(value)
    elif isinstance(target, list | bytearray):
        target[:] = value
    elif isinstance(target, collections.deque):
        target.clear()
        target.extend(value)
    elif isinstance(target, random.Random):
        target.setstate(value.getstate())
    elif hasattr(target, "__dict__"):
        vars(target).clear()
        vars(target).update(vars(value))
    else:
        return False
    return True


def _values(module: types.ModuleType) -> Iterator[Any]:
    for value in list(vars(module).values()):
        yield value
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield from vars(value).values()


def _places(module: types.ModuleType, app_state: dict[str, Any], rebound: set[str]) -> Iterator[_Place]:
    names = vars(module)
    yield from (_Place(name, names, name) for name in sorted(rebound - names.keys()))
    for name, value in list(names.items()):
        if name.startswith("__"):
            continue
        if isinstance(value, _CONTAINERS) or name in rebound or _is_own_object(value, module):
            yield _Place(name, names, name)
        elif isinstance(value, type) and value.__module__ == module.__name__ and not _is_model(value):
            for key, member in list(vars(value).items()):
                if isinstance(member, _CONTAINERS) and not key.startswith("__"):
                    yield _Place(name, value, key)
    if app_state:
        yield _Place("app", {"state": app_state}, "state")


def _is_own_object(value: Any, module: types.ModuleType) -> bool:
    kind = type(value)
    return kind.__module__ == module.__name__ and not _is_model(kind) and not isinstance(value, type)


def _is_model(kind: type) -> bool:
    return issubclass(kind, BaseModel | DeclarativeBase | enum.Enum) or hasattr(kind, "__mapper__")


def _pickled(values: list[Any]) -> bytes | None:
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=5).dump(values)
    except Exception:  # whatever an object's own reduction raises: it cannot be carried
        return None
    return buffer.getvalue()


def _unpickled(saved: bytes | None) -> list[Any]:
    return [] if saved is None else pickle.loads(saved)  # noqa: S301 (made by _pickled in this process)


class _Pickler(pickle.Pickler):
    """Pickles random generators of whatever class, and counters, which newer Pythons refuse to pickle."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, random.Random):
            return _random_with, (type(value).__name__, value.getstate())
        if isinstance(value, itertools.count):
            return itertools.count, tuple(ast.literal_eval(f"({repr(value).removeprefix('count(')[:-1]},)"))
        return NotImplemented


def _random_with(_: str, state: Any) -> random.Random:
    generator = random.Random()  # noqa: S311
    generator.setstate(state)
    return generator


@dataclass(frozen=True)
class _Change:
    """A place in a function that changes something outside it.

    `rebound`: the name itself is assigned (`global`); `inside`: something below it is (`store.items.append`).
    """

    name: str
    line: int
    text: str
    rebound: bool = False
    inside: bool = False


def _changes(tree: ast.Module) -> Iterator[_Change]:
    """Where functions change what names of the module refer to, one for each name."""
    seen: dict[str, _Change] = {}
    self_changing = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(_changes_self(member) for member in node.body)
    }
    objects = {
        target.id: node.value.func.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            own = _local_names(function)
            for node in ast.walk(function):
                for change in _changes_of(node, objects, self_changing):
                    if change.rebound or change.name not in own:
                        seen.setdefault(change.name, change)
    return iter(seen.values())


def _changes_self(member: ast.stmt) -> bool:
    if not isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) or member.name == "__init__":
        return False
    return any(change.name == "self" for node in ast.walk(member) for change in _changes_of(node, {}, set()))


def _changes_of(node: ast.AST, objects: dict[str, str], self_changing: set[str]) -> Iterator[_Change]:
    def change(target: ast.AST, **kind: bool) -> Iterator[_Change]:
        name = _root(target)
        if name is not None:
            yield _Change(name, getattr(node, "lineno", 0), ast.unparse(node), **kind)

    if isinstance(node, ast.Global):
        for name in node.names:
            yield _Change(name, node.lineno, ast.unparse(node), rebound=True)
    elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        yield from change(node.value, inside=True)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name) and objects.get(node.func.value.id) in self_changing:
            yield from change(node.func.value, inside=True)
        elif node.func.attr in _CHANGING_METHODS:
            yield from change(node.func.value, inside=isinstance(node.func.value, ast.Attribute | ast.Subscript))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next" and node.args:
        yield from change(node.args[0])


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {argument.arg for argument in every if argument is not None}
    shared: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            shared.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names - shared


def _finding(name: str, change: _Change, *, carried: bool) -> Finding:
    return Finding(
        code="module_state",
        severity="warn" if carried else "error",
        where=f"code:{change.line}",
        message=f"`{name}` keeps state outside the database"
        + ("; every instance gets its own copy" if carried else " and cannot be copied: instances share it"),
        evidence=re.sub(r"\s+", " ", change.text)[:200],
        remedy="keep it in a table: snapshots, diffs and verifiers see only the database",
    )
