"""Messages between the host and a worker: a JSON header and binary attachments over a stream socket.

Frame: length of the header (4 bytes, big endian), header, attachments. The header is a JSON object; its `sizes` are
the attachments' lengths, its `nonce` a random word that the worker's reply must repeat. Nothing is ever unpickled.

What the nonce is for: generated code in a worker can find the socket's number and write to it. What it writes
without knowing the current request's nonce is taken for what it is, and the worker is ended. Code that searches the
worker's own frames for the nonce can forge a reply, but only to a call on its own program, whose replies it makes
anyway.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

HEADER_LIMIT = 16 << 20
"""Bytes of a header; tool listings are the largest and take some 100 KB."""

_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 16  # bytes asked for at once; most messages are smaller


def _blob(value: object) -> dict[str, str]:
    """Bytes (of a BLOB column) as state diffs write them."""
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    raise TypeError(f"{type(value).__name__} cannot be sent")


_encode = json.JSONEncoder(separators=(",", ":"), default=_blob).encode
_decode = json.JSONDecoder().decode


class Disconnected(Exception):
    """The other side is gone."""


class TimedOut(Exception):
    """The other side did not answer in time."""


class Garbled(Exception):
    """What arrived is not a message: the other side cannot be trusted to go on."""


class Message(NamedTuple):
    """One message; `nonce` belongs to the request and its reply."""

    header: dict[str, Any]
    attachments: Sequence[bytes] = ()
    nonce: str = ""


class Channel:
    """One end of a connected stream socket, which it owns.

    Uses plain reads and writes, which a locked-down worker may still do; not `send`, which may become `sendto`.
    """

    def __init__(self, connection: socket.socket, *, limit: int):
        """`limit`: the most bytes of attachments in a message that is received.

        Deadlines for sending hold only where the socket is non-blocking.
        """
        self._handle = connection.detach()
        self._limit = limit
        self._received = bytearray()
        self._readable, self._writable = (_poll(self._handle, event) for event in (select.POLLIN, select.POLLOUT))

    @property
    def idle(self) -> bool:
        """Whether nothing has arrived that was not asked for."""
        return not self._received and not self._readable.poll(0)

    def send(self, message: Message, *, deadline: float | None = None) -> None:
        """Send a message by `deadline` (of `time.monotonic`; None: however long it takes).

        Raises Disconnected or TimedOut; after either the channel is of no more use.
        """
        sizes = [len(attachment) for attachment in message.attachments]
        header = _encode({**message.header, "sizes": sizes, "nonce": message.nonce}).encode()
        rest = memoryview(b"".join((_LENGTH.pack(len(header)), header, *message.attachments)))
        while rest:
            try:
                rest = rest[os.write(self._handle, rest) :]
            except BlockingIOError:
                _wait(self._writable, deadline)
            except OSError as error:
                raise Disconnected from error

    def receive(self, *, deadline: float | None = None) -> Message:
        """The next message. Raises Disconnected, TimedOut or Garbled; after any of them the channel is of no use."""
        self._await(_LENGTH.size, deadline)
        (length,) = _LENGTH.unpack_from(self._received)
        if length > HEADER_LIMIT:
            raise Garbled(f"a header of {length} bytes")
        start = _LENGTH.size + length
        self._await(start, deadline)
        try:
            header = _decode(self._received[_LENGTH.size : start].decode())
            sizes, nonce = header.pop("sizes"), header.pop("nonce")
            good = isinstance(nonce, str) and all(type(size) is int and size >= 0 for size in sizes)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise Garbled("a header that cannot be read") from error
        if not good or sum(sizes) > self._limit:
            raise Garbled("attachments that are too large")
        self._await(start + sum(sizes), deadline)
        ends = list(accumulate(sizes, initial=start))
        with memoryview(self._received) as received:
            attachments = tuple(bytes(received[begin:end]) for begin, end in pairwise(ends))
        del self._received[: ends[-1]]
        return Message(header, attachments, nonce)

    def hang_up(self) -> None:
        """End the conversation from another thread: whoever sends or receives here gets Disconnected."""
        with socket.socket(fileno=os.dup(self._handle)) as same, contextlib.suppress(OSError):
            same.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end; the other side sees the end of the stream."""
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.close(self._handle)
            self._handle = -1

    def _await(self, size: int, deadline: float | None) -> None:
        """Read on until so many bytes have been received."""
        while len(self._received) < size:
            if deadline is not None:
                _wait(self._readable, deadline)
            try:
                chunk = os.read(self._handle, max(_CHUNK, size - len(self._received)))
            except BlockingIOError:  # deadline or not: generated code can make its worker's descriptor so
                _wait(self._readable, deadline)
                continue
            except OSError as error:
                raise Disconnected from error
            if not chunk:
                raise Disconnected
            self._received += chunk


def _poll(handle: int, event: int) -> select.poll:
    poll = select.poll()  # not select(), which takes no descriptor above 1023
    poll.register(handle, event)
    return poll


def _wait(poll: select.poll, deadline: float | None) -> None:
    if not poll.poll(None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000):
        raise TimedOut
