"""One agent in one instance: what is done, what is shown, when it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.llm.request import ToolCall
from pipeline.runtime.host import Host, HostedProgram
from pipeline.runtime.limits import Limits
from tests.train.pantry import CODE, FOREVER, pantry
from train.episode import Episode, Shown
from train.protocol import NOT_MADE, Form, Said, call_text, list_text
from train.rules import Rules
from train.trajectory import End

LIST = list_text()
LOOK = call_text("list_items", {})
SET = call_text("set_amount", {"item_id": 1, "amount": 5})


async def play(program: HostedProgram, *turns: str | Said, **rules: Any) -> Episode:
    chosen = Rules(**rules)
    with program.instance() as instance:
        episode = Episode(
            "Set the amount of rice to 5.", instance, Shown.of(program.tools, chosen), chosen, call_timeout_s=2.0
        )
        for turn in turns:
            assert episode.end is None, f"it ended already: {episode.end} {episode.detail}"
            await episode.take(Said(turn) if isinstance(turn, str) else turn)
    return episode


async def test_an_agent_lists_the_tools_calls_them_and_answers(program: HostedProgram) -> None:
    episode = await play(program, LIST, LOOK, SET, "<think>Done?</think>It is done.")
    listed, looked, was_set, answered = episode.turns
    assert episode.end is End.answered
    assert episode.answer == "It is done."
    assert (listed.shown or "").startswith("Available MCP Tools (3 tools):")
    assert '"name": "rice"' in (looked.shown or "")
    assert (was_set.tool, was_set.arguments, was_set.status) == ("set_amount", {"item_id": 1, "amount": 5}, 200)
    assert answered.shown is None


async def test_what_the_agent_sees_is_windowed(program: HostedProgram) -> None:
    episode = await play(program, LIST, *[LOOK] * 5, window=2)
    assert [m.role for m in episode.context()] == ["system", "user", *["assistant", "tool"] * 3]
    assert episode.context()[2].content == LIST


@pytest.mark.parametrize(
    ("turns", "slip"),
    [
        ([LOOK], "not_listed"),
        (["It is done."], "not_listed"),
        ([LIST, LIST], "listed_again"),
        ([LIST, "It is done."], "only_listed"),
        ([LIST, call_text("remove", {})], "unknown_tool"),
        ([LIST, call_text("set_amount", {"item_id": 1})], "bad_arguments"),
        ([LIST, call_text("set_amount", {"item_id": 1, "amount": -1})], "bad_arguments"),
        ([LIST, '<tool_call>{"name": "search"}</tool_call>'], "unknown_function"),
        ([LIST, "<tool_call>look</tool_call>"], "unreadable_call"),
        ([LIST, Said(SET, cut=True)], "cut_off"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_slip_ends_the_rollout(program: HostedProgram, turns: list[str | Said], slip: str) -> None:
    episode = await play(program, *turns)
    assert (episode.end, episode.detail, episode.turns[-1].slip) == (End.format_error, slip, slip)


async def test_thinking_may_be_required(program: HostedProgram) -> None:
    episode = await play(program, f"<think>First the tools.</think>{LIST}", LOOK, require_thinking=True)
    assert (episode.end, episode.detail) == (End.format_error, "no_thinking")


async def test_a_turn_that_was_cut_off_does_nothing(program: HostedProgram) -> None:
    episode = await play(program, LIST, Said(SET, cut=True))
    assert episode.turns[-1].status is None


async def test_where_slips_are_told_the_agent_goes_on(program: HostedProgram) -> None:
    turns = [LOOK, LIST, LIST, call_text("remove", {}), '<tool_call>{"name": "search"}</tool_call>', SET, "Done."]
    episode = await play(program, *turns, stop_on_slip=False)
    assert episode.end is End.answered
    assert [turn.slip for turn in episode.turns] == [
        "not_listed", None, "listed_again", "unknown_tool", "unknown_function", None, None,
    ]  # fmt: skip
    assert episode.turns[3].shown == "Error: Tool 'remove' not found"
    assert episode.turns[4].shown == "Error: Unknown tool 'search'. Only 'list_tools' and 'call_tool' are available."


async def test_a_refusal_by_the_environments_rules_is_not_a_slip(program: HostedProgram) -> None:
    episode = await play(program, LIST, call_text("set_amount", {"item_id": 9, "amount": 1}), "There is none.")
    assert (episode.end, episode.turns[1].fault, episode.turns[1].slip) == (End.answered, "client_error", None)


async def test_a_fault_of_the_environment_ends_the_rollout(program: HostedProgram) -> None:
    episode = await play(program, LIST, call_text("break_down", {}))
    assert (episode.end, episode.turns[-1].fault) == (End.environment_error, "server_error")
    assert "the shelf is broken" in episode.detail


async def test_a_call_that_takes_too_long_is_a_fault_of_the_environment() -> None:
    slow = replace(pantry(), code=CODE + FOREVER)
    with Host(limits=Limits(call_timeout_s=0.3)) as host, host.program(slow) as program:
        episode = await play(program, LIST, call_text("wait_forever", {}))
    assert (episode.end, episode.turns[-1].fault) == (End.environment_error, "timeout")
    assert episode.turns[-1].shown == "Error: Tool call timed out after 2.0s"


async def test_faults_of_the_environment_may_be_told_instead(program: HostedProgram) -> None:
    episode = await play(program, LIST, call_text("break_down", {}), "It is broken.", stop_on_fault=False)
    assert episode.end is End.answered


async def test_turns_and_tokens_are_limited(program: HostedProgram) -> None:
    assert (await play(program, LIST, LOOK, LOOK, max_turns=3)).end is End.turn_limit
    long = Said(LOOK, tokens_in=900, tokens_out=100)
    assert (await play(program, LIST, long, max_context=1000)).end is End.context_limit


async def test_an_answer_in_the_last_turn_is_an_answer(program: HostedProgram) -> None:
    assert (await play(program, LIST, LOOK, "Two.", max_turns=3)).end is End.answered


async def test_native_calls_go_the_same_way(program: HostedProgram) -> None:
    look, set_it = ToolCall("a", "list_items", "{}"), ToolCall("b", "set_amount", '{"item_id": 1, "amount": 5}')
    episode = await play(
        program, Said("", calls=(look, set_it)), Said("", calls=(set_it,)), Said("Done."), form=Form.native
    )
    assert episode.end is End.answered
    assert [turn.tool for turn in episode.turns] == ["list_items", "set_amount", ""]
    assert [f["function"]["name"] for f in episode.shown.functions] == [t.name for t in program.tools]
    results = [m for m in episode.context() if m.role == "tool"]
    assert [(m.call_id, m.content == NOT_MADE) for m in results] == [("a", False), ("b", True), ("b", False)]


async def test_results_may_go_back_as_a_users_words(program: HostedProgram) -> None:
    episode = await play(program, LIST, LOOK, results_as="user")
    assert episode.context()[-1].role == "user"
    assert episode.context()[-1].content.startswith("Tool response:\n[")
