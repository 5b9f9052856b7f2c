"""The modules a generated program sees in place of the real ones, through its own `__import__`.

A program's source is run as it is; what has to differ is put in its way when it imports: time and randomness follow
the clock, engines reach the instance's database, servers do not start. Libraries keep the real modules.
"""

from __future__ import annotations

import builtins
import calendar
import datetime
import importlib
import os
import random
import secrets
import sys
import time
import types
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import core_schema

from pipeline.runtime.clock import Clock

DATABASE_PATH = "sqlite:///instance.db"
"""What a program finds in the environment variable DATABASE_PATH. No such file is ever made."""


def program_builtins(replacements: Mapping[str, types.ModuleType]) -> dict[str, Any]:
    """Builtins whose `__import__` gives the replacements, by dotted module name."""
    real_import = builtins.__import__

    def program_import(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: tuple[str, ...] = (),
        level: int = 0,
    ) -> types.ModuleType:
        if level == 0:
            wanted = name if fromlist else name.partition(".")[0]
            module = replacements.get(wanted)
            if module is not None:
                if wanted != name or not all(item == "*" or hasattr(module, item) for item in fromlist or ()):
                    real_import(name, globals, locals, fromlist, level)  # submodules are imported, errors are raised
                return module
        return real_import(name, globals, locals, fromlist, level)

    return {**vars(builtins), "__import__": program_import}


def replacement(name: str, **attributes: Any) -> types.ModuleType:
    """A module with the given attributes that has everything else from the real module of that name.

    The real module is looked up only when something else is asked for, so it need not exist.
    """
    module = types.ModuleType(name)

    def real_attribute(attribute: str) -> Any:
        real = sys.modules.get(name) or importlib.import_module(name)
        if attribute == "__all__" and not hasattr(real, attribute):  # `import *` would look no further than here
            return [public for public in vars(real) if not public.startswith("_")]
        return getattr(real, attribute)

    vars(module).update(attributes, __getattr__=real_attribute)
    return module


def clock_modules(clock: Clock) -> dict[str, types.ModuleType]:
    """`datetime`, `time`, `random`, `secrets`, `uuid` and `os` as the clock would have them."""
    return {
        "datetime": _datetime_module(clock),
        "time": _time_module(clock),
        "random": _random_module(clock),
        "secrets": _secrets_module(clock),
        "uuid": _uuid_module(clock),
        "os": _os_module(clock),
    }


class _StandsFor(type):
    """The class of pinned classes: each is equal to the real class it stands for, and means it in isinstance.

    So SQLAlchemy's and pydantic's tables of types, which have the real classes, take the pinned ones. Subclasses that
    a program makes stand for themselves.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        real = cls.__dict__.get("_real")
        return isinstance(instance, real) if real else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real = cls.__dict__.get("_real")
        return issubclass(subclass, real) if real else super().__subclasscheck__(subclass)

    def __eq__(cls, other: object) -> bool:
        return other is cls or (other is not None and other is cls.__dict__.get("_real"))

    def __hash__(cls) -> int:
        return hash(cls.__dict__["_real"]) if "_real" in cls.__dict__ else super().__hash__()


def _datetime_module(clock: Clock) -> types.ModuleType:
    class PinnedDateTime(datetime.datetime, metaclass=_StandsFor):
        _real = datetime.datetime

        # Gives instances of the real class, so that everything downstream sees nothing unusual.
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return datetime.datetime.__new__(cls.__dict__.get("_real", cls), *args, **kwargs)

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return clock.now if tz is None else clock.now.replace(tzinfo=datetime.UTC).astimezone(tz)

        @classmethod
        def utcnow(cls) -> Any:
            return clock.now

        @classmethod
        def today(cls) -> Any:
            return clock.now

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
            return handler(datetime.datetime)

    class PinnedDate(datetime.date, metaclass=_StandsFor):
        _real = datetime.date

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return datetime.date.__new__(cls.__dict__.get("_real", cls), *args, **kwargs)

        @classmethod
        def today(cls) -> Any:
            return clock.now.date()

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
            return handler(datetime.date)

    for pinned, real in ((PinnedDateTime, datetime.datetime), (PinnedDate, datetime.date)):
        pinned.__name__ = pinned.__qualname__ = real.__name__
        pinned.__module__ = "datetime"
    return replacement("datetime", datetime=PinnedDateTime, date=PinnedDate)


def _time_module(clock: Clock) -> types.ModuleType:
    def moment(seconds: float | None = None) -> time.struct_time:
        return time.gmtime(clock.timestamp if seconds is None else seconds)

    def nanoseconds() -> int:
        return int(clock.timestamp * 1_000_000_000)

    seconds_since = dict.fromkeys(
        ("time", "monotonic", "perf_counter", "process_time", "thread_time"), lambda: clock.timestamp
    )
    return replacement(
        "time",
        **seconds_since,
        **{f"{name}_ns": nanoseconds for name in seconds_since},
        gmtime=moment,
        localtime=moment,  # instances live in UTC
        mktime=calendar.timegm,
        strftime=lambda form, t=None: time.strftime(form, moment() if t is None else t),
        asctime=lambda t=None: time.asctime(moment() if t is None else t),
        ctime=lambda seconds=None: time.asctime(moment(seconds)),
        sleep=lambda seconds: None,  # nothing that happens in a call depends on how long it takes
    )


def _random_module(clock: Clock) -> types.ModuleType:
    shared = clock.random

    class PinnedRandom(random.Random):
        def seed(self, a: Any = None, version: int = 2) -> None:
            super().seed(shared.getrandbits(128) if a is None else a, version)

    class PinnedSystemRandom(PinnedRandom):
        def seed(self, *args: Any, **kwargs: Any) -> None:
            super().seed(None)

    PinnedRandom.__name__, PinnedSystemRandom.__name__ = "Random", "SystemRandom"
    functions = {
        name: getattr(shared, name)
        for name, value in vars(random).items()
        if isinstance(getattr(value, "__self__", None), random.Random)
    }
    return replacement("random", **functions, Random=PinnedRandom, SystemRandom=PinnedSystemRandom)


def _secrets_module(clock: Clock) -> types.ModuleType:
    shared = clock.random

    def token_bytes(nbytes: int | None = None) -> bytes:
        return shared.randbytes(secrets.DEFAULT_ENTROPY if nbytes is None else nbytes)

    def token_urlsafe(nbytes: int | None = None) -> str:
        import base64

        return base64.urlsafe_b64encode(token_bytes(nbytes)).rstrip(b"=").decode("ascii")

    return replacement(
        "secrets",
        token_bytes=token_bytes,
        token_hex=lambda nbytes=None: token_bytes(nbytes).hex(),
        token_urlsafe=token_urlsafe,
        randbits=shared.getrandbits,
        randbelow=shared.randrange,
        choice=shared.choice,
    )


def _uuid_module(clock: Clock) -> types.ModuleType:
    def drawn(version: int) -> Callable[..., uuid.UUID]:
        def make(*_: Any, **__: Any) -> uuid.UUID:
            bits = clock.random.getrandbits(128)
            return uuid.UUID(int=bits & ~(0xF000 << 64) & ~(0xC000 << 48) | (version << 76) | (0x8000 << 48))

        return make

    names = {"uuid1": 1, "uuid4": 4, "uuid6": 6, "uuid7": 7, "uuid8": 8}
    return replacement("uuid", **{name: drawn(version) for name, version in names.items() if hasattr(uuid, name)})


def _os_module(clock: Clock) -> types.ModuleType:
    environ = {**os.environ, "DATABASE_PATH": DATABASE_PATH}
    return replacement("os", urandom=clock.random.randbytes, environ=environ, getenv=environ.get)


def server_modules() -> dict[str, types.ModuleType]:
    """`uvicorn` whose servers do not start: the program is called in process."""

    class Server:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def run(self, *_: Any, **__: Any) -> None:
            pass

    return {"uvicorn": replacement("uvicorn", run=lambda *_, **__: None, Server=Server, Config=Server)}


def database_modules(
    create_engine: Callable[..., Any], connect: Callable[..., Any], refuse_async: Callable[..., Any]
) -> dict[str, types.ModuleType]:
    """`sqlalchemy` (with its other names) and `sqlite3` whose connections reach the instance's database."""
    import sqlalchemy

    def engine_from_config(configuration: Mapping[str, Any], prefix: str = "sqlalchemy.", **options: Any) -> Any:
        return create_engine(configuration.get(f"{prefix}url", DATABASE_PATH), **options)

    makers = {"create_engine": create_engine, "engine_from_config": engine_from_config}
    asynchronous = {"create_async_engine": refuse_async, "async_engine_from_config": refuse_async}
    modules = {
        "sqlalchemy.engine.create": replacement("sqlalchemy.engine.create", **makers),
        "sqlalchemy.future": replacement("sqlalchemy.future", create_engine=create_engine),
        "sqlalchemy.ext.asyncio": replacement("sqlalchemy.ext.asyncio", **asynchronous),
        "sqlalchemy.ext.asyncio.engine": replacement("sqlalchemy.ext.asyncio.engine", **asynchronous),
        "sqlmodel": replacement("sqlmodel", create_engine=create_engine),
        "sqlite3": replacement("sqlite3", connect=connect),
        "sqlite3.dbapi2": replacement("sqlite3.dbapi2", connect=connect),
    }
    modules["sqlalchemy.engine"] = replacement(
        "sqlalchemy.engine", **makers, create=modules["sqlalchemy.engine.create"]
    )
    modules["sqlalchemy"] = replacement(
        "sqlalchemy", **makers, engine=modules["sqlalchemy.engine"], future=modules["sqlalchemy.future"]
    )
    modules["sqlalchemy"].__path__ = sqlalchemy.__path__  # it is a package: `import sqlalchemy.orm` looks here
    return modules
