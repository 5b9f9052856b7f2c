"""Coroutines run to their end without threads or waiting, and see a loop like any other."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from pipeline.runtime.loop import InlineLoop, NeverWakesUp


@pytest.fixture
def loop() -> InlineLoop:
    return InlineLoop()


def test_what_never_waits_runs_in_a_task_of_the_running_loop(loop: InlineLoop) -> None:
    async def look() -> tuple[Any, Any, bool]:
        return asyncio.get_running_loop(), asyncio.current_task(), asyncio.get_running_loop().is_running()

    seen, task, running = loop.run(look())
    assert (seen, running) == (loop, True)
    assert isinstance(task, asyncio.Task)
    assert not loop.is_running()
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_what_waits_goes_on_until_it_has_its_answer(loop: InlineLoop) -> None:
    async def doubled(number: int) -> int:
        await asyncio.sleep(3600 / number)
        return 2 * number

    async def several() -> list[int]:
        async with asyncio.timeout(7200):
            return list(await asyncio.gather(doubled(1), doubled(2)))

    assert loop.run(several()) == [2, 4]


def test_callbacks_and_tasks_left_behind_still_run(loop: InlineLoop) -> None:
    ran: list[str] = []
    kept: list[asyncio.Task[None]] = []

    async def later(name: str) -> None:
        await asyncio.sleep(0)
        ran.append(name)

    async def leave() -> str:
        asyncio.get_running_loop().call_soon(ran.append, "callback")
        kept.append(asyncio.get_running_loop().create_task(later("task")))
        return "done"

    assert loop.run(leave()) == "done"
    assert ran == ["callback", "task"]


def test_a_generator_left_unfinished_is_closed_by_the_loop(loop: InlineLoop) -> None:
    closed = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    async def first() -> int:
        return await anext(numbers())

    assert loop.run(first()) == 1
    assert closed == [True]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, BaseException])
def test_what_it_raises_comes_up_and_is_not_logged_as_forgotten(
    loop: InlineLoop, kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise kind("no")

    with pytest.raises(kind):
        loop.run(fail())
    gc.collect()
    assert caplog.records == []
    assert loop.run(asyncio.sleep(1, "next")) == "next"


def test_what_waits_for_nothing_is_told_so(loop: InlineLoop) -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(NeverWakesUp):
        loop.run(wait())
