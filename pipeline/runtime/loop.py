"""Runs coroutines to their end where there are no threads, no sockets and no time to wait."""

from __future__ import annotations

import asyncio
import collections
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio.to_thread

from pipeline.runtime.clock import STEP

T = TypeVar("T")


class NeverWakesUp(RuntimeError):
    """A coroutine waits for something that nothing in this process can bring about."""


class InlineLoop(asyncio.BaseEventLoop):
    """An event loop that opens no descriptors, waits for nothing and runs executor jobs on the spot.

    Its time is its own: when all tasks sleep it moves to the moment the first one wakes. So `asyncio.sleep` returns
    at once and in the right order, and the same calls always interleave in the same way.
    """

    _ready: collections.deque[Any]
    _scheduled: list[Any]
    _thread_id: int | None
    _check_running: Callable[[], None]
    _asyncgen_firstiter_hook: Callable[[Any], None]
    _asyncgen_finalizer_hook: Callable[[Any], None]

    def __init__(self) -> None:
        super().__init__()
        self._moment = 0.0
        self._selector = self  # BaseEventLoop asks it for I/O events between two rounds

    def __del__(self) -> None:
        """Nothing: there is nothing to close."""

    def time(self) -> float:
        """Seconds that coroutines have slept on this loop."""
        return self._moment

    def select(self, timeout: float | None) -> list[Any]:
        """No I/O ever happens: go to the next moment at which somebody wakes."""
        if timeout is None:
            raise NeverWakesUp("the handler waits for something that can never happen")
        self._moment += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Run `func` now, in this thread."""
        future = self.create_future()
        try:
            future.set_result(outside_loop(func, *args))
        except Exception as error:
            future.set_exception(error)
        return future

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result.

        Tasks it leaves behind go on for the time until the next call, then they are cancelled: whatever they do
        belongs to this call and to no other.
        """
        self._moment = 0.0
        with inline_threads():
            try:
                task = self.create_task(coroutine)
                self._begin(task)
                at_its_end = task.done() and not self._ready
                return task.result() if at_its_end else self.run_until_complete(task)
            finally:
                self._finish_tasks()
                self._scheduled.clear()
                self._ready.clear()

    def _begin(self, task: asyncio.Task[Any]) -> None:
        """Run a new task until it waits for something. Most never do, and are spared the rounds of `run_forever`.

        All that a coroutine can see of its loop is as there.
        """
        self._check_running()
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook)
        self._thread_id = threading.get_ident()
        asyncio._set_running_loop(self)
        try:
            self._ready.popleft()._run()
        except BaseException:
            if task.done() and not task.cancelled():
                task.exception()  # it is on its way up; without this it would be logged as well
            raise
        finally:
            asyncio._set_running_loop(None)
            self._thread_id = None
            sys.set_asyncgen_hooks(*hooks)

    def _finish_tasks(self) -> None:
        left = asyncio.all_tasks(self)
        if not left:
            return
        self.run_until_complete(asyncio.wait(left, timeout=STEP.total_seconds()))
        for task in left:
            task.cancel()
        self.run_until_complete(asyncio.gather(*left, return_exceptions=True))


@contextmanager
def inline_threads() -> Generator[None]:
    """While active, `anyio.to_thread.run_sync` (Starlette's thread pool) runs its function in this thread."""
    functions = vars(anyio.to_thread)
    threaded = functions["run_sync"]
    functions["run_sync"] = _run_inline
    try:
        yield
    finally:
        functions["run_sync"] = threaded


async def _run_inline(func: Callable[..., T], *args: Any, **_: Any) -> T:
    return outside_loop(func, *args)


def outside_loop(func: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call a function as in a thread of its own, where no event loop runs and `asyncio.run` may be used."""
    running = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return func(*args, **kwargs)
    finally:
        asyncio._set_running_loop(running)
