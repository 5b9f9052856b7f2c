"""What of a conversation an agent sees: the beginning, the first exchange, and the last few.

The same function makes the context of an agent that is asked (from messages) and of a row that is trained on (from
token ids), so that the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def context(
    head: Sequence[T], exchanges: Sequence[Sequence[T]], *, window: int | None, pinned: int, end: Iterable[T] = ()
) -> list[T]:
    """The head, the exchanges that are kept, and what opens the next turn.

    An exchange is what the agent said and what came back, as messages or as token ids. `pinned` exchanges at the
    start (AWM: one, which lists the tools) and the last `window` ones are kept; a window of None keeps all (arXiv
    2602.10090, section 4: history truncation, w = 3).
    """
    kept = [*exchanges] if window is None else [exchanges[i] for i in kept_exchanges(len(exchanges), window, pinned)]
    return [*head, *(item for exchange in kept for item in exchange), *end]


def kept_exchanges(count: int, window: int, pinned: int) -> list[int]:
    """Which of `count` exchanges are kept, by their place."""
    return [i for i in range(count) if i < pinned or i >= count - window]
