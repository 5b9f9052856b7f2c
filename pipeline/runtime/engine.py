"""Runs tool calls of one program on any number of states.

A state is a value: the bytes of a database (and of the program's module state, where it has any), known by a number.
Instances are pointers to states, so resetting, forking and undoing cost nothing; a call takes a state and gives the
next one.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipeline.runtime.build import build
from pipeline.runtime.database import Stored, schema_key
from pipeline.runtime.faults import server_error
from pipeline.runtime.invoke import Answer, Invoker, refuse_nan
from pipeline.runtime.pretty import indented
from pipeline.runtime.program import Program
from pipeline.runtime.time_limit import TimeLimit, time_limit
from pipeline.runtime.tools import ArgumentCheck, error_text, unknown_tool_text


class State(NamedTuple):
    """A program's state: its database, and what it keeps in its module (None: nothing)."""

    database: Stored
    module: bytes | None


class _Call(NamedTuple):
    tool: str
    arguments: Mapping[str, Any]
    tick: int
    timeout: float
    direct: bool


class Engine:
    """Calls a program's tools on numbered states. State 0 is the program's template and is always there.

    Equal states have the same number.
    """

    template_state = 0

    def __init__(self, program: Program) -> None:
        self.program = program
        self._states: dict[int, State] = {}
        self._numbers: dict[State, int] = {}
        self._next = 0
        self._invokers: dict[str, Invoker] = {}
        self._checks: dict[str, ArgumentCheck] = {}
        self._calls = self._timeouts = 0
        refuse_nan(program.app)
        self._number(State(program.start, program.state.save()))

    def put(self, snapshot: bytes) -> int:
        """The number of the state whose database is `snapshot`, with the module state of a fresh instance."""
        snapshot = snapshot or build((), (), now=None).snapshot  # to SQLite, an empty file is an empty database
        return self._number(State(Stored(snapshot, schema_key(snapshot)), self._states[self.template_state].module))

    def get(self, state: int) -> bytes:
        """The database of a state, as the bytes of a SQLite file. Raises KeyError for a dropped or unknown one."""
        return self._states[state].database.snapshot

    def drop(self, states: Iterable[int]) -> None:
        """Forget states; unknown numbers and the template are ignored."""
        for number in states:
            if number != self.template_state and (state := self._states.pop(number, None)) is not None:
                del self._numbers[state]

    def stats(self) -> dict[str, int]:
        """`states` held and their `bytes`, `calls` made and `timeouts` among them."""
        size = sum(len(state.database.snapshot) + len(state.module or b"") for state in self._states.values())
        return {"states": len(self._states), "bytes": size, "calls": self._calls, "timeouts": self._timeouts}

    def call(
        self, state: int, tick: int, tool: str, arguments: Mapping[str, Any], *, timeout: float, direct: bool = True
    ) -> tuple[int, dict[str, Any]]:
        """Call a tool in a state at a tick; gives the state after it and the reply.

        The reply has `status`, `body` (JSON, or text that is not), `text` (what the agent is shown), `error` (None,
        or `kind`, `message`, `detail`), `ms` and `writes` (whether the database changed). Where no request was made
        (unknown tool, arguments that do not fit, no answer within `timeout` seconds) the status is the one that
        comes closest: 404, 422, 504. After a timeout the state is the one before the call, because where a call is
        cut off depends on the machine. `direct=False` sends every call through the whole application, which does
        not change the reply.
        """
        started = time.perf_counter()
        self._calls += 1
        after, reply = self._reply(state, _Call(tool, arguments, tick, timeout, direct))
        reply["ms"] = (time.perf_counter() - started) * 1000
        reply["writes"] = self._states[after].database.snapshot is not self._states[state].database.snapshot
        return after, reply

    def _reply(self, state: int, call: _Call) -> tuple[int, dict[str, Any]]:
        if call.tool not in self.program.routes:
            text = unknown_tool_text(call.tool)
            return state, _failure(404, text, "tool_not_found")
        wrong = self._check(call.tool).error(call.arguments)
        if wrong is not None:
            return state, _failure(422, wrong, "invalid_arguments", {"source": "input_schema"})
        try:
            after, answer = self._run(state, call)
        except TimeLimit:
            self._timeouts += 1
            text = f"Error calling {call.tool}. No answer within {call.timeout:g} seconds."
            return state, _failure(504, text, "timeout")
        return after, self._describe(call.tool, answer)

    def _run(self, state: int, call: _Call) -> tuple[int, Answer]:
        program, database = self.program, self.program.database
        before = self._states[state]
        while True:
            known_to_read_history = database.reads_history
            database.load(before.database)
            program.state.restore(before.module)
            program.clock.at(call.tick)
            try:
                answer = self._answer(call)
            except BaseException:
                program.state.discard()
                raise
            finally:
                database.finish()
            if database.reads_history == known_to_read_history:
                return self._number(State(database.state(), program.state.save())), answer
            program.state.discard()  # it may have seen another instance's history: once more, on the new connection

    def _answer(self, call: _Call) -> Answer:
        program = self.program
        program.database.deadline = time.monotonic() + call.timeout
        try:
            with time_limit(call.timeout), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = program.loop.run(self._invoker(call.tool).answer(call.arguments, direct=call.direct))
            if time.monotonic() > program.database.deadline:
                raise TimeLimit
        except (TimeLimit, KeyboardInterrupt):
            raise
        except BaseException as error:  # SystemExit and the like: a server would be gone
            return Answer(500, "Internal Server Error", error)
        finally:
            program.database.deadline = math.inf
        return answer

    def _describe(self, tool: str, answer: Answer) -> dict[str, Any]:
        status, content = answer.status, answer.content
        if status is not None and not 100 <= status < 600:  # no server could send it
            status, content = 500, "Internal Server Error"
        if status is None:
            return _failure(422, content, "invalid_arguments", {"source": "request"})
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
            shown: Any = content
        else:
            shown = body
        if status < 400:
            return _reply(status, shown, content if shown is content else indented(body), None)
        text = error_text(tool, status, content)
        if status >= 500:
            return _reply(status, shown, text, server_error(self.program, answer.error, content))
        detail = body.get("detail") if isinstance(body, dict) else shown
        message = detail if isinstance(detail, str) else content
        kind = "invalid_arguments" if status == 422 else "client_error"
        return _reply(status, shown, text, {"kind": kind, "message": message, "detail": detail})

    def _number(self, state: State) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = self._next
            self._states[number] = state
            self._next += 1
        return number

    def _invoker(self, tool: str) -> Invoker:
        if tool not in self._invokers:
            self._invokers[tool] = Invoker(self.program.app, self.program.routes[tool])
        return self._invokers[tool]

    def _check(self, tool: str) -> ArgumentCheck:
        if tool not in self._checks:
            self._checks[tool] = ArgumentCheck(self.program.routes[tool].tool.input_schema)
        return self._checks[tool]


def _reply(status: int, body: Any, text: str, error: dict[str, Any] | None) -> dict[str, Any]:
    return {"status": status, "body": body, "text": text, "error": error}


def _failure(status: int, text: str, kind: str, detail: Any = None) -> dict[str, Any]:
    return _reply(status, text, text, {"kind": kind, "message": text, "detail": detail})
