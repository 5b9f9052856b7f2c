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
from dataclasses import dataclass
from typing import Any

HEADER_LIMIT = 16 << 20
"""Bytes of a header; tool listings are the largest and take some 100 KB."""

_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 18


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


@dataclass(frozen=True, slots=True)
class Message:
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

    @property
    def idle(self) -> bool:
        """Whether nothing has arrived that was not asked for."""
        return not self._received and not _ready(self._handle, select.POLLIN, 0)

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
                self._wait(select.POLLOUT, deadline)
            except OSError as error:
                raise Disconnected from error

    def receive(self, *, deadline: float | None = None) -> Message:
        """The next message. Raises Disconnected, TimedOut or Garbled; after any of them the channel is of no use."""
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size, deadline))
        if length > HEADER_LIMIT:
            raise Garbled(f"a header of {length} bytes")
        try:
            header = _decode(self._take(length, deadline).decode())
            sizes, nonce = header.pop("sizes"), header.pop("nonce")
            good = isinstance(nonce, str) and all(type(size) is int and size >= 0 for size in sizes)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise Garbled("a header that cannot be read") from error
        if not good or sum(sizes) > self._limit:
            raise Garbled("attachments that are too large")
        return Message(header, tuple(self._take(size, deadline) for size in sizes), nonce)

    def close(self) -> None:
        """Close this end; the other side sees the end of the stream."""
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.close(self._handle)
            self._handle = -1

    def _take(self, size: int, deadline: float | None) -> bytes:
        while len(self._received) < size:
            if deadline is not None:
                self._wait(select.POLLIN, deadline)
            try:
                chunk = os.read(self._handle, max(_CHUNK, size - len(self._received)))
            except BlockingIOError:  # deadline or not: generated code can make its worker's descriptor so
                self._wait(select.POLLIN, deadline)
                continue
            except OSError as error:
                raise Disconnected from error
            if not chunk:
                raise Disconnected
            self._received += chunk
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _wait(self, event: int, deadline: float | None) -> None:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not _ready(self._handle, event, left):
            raise TimedOut


def _ready(handle: int, event: int, timeout_s: float | None) -> bool:
    poll = select.poll()  # not select(), which takes no descriptor above 1023
    poll.register(handle, event)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
