"""The transition cache: what a call did before, in the same state at the same moment, it will do again.

Sound because instances are deterministic with the clock pinned: state, tick, tool and arguments decide everything.
Rollouts of one task share their first calls, which is what this saves.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView
from typing import NamedTuple

from pipeline.runtime.replies import Reply

ENTRY_OVERHEAD = 1000
"""Bytes of Python objects around an entry's texts (measured: 700 to 900)."""


class Situation(NamedTuple):
    """What decides a call: state id, tick, tool, and the arguments' JSON text as they came (order may matter)."""

    state: int
    tick: int
    tool: str
    arguments: str


class Transition(NamedTuple):
    """What came of it: the next state's id and the reply. `size` is what keeping it costs, in bytes."""

    state: int
    reply: Reply
    size: int


class TransitionCache:
    """Keeps the transitions used last, up to `limit` bytes. Not safe to use from several threads at once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[Situation, Transition] = OrderedDict()
        self.size = 0
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> ItemsView[Situation, Transition]:
        """What is kept, used longest ago first."""
        return self._entries.items()

    def get(self, situation: Situation) -> Transition | None:
        """The transition from a situation, if it is known."""
        found = self._entries.get(situation)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(situation)
        return found

    def put(self, situation: Situation, state: int, reply: Reply, *, state_size: int) -> list[int]:
        """Keep a transition; `state_size` is what its new state costs, 0 if it is not new.

        The caller holds a reference to each of its two states for as long as it is kept. Returns the states whose
        references are free: of entries that had to go, or of this one where it cannot be kept.
        """
        texts = len(situation.arguments) + len(reply.text) + len(reply.body_json or "")
        size = texts + state_size + ENTRY_OVERHEAD
        if size > self._limit or situation in self._entries:
            return [situation.state, state]
        self._entries[situation] = Transition(state, reply, size)
        self.size += size
        free: list[int] = []
        while self.size > self._limit:
            oldest, gone = self._entries.popitem(last=False)
            self.size -= gone.size
            free += (oldest.state, gone.state)
        return free

    def clear(self) -> None:
        """Forget everything, states included: their ids mean nothing any more."""
        self._entries.clear()
        self.size = 0
