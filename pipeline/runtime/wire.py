"""From a worker's words to the host's values. Words that are not of the agreed form raise Garbled."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from pipeline.findings import Finding
from pipeline.runtime.build import Build, FailedStatement
from pipeline.runtime.replies import CallError, ErrorKind, Reply, server_error_text
from pipeline.runtime.rpc import Garbled, Message
from pipeline.runtime.tools import Tool


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a program cannot be loaded; as `program.LoadError`."""

    kind: str
    message: str
    line: int | None
    code_line: str


def read_fault(fault: Any) -> Fault:
    """The fault in a reply."""
    with _agreed_form():
        line = fault["line"]
        return Fault(str(fault["kind"]), str(fault["message"]), line and _whole(line), str(fault["code_line"]))


def read_names(message: Message, key: str) -> tuple[str, ...]:
    """A list of names in a reply."""
    with _agreed_form():
        return tuple(map(str, message.header[key]))


def read_build(message: Message) -> Build:
    """The build in a reply."""
    with _agreed_form():
        fields = dict(message.header["build"])
        fields["failed"] = tuple(FailedStatement(**failed) for failed in fields["failed"])
        fields["foreign_keys"] = tuple(fields["foreign_keys"])
        fields["missing_tables"] = tuple(fields["missing_tables"])
        fields["dependents"] = {table: tuple(names) for table, names in fields["dependents"].items()}
        return Build(snapshot=read_snapshot(message), **fields)


def read_findings(message: Message) -> tuple[Finding, ...]:
    """The findings in a reply."""
    with _agreed_form():
        return tuple(Finding(**_with_tuple(found, "tasks")) for found in message.header["findings"])


def read_tools(message: Message) -> tuple[Tool, ...]:
    """The tools in a reply."""
    with _agreed_form():
        return tuple(Tool(**_with_tuple(tool, "tags")) for tool in message.header["tools"])


class Called(NamedTuple):
    """What a tool call led to: the reply, and the new state's id and size in bytes."""

    reply: Reply
    state: int
    size: int


def read_call(message: Message, *, tool: str, ms: float) -> Called:
    """What a tool call led to."""
    with _agreed_form():
        header = message.header
        state, size = _whole(header["state"]), _whole(header["size"])
        if "too_large" in header:
            said = f"The reply is {_whole(header['too_large']) / 1e6:.0f} MB long, more than a reply may be."
            reply = Reply(500, None, server_error_text(tool), CallError("server_error", said), ms)
            return Called(reply, state, size)
        body, text = (attachment.decode("utf-8", "surrogatepass") for attachment in message.attachments)
        error = header["error"]
        if error is not None:
            if error["kind"] not in get_args(ErrorKind) or not isinstance(error["message"], str):
                raise Garbled("an error of no known kind")
            error = CallError(error["kind"], error["message"], error["detail"])
        return Called(Reply(_whole(header["status"]), body, text, error, ms), state, size)


def read_state(message: Message) -> int:
    """A state's id."""
    with _agreed_form():
        return _whole(message.header["state"])


def read_snapshot(message: Message) -> bytes:
    """A snapshot."""
    with _agreed_form():
        if "too_large" in message.header:
            raise Garbled(f"a database of {_whole(message.header['too_large']) / 1e6:.0f} MB, more than is taken")
        return message.attachments[0]


def read_stats(message: Message) -> dict[str, int]:
    """What an engine counts."""
    with _agreed_form():
        return {str(name): _whole(value) for name, value in message.header["stats"].items()}


def _with_tuple(fields: dict[str, Any], name: str) -> dict[str, Any]:
    return {**fields, name: tuple(fields[name])}


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise Garbled("a number that is none")
    return value


@contextmanager
def _agreed_form() -> Generator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Garbled("a reply that is not of the agreed form") from error
