"""A program in its worker, and the instances that callers hold.

A worker keeps states (immutable databases) by id; an instance is the id of its state, its tick, and the journal of
the calls that led there. That is all it takes to fork it, reset it, or bring it back when its worker has died.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from pipeline.errors import UserError
from pipeline.runtime import wire
from pipeline.runtime.build import Build
from pipeline.runtime.launcher import Worker, WorkerLost
from pipeline.runtime.limits import Limits
from pipeline.runtime.loading import Loaded
from pipeline.runtime.replies import CallError, Reply, server_error_text
from pipeline.runtime.rpc import Garbled, Message
from pipeline.runtime.transitions import Situation, TransitionCache

T = TypeVar("T")

TEMPLATE = 0
"""The id of a program's first state; workers keep it for good."""
INTERRUPTED = 499
"""The status of a call that its caller gave up: nginx's, since HTTP has none."""
SQLITE_HEADER = b"SQLite format 3\0"


class HostedProgram:
    """One environment's program in a worker of its own. A context manager; safe to use from threads.

    `build` is None where the program was given its snapshot. `findings` are what loading it brought to light, and
    `tables_added` the tables its own code made that the DDL lacks.
    """

    def __init__(
        self,
        name: str,
        worker: Worker,
        loaded: Loaded,
        build: Build | None,
        *,
        reload: Callable[[], Worker],
        on_close: Callable[[HostedProgram], None],
        limits: Limits,
        cache_bytes: int,
    ) -> None:
        self.name = name
        self.tools = loaded.tools
        self.build = build
        self.findings = loaded.findings
        self.template = loaded.template
        self.tables_added = loaded.tables_added
        self._reload = reload
        self._on_close = on_close
        self._worker = worker
        self._limits = limits
        self._cache = TransitionCache(cache_bytes)
        self._lock = threading.Lock()
        self._generation = 0
        self._references: Counter[int] = Counter()
        self._unused: set[int] = set()
        self._abandoned: deque[tuple[int, int]] = deque()
        self._caller: ThreadPoolExecutor | None = None
        self._closed = False

    def instance(self) -> Instance:
        """A new instance in the initial state. Costs nothing until its first call."""
        return Instance(self)

    def stats(self) -> dict[str, Any]:
        """What the worker uses: its pid, memory (`rss_bytes`), states and their bytes; and the cache's figures."""
        import psutil

        with self._lock:
            self._revive()
            known = self._ask({"op": "stats"}, timeout_s=self._limits.load_timeout_s, read=wire.read_stats)
            memory = psutil.Process(self._worker.pid).memory_info().rss
        cache = {"entries": len(self._cache), "bytes": self._cache.size}
        return {
            "pid": self._worker.pid,
            "rss_bytes": memory,
            **known,
            "cache": {**cache, "hits": self._cache.hits, "misses": self._cache.misses},
        }

    def interrupt(self) -> bool:
        """Cut short the call that another thread is making, and say whether there was one.

        It comes back with an error of kind `interrupted`, and its instance is as it was before.
        """
        return self._worker.interrupt()

    def close(self) -> None:
        """End the worker. Its instances cannot be called any more."""
        with self._lock:
            self._closed = True
            self._worker.end()
            self._cache.clear()
            if self._caller is not None:
                self._caller.shutdown(wait=False)
        self._on_close(self)

    def __enter__(self) -> HostedProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What follows is for instances, who hold the lock.

    def _revive(self) -> None:
        """Make sure there is a worker. Raises UserError where the program is closed, WorkerLost where it won't load."""
        if self._closed:
            raise UserError(f"{self.name} is closed.")
        if not self._worker.alive:
            self._worker = self._reload()
            self._generation += 1
            self._references.clear()
            self._unused.clear()
            self._cache.clear()

    def _ask(self, header: Mapping[str, Any], *attachments: bytes, timeout_s: float, read: Callable[[Message], T]) -> T:
        while self._abandoned:
            self._release(*self._abandoned.popleft())
        header = {**header, "drop": list(self._unused)}
        self._unused.clear()
        allowed = timeout_s + self._limits.grace_s
        message = self._worker.request(header, attachments, timeout_s=allowed, what=self.name)
        try:
            return read(message)
        except Garbled as error:
            raise self._worker.lost(error, self.name) from error

    def _call(self, situation: Situation, timeout_s: float) -> wire.Called:
        began = time.perf_counter()
        header = {
            "op": "call",
            "state": situation.state,
            "tick": situation.tick,
            "tool": situation.tool,
            "timeout_s": timeout_s,
        }

        def read(message: Message) -> wire.Called:
            return wire.read_call(message, tool=situation.tool, ms=(time.perf_counter() - began) * 1000)

        return self._ask(header, situation.arguments.encode(), timeout_s=timeout_s, read=read)

    def _retain(self, state: int) -> None:
        if state != TEMPLATE:
            self._references[state] += 1
            self._unused.discard(state)

    def _release(self, generation: int, state: int) -> None:
        if state == TEMPLATE or generation != self._generation:
            return
        self._references[state] -= 1
        if not self._references[state]:
            del self._references[state]
            self._unused.add(state)

    def _remember(self, situation: Situation, called: wire.Called) -> None:
        is_new = called.state != TEMPLATE and not self._references[called.state]
        for kept in (situation.state, called.state):
            self._retain(kept)
        for freed in self._cache.put(situation, called.state, called.reply, state_size=called.size if is_new else 0):
            self._release(self._generation, freed)

    def _thread(self) -> ThreadPoolExecutor:
        """One thread, since a worker does one thing at a time. Raises UserError where the program is closed."""
        if self._closed:
            raise UserError(f"{self.name} is closed.")
        if self._caller is None:
            self._caller = ThreadPoolExecutor(1, thread_name_prefix=f"awm-{self.name}")
        return self._caller


class Instance:
    """One isolated copy of an environment. A context manager.

    The clock of an instance moves by a second with every call; `reset` and `restore` set it back.
    """

    def __init__(self, program: HostedProgram) -> None:
        self._program = program
        self._generation = program._generation
        self._state = TEMPLATE
        self._tick = 0
        self._base: bytes | None = None
        self._journal: list[tuple[int, str, str]] = []

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Reply:
        """Call a tool. Whatever goes wrong in generated code is in the reply's `error`.

        A call that times out or ends its worker changes nothing: the instance stays as it was, and so do all others.
        Raises UserError where the program has been closed.
        """
        text = _argument_text(arguments)
        if isinstance(text, Reply):
            return text
        with self._program._lock:
            return self._known(tool, text) or self._run(tool, text)

    async def acall(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Reply:
        """As `call`, without blocking the event loop."""
        text = _argument_text(arguments)
        if isinstance(text, Reply):
            return text
        program = self._program
        if program._lock.acquire(blocking=False):
            try:
                known = self._known(tool, text)
            finally:
                program._lock.release()
            if known is not None:
                return known
        return await asyncio.get_running_loop().run_in_executor(program._thread(), self.call, tool, arguments)

    def reset(self) -> None:
        """Back to the initial state."""
        with self._program._lock:
            self._move(TEMPLATE)
            self._generation = self._program._generation
            self._tick, self._base, self._journal = 0, None, []

    def snapshot(self) -> bytes:
        """The current state: the bytes of a SQLite database."""
        program = self._program
        with program._lock:
            if self._state == TEMPLATE and not self._journal and self._base is None:
                return program.template
            try:
                self._settle()
                wanted = {"op": "get", "state": self._state}
                return program._ask(wanted, timeout_s=program._limits.load_timeout_s, read=wire.read_snapshot)
            except WorkerLost as lost:
                raise UserError(f"The state of {program.name} cannot be read: {lost}.") from lost

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot, with the clock at its beginning. Raises UserError where it is no SQLite database."""
        program = self._program
        if not snapshot.startswith(SQLITE_HEADER):
            raise UserError(f"This is not a snapshot of {program.name}: not a SQLite database ({len(snapshot)} bytes).")
        with program._lock:
            try:
                program._revive()
                state = self._put(snapshot)
            except WorkerLost as lost:
                raise UserError(f"The snapshot cannot be put into {program.name}: {lost}.") from lost
            self._move(state)
            self._generation = program._generation
            self._tick, self._base, self._journal = 0, snapshot, []

    def fork(self) -> Instance:
        """Another instance in the same state, which goes its own way from here."""
        copy = Instance(self._program)
        with self._program._lock:
            copy._generation, copy._tick, copy._base = self._generation, self._tick, self._base
            copy._journal = list(self._journal)
            copy._state = self._state
            if self._generation == self._program._generation:
                self._program._retain(self._state)
        return copy

    def close(self) -> None:
        """Let go of its state."""
        self._program._abandoned.append((self._generation, self._state))
        self._state, self._journal, self._base, self._tick = TEMPLATE, [], None, 0

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # May run at any moment, within a locked section too: it only leaves a note.
        self._program._abandoned.append((self._generation, self._state))

    # What follows runs with the program's lock held.

    def _known(self, tool: str, arguments: str) -> Reply | None:
        """The reply to a call that was made before in the same situation; the instance moves on."""
        program = self._program
        if self._generation != program._generation or not program._worker.alive:
            return None
        began = time.perf_counter()
        situation = Situation(self._state, self._tick, tool, arguments)
        found = program._cache.get(situation)
        if found is None:
            return None
        self._advance(situation, found.state)
        kept = found.reply
        ms = (time.perf_counter() - began) * 1000
        return Reply(kept.status, kept.body_json, kept.text, kept.error, ms)

    def _run(self, tool: str, arguments: str) -> Reply:
        program = self._program
        try:
            self._settle()
            situation = Situation(self._state, self._tick, tool, arguments)
            called = program._call(situation, program._limits.call_timeout_s)
        except WorkerLost as lost:
            return _failed(tool, lost, program._limits.call_timeout_s)
        if _timed_out(called.reply):
            return called.reply  # the state is the one before
        if _repeatable(called.reply):
            program._remember(situation, called)
        self._advance(situation, called.state)
        return called.reply

    def _advance(self, situation: Situation, state: int) -> None:
        if state != self._state:
            self._journal.append((situation.tick, situation.tool, situation.arguments))
            self._move(state)
        self._tick += 1

    def _move(self, state: int) -> None:
        self._program._retain(state)
        self._program._release(self._generation, self._state)
        self._state = state

    def _settle(self) -> None:
        """Make sure that the worker has this instance's state, by doing again what led to it. Raises WorkerLost."""
        program = self._program
        program._revive()
        if self._generation == program._generation:
            return
        state = TEMPLATE if self._base is None else self._put(self._base)
        program._retain(state)
        for tick, tool, arguments in self._journal:
            called = program._call(Situation(state, tick, tool, arguments), program._limits.load_timeout_s)
            if _timed_out(called.reply):
                raise WorkerLost("timeout", f"{program.name} could not be brought back to this state in time")
            program._retain(called.state)
            program._release(program._generation, state)
            state = called.state
        self._state, self._generation = state, program._generation

    def _put(self, snapshot: bytes) -> int:
        program = self._program
        return program._ask({"op": "put"}, snapshot, timeout_s=program._limits.load_timeout_s, read=wire.read_state)


def _argument_text(arguments: Mapping[str, Any] | None) -> str | Reply:
    try:
        text = json.dumps({} if arguments is None else arguments, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        said = f"The arguments are not JSON: {error}"
        return Reply(422, None, said, CallError("invalid_arguments", said))
    if not text.startswith("{"):
        said = "The arguments are not a JSON object."
        return Reply(422, None, said, CallError("invalid_arguments", said))
    return text


def _timed_out(reply: Reply) -> bool:
    return reply.error is not None and reply.error.kind == "timeout"


def _repeatable(reply: Reply) -> bool:
    """Whether the same call will come to the same end: memory runs out depending on what else is in use."""
    return reply.error is None or reply.error.exception != "builtins.MemoryError"


def _failed(tool: str, lost: WorkerLost, limit_s: float) -> Reply:
    message = str(lost)
    message = f"{message[:1].upper()}{message[1:]}."
    if lost.kind == "timeout":
        text = f"Error calling {tool}. No answer within {limit_s:g} seconds."
        return Reply(504, None, text, CallError("timeout", message))
    if lost.kind == "interrupted":
        return Reply(INTERRUPTED, None, f"Error calling {tool}. It was stopped.", CallError("interrupted", message))
    return Reply(500, None, server_error_text(tool), CallError("crash", message))
