"""Many environments at once: results are kept as they come, and an interrupt loses none that was begun."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from curation.in_parallel import in_parallel


def test_every_result_is_kept_and_yielded_once() -> None:
    kept: dict[int, int] = {}
    found = list(in_parallel(range(20), lambda n: n * n, kept.__setitem__, workers=3, name="test"))
    assert sorted(found) == [n * n for n in range(20)]
    assert kept == {n: n * n for n in range(20)}


def test_no_more_is_begun_than_is_worked_on_and_waits_next() -> None:
    asked: list[int] = []

    def items():
        for number in range(100):
            asked.append(number)
            yield number

    with closing(in_parallel(items(), lambda n: n, lambda *_: None, workers=2, name="test")) as results:
        next(results)
        assert len(asked) == 4


def test_what_is_begun_when_the_caller_stops_is_finished_and_kept() -> None:
    begun, go_on = threading.Barrier(3), threading.Event()
    kept: list[int] = []
    told: list[int] = []

    def work(number: int) -> int:
        if number:
            begun.wait(10)
            go_on.wait(10)
        return number

    def stopping(count: int) -> None:
        told.append(count)
        go_on.set()

    results = in_parallel(
        range(9), work, lambda number, _: kept.append(number), workers=2, name="test", stopping=stopping
    )
    assert next(results) == 0
    begun.wait(10)
    results.close()
    assert sorted(kept) == [0, 1, 2]
    assert told == [2]


def test_an_interrupt_comes_through_after_what_was_begun_is_kept() -> None:
    kept: list[int] = []
    results = in_parallel(range(9), lambda n: n, lambda n, _: kept.append(n), workers=1, name="test")
    next(results)
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt)
    assert kept == sorted(kept)
    assert len(kept) <= 2


def test_a_fault_in_the_work_is_raised_and_the_rest_that_was_begun_is_kept() -> None:
    kept: list[int] = []

    def work(number: int) -> int:
        if number == 0:
            raise RuntimeError("out of order")
        return number

    with pytest.raises(RuntimeError, match="out of order"):
        list(in_parallel(range(2), work, lambda n, _: kept.append(n), workers=2, name="test"))
    assert kept in ([], [1])
