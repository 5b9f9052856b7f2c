"""Lines as they come: what is read, what is repaired, and what is said about the rest."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from curation import jsonl
from curation.jsonl import Line, read_lines


def lines(folder: Path, data: bytes, name: str = "x.jsonl") -> list[Line]:
    (folder / name).write_bytes(data)
    return list(read_lines(folder / name))


def test_values_come_with_their_line_numbers(tmp_path: Path) -> None:
    assert lines(tmp_path, b'{"a":1}\n\n  \n[2]\nnull') == [
        Line(1, {"a": 1}, None, 8),
        Line(4, [2], None, 4),
        Line(5, None, None, 4),
    ]


def test_a_bom_and_crlf_are_no_part_of_a_line(tmp_path: Path) -> None:
    assert [line.value for line in lines(tmp_path, b"\xef\xbb\xbf[1]\r\n[2]\r\n")] == [[1], [2]]


def test_a_line_of_5_mb_is_read(tmp_path: Path) -> None:
    [line] = lines(tmp_path, b'"' + b"x" * 5_000_000 + b'"')
    assert (len(line.value), line.fault) == (5_000_000, None)


def test_a_longer_line_than_the_limit_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LINE_LIMIT", 10)
    first, second = lines(tmp_path, b'"' + b"x" * 20 + b'"\n"ok"\n')
    assert (first.number, first.value, second.number, second.value) == (1, None, 2, "ok")
    assert first.fault == "the line is 23 bytes long; at most 10 are read"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b'{"a": 1', "is not JSON: unexpected end of data at column 8"),
        (b"hello", "is not JSON: unexpected character, expected a JSON value at column 1"),
        (b'{"a": "\0"}', "has NUL bytes (the first at column 8)"),
        (b"\0" * 50, "has NUL bytes (the first at column 1)"),
        (b'{"a": "\xff"}', "is not UTF-8 at column 8"),
        (b"[" * 300 + b"]" * 300, "is nested too deeply"),
        (b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_line_that_cannot_be_used_says_why_and_the_next_is_read(tmp_path: Path, text: bytes, fault: str) -> None:
    bad, good = lines(tmp_path, text + b'\n{"b": 2}\n')
    assert (bad.number, bad.value, bad.fault) == (1, None, fault)
    assert (good.number, good.value, good.fault) == (2, {"b": 2}, None)


def test_what_only_python_takes_for_json_is_repaired_and_told(tmp_path: Path) -> None:
    [line] = lines(tmp_path, rb'{"a": NaN, "b": [-Infinity, "\ud800x"], "c": "\ud83d\ude00"}')
    assert line.value == {"a": None, "b": [None, "\N{REPLACEMENT CHARACTER}x"], "c": "😀"}
    assert line.fault == "has NaN, Infinity or half a surrogate pair; null or U+FFFD stands for it"


def test_gzip_is_read_like_the_file_in_it(tmp_path: Path) -> None:
    assert [line.value for line in lines(tmp_path, gzip.compress(b"[1]\n[2]\n"), "x.jsonl.gz")] == [[1], [2]]


def test_a_gzip_cut_short_gives_what_came_before(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b'{"row": %d, "text": "%s"}\n' % (n, b"ab%d" % (n * 7919) * 9) for n in range(4000)))
    found = lines(tmp_path, whole[: len(whole) // 2], "x.jsonl.gz")
    assert len(found) > 1000
    assert [line.value["row"] for line in found[:-1]] == list(range(len(found) - 1))
    assert found[-1].value is None
    assert "the gzip stream is damaged or cut short here" in (found[-1].fault or "")


def test_what_is_not_gzip_at_all_says_so(tmp_path: Path) -> None:
    [line] = lines(tmp_path, b'{"a": 1}\n', "x.jsonl.gz")
    assert "the gzip stream is damaged or cut short here (Not a gzipped file" in (line.fault or "")
