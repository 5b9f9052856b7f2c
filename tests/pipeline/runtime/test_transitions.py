"""What the transition cache keeps, and for how long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.replies import Reply
from pipeline.runtime.transitions import ENTRY_OVERHEAD, Situation, TransitionCache

REPLY = Reply(200, "null", "done")
ENTRY = ENTRY_OVERHEAD + len("{}") + len("null") + len("done")


def situation(state: int, tick: int = 0, arguments: str = "{}") -> Situation:
    return Situation(state, tick, "tool", arguments)


def test_a_call_is_known_by_state_tick_tool_and_the_very_text_of_its_arguments() -> None:
    cache = TransitionCache(1 << 20)
    cache.put(situation(1, 5, '{"a":1,"b":2}'), 2, REPLY, state_size=0)
    assert cache.get(situation(1, 5, '{"a":1,"b":2}')) is not None
    for other in (
        situation(2, 5),
        situation(1, 6),
        situation(1, 5, '{"b":2,"a":1}'),
        situation(1, 5, '{"a":1.0,"b":2}'),
    ):
        assert cache.get(other) is None
    assert (cache.hits, cache.misses) == (1, 4)


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = TransitionCache(2 * ENTRY)
    cache.put(situation(1), 11, REPLY, state_size=0)
    cache.put(situation(2), 12, REPLY, state_size=0)
    cache.get(situation(1))
    assert cache.put(situation(3), 13, REPLY, state_size=0) == [2, 12]
    assert cache.get(situation(1)) is not None


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = TransitionCache(ENTRY)
    assert cache.put(situation(1), 11, REPLY, state_size=1) == [1, 11]
    assert len(cache) == 0


def test_a_cache_of_nothing_keeps_nothing() -> None:
    cache = TransitionCache(0)
    assert cache.put(situation(1), 11, REPLY, state_size=0) == [1, 11]
    assert cache.get(situation(1)) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 3000)), max_size=60))
def test_it_stays_within_its_limit_and_gives_back_each_reference_once(calls: list[tuple[int, int, int]]) -> None:
    cache = TransitionCache(5 * ENTRY)
    given, returned = [], []
    for number, (state, after, size) in enumerate(calls):
        where = situation(state, number % 7)
        given += [state, after]
        returned += cache.put(where, after, REPLY, state_size=size)
        assert cache.size <= 5 * ENTRY
    kept = [number for where, entry in cache.entries() for number in (where.state, entry.state)]
    assert sorted(given) == sorted(returned + kept)
