"""Going through many environments at once, keeping each result as it comes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(
    todo: Iterable[T],
    work: Callable[[T], R],
    keep: Callable[[T, R], None],
    *,
    workers: int,
    name: str,
    stopping: Callable[[int], None] = lambda begun: None,
) -> Generator[R]:
    """Do `work` for each item, `workers` at a time, in threads of this `name`; keep and yield results as they come.

    The work itself happens in processes of a host; threads only wait for them. Where the caller stops (it closes the
    generator, or an interrupt comes), nothing more is begun; `stopping` is told how many items are, and these are
    finished and kept. A second interrupt leaves them. An exception in `work` or `keep` stops everything likewise.
    """
    waiting: dict[Future[R], T] = {}

    def finished() -> Iterator[R]:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            item, result = waiting.pop(future), future.result()
            keep(item, result)
            yield result

    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    finish = True
    try:
        for item in todo:
            waiting[pool.submit(work, item)] = item
            if len(waiting) >= 2 * workers:
                yield from finished()
        while waiting:
            yield from finished()
    finally:
        begun = {future: item for future, item in waiting.items() if not future.cancel()}
        if begun:
            stopping(len(begun))
        try:
            for future, item in begun.items():
                if future.exception() is None:
                    keep(item, future.result())
        except KeyboardInterrupt:
            finish = False
            raise
        finally:
            pool.shutdown(wait=finish, cancel_futures=True)
