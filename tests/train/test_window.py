"""What an agent sees of a long conversation."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from train.window import context

EXCHANGES = st.lists(st.lists(st.integers(), min_size=1, max_size=3), max_size=12)


def test_the_first_exchange_and_the_last_three_are_kept() -> None:
    exchanges = [[f"a{n}", f"b{n}"] for n in range(6)]
    seen = context(["system", "task"], exchanges, window=3, pinned=1, end=["assistant:"])
    assert seen == ["system", "task", "a0", "b0", "a3", "b3", "a4", "b4", "a5", "b5", "assistant:"]


def test_a_window_of_none_shows_only_what_is_pinned() -> None:
    assert context("s", ["a", "b", "c"], window=0, pinned=1) == ["s", "a"]
    assert context("s", ["a", "b", "c"], window=0, pinned=0) == ["s"]


@given(EXCHANGES, st.integers(0, 14), st.integers(0, 2))
def test_a_window_as_wide_as_the_conversation_changes_nothing(
    exchanges: list[list[int]], more: int, pinned: int
) -> None:
    whole = context([0], exchanges, window=None, pinned=pinned)
    assert context([0], exchanges, window=len(exchanges) + more, pinned=pinned) == whole


@given(EXCHANGES, st.integers(0, 5), st.integers(0, 2))
def test_up_to_window_and_pinned_exchanges_each_context_begins_with_the_one_before(
    exchanges: list[list[int]], window: int, pinned: int
) -> None:
    """Which is why the first turns of a trajectory can share a training row."""
    contexts = [context([0], exchanges[:n], window=window, pinned=pinned) for n in range(len(exchanges) + 1)]
    for shorter, longer in pairwise(contexts[: window + pinned + 1]):
        assert longer[: len(shorter)] == shorter


@given(EXCHANGES, st.integers(0, 5), st.integers(0, 2))
def test_what_is_kept_is_in_order_and_bounded(exchanges: list[list[int]], window: int, pinned: int) -> None:
    numbered = [[(place, item) for item in exchange] for place, exchange in enumerate(exchanges)]
    seen = context([], numbered, window=window, pinned=pinned)
    assert seen == sorted(seen, key=lambda item: item[0])
    assert len({place for place, _ in seen}) == min(len(exchanges), window + pinned)
