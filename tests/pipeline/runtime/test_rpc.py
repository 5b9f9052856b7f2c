"""Messages between the host and a worker."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.rpc import HEADER_LIMIT, Channel, Disconnected, Garbled, Message, TimedOut

LIMIT = 1 << 20

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
headers = st.dictionaries(st.text().filter(lambda key: key not in ("sizes", "nonce")), json_values, max_size=4)


@pytest.fixture
def ends() -> Generator[tuple[Channel, Channel]]:
    one, other = (Channel(end, limit=LIMIT) for end in socket.socketpair())
    yield one, other
    one.close()
    other.close()


@given(headers, st.lists(st.binary(max_size=200), max_size=4), st.text())
def test_a_message_arrives_as_it_was_sent(header: dict, attachments: list[bytes], nonce: str) -> None:
    one, other = (Channel(end, limit=LIMIT) for end in socket.socketpair())
    one.send(Message(header, attachments, nonce))
    assert other.receive() == Message(header, tuple(attachments), nonce)
    assert other.idle
    one.close()
    other.close()


def test_a_message_larger_than_the_sockets_buffers_arrives(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    content = os.urandom(LIMIT)
    sender = threading.Thread(target=one.send, args=(Message({}, (content,)),))
    sender.start()
    assert other.receive().attachments == (content,)
    sender.join()


def test_blobs_in_a_header_arrive_as_diffs_write_them(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    one.send(Message({"row": {"photo": b"\x00\xff"}}))
    assert other.receive().header == {"row": {"photo": {"blob": "00ff"}}}


@pytest.mark.parametrize(
    "frame",
    {
        "a header that is too long": struct.pack(">I", HEADER_LIMIT + 1),
        "not JSON": struct.pack(">I", 3) + b"{{{",
        "not an object": struct.pack(">I", 2) + b"[]",
        "no sizes": struct.pack(">I", 12) + b'{"nonce":""}',
        "a negative size": struct.pack(">I", 25) + b'{"nonce":"","sizes":[-1]}',
        "a size that is no number": struct.pack(">I", 27) + b'{"nonce":"","sizes":[true]}',
        "attachments beyond the limit": struct.pack(">I", 30) + b'{"nonce":"","sizes":[9999999]}',
        "a nonce that is no text": struct.pack(">I", 22) + b'{"nonce":1,"sizes":[]}',
        "nesting without end": struct.pack(">I", 200_000) + b"[" * 200_000,
    }.items(),
    ids=lambda item: item[0],
)
def test_what_is_no_message_is_refused(frame: tuple[str, bytes]) -> None:
    raw, end = socket.socketpair()
    channel = Channel(end, limit=LIMIT)
    raw.sendall(frame[1])
    with pytest.raises(Garbled):
        channel.receive(deadline=time.monotonic() + 5)
    raw.close()
    channel.close()


def test_silence_ends_at_the_deadline(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(TimedOut):
        ends[0].receive(deadline=time.monotonic() + 0.01)


def test_a_receiver_that_does_not_read_ends_the_sending_at_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    channel = Channel(ours, limit=LIMIT)
    with pytest.raises(TimedOut):
        channel.send(Message({}, (bytes(8 << 20),)), deadline=time.monotonic() + 0.05)
    channel.close()
    theirs.close()


def test_the_other_side_going_away_is_noticed(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    other.close()
    with pytest.raises(Disconnected):
        one.receive()
    with pytest.raises(Disconnected):
        one.send(Message({}))
