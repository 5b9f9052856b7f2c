"""JSON lines as they come: plain or gzipped, cut short, with a BOM, CRLF, NUL bytes or lines of many megabytes.

Nothing here raises because of what a file holds. A line that cannot be used has a fault instead of a value; one that
could be used after a repair has both.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

LINE_LIMIT = 64 * 2**20
"""The longest line that is read, in bytes; the longest of the AWM release is under 1 MB."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its 1-based number, its JSON value or None, what is wrong with it or None, and its size in bytes."""

    number: int
    value: Any
    fault: str | None
    size: int


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a `.jsonl` or `.jsonl.gz` file, read one at a time; blank ones are left out.

    Raises OSError where the file cannot be opened.
    """
    with path.open("rb") as file:
        yield from _read(gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file)


def _read(stream: BinaryIO | gzip.GzipFile) -> Iterator[Line]:
    number = 0
    while True:
        number += 1
        try:
            raw = stream.readline(LINE_LIMIT + 1)
            if len(raw) > LINE_LIMIT and not raw.endswith(b"\n"):
                size = len(raw) + _skip_line(stream)
                yield Line(number, None, f"the line is {size:,} bytes long; at most {LINE_LIMIT:,} are read", size)
                continue
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            yield Line(number, None, f"the gzip stream is damaged or cut short here ({error})", 0)
            return
        except OSError as error:
            yield Line(number, None, f"the file cannot be read further ({error.strerror})", 0)
            return
        if not raw:
            return
        text = (raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw).rstrip(b"\r\n")
        if text.strip():
            yield Line(number, *decode(text), len(raw))


def decode(text: bytes) -> tuple[Any, str | None]:
    """The JSON value of one line and what is wrong with it; the value is None where it cannot be used."""
    try:
        value = orjson.loads(text)
        orjson.dumps(value)  # reads 1,024 levels, but writes only 254
    except orjson.JSONEncodeError:
        return None, "is nested too deeply"
    except orjson.JSONDecodeError as error:
        if b"\0" in text:
            return None, f"has NUL bytes (the first at column {text.index(0) + 1})"
        return _decode_leniently(text, f"is not JSON: {error.msg} at column {error.colno}")
    return value, None


def _decode_leniently(text: bytes, fault: str) -> tuple[Any, str | None]:
    """Read what Python's own writer makes although it is not JSON: NaN, Infinity and halves of surrogate pairs."""
    try:
        value = json.loads(text.decode(), parse_constant=lambda _: None)
        repaired = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return orjson.loads(repaired), "has NaN, Infinity or half a surrogate pair; null or U+FFFD stands for it"
    except UnicodeDecodeError as error:
        return None, f"is not UTF-8 at column {error.start + 1}"
    except RecursionError:
        return None, "is nested too deeply"
    except ValueError:
        return None, fault


def _skip_line(stream: BinaryIO | gzip.GzipFile) -> int:
    skipped = 0
    while chunk := stream.readline(2**20):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return skipped
