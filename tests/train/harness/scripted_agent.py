"""A pretended model for the harnesses' smoke presets: right where it is meant to be, and wrong where it is meant to be.

It answers alike in both protocols, from nothing but the request: natively where there are `tools`, in AWM's text where
the proxy's prompt is, and as τ²-bench's simulated user where a scenario is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.llm_server import Answer, Raw, Say
from train.protocol import SYSTEM, call_text, list_text

Call = tuple[str, dict[str, Any]]
Step = str | list[Call]
"""What is done in one turn: something said, or calls made."""

SCRIPT: dict[str, Sequence[Step]] = {
    # BFCL: simple_0 right, simple_1 wrong, parallel_0 right, irrelevance_0 right
    "Find the area of a triangle with a base of 10": [[("calculate_triangle_area", {"base": 10, "height": 5})]],
    "Calculate the factorial of 5": [[("math_factorial", {"number": 6})]],
    "Play songs from the artists Taylor Swift": [
        [
            ("spotify_play", {"artist": "Taylor Swift", "duration": 20}),
            ("spotify_play", {"artist": "Maroon 5", "duration": 15}),
        ]
    ],
    "Calculate the area of a triangle given": ["None of the functions does that."],
    # multi_turn_base_0 right
    "Move 'final_report.pdf' within document": [
        [("cd", {"folder": "document"})],
        [("mkdir", {"dir_name": "temp"})],
        [("mv", {"source": "final_report.pdf", "destination": "temp"})],
        "It is moved.",
    ],
    "Perform a detailed search using grep": [
        [("cd", {"folder": "temp"})],
        [("grep", {"file_name": "final_report.pdf", "pattern": "budget analysis"})],
        "Found.",
    ],
    "Upon identifying the requisite": [[("sort", {"file_name": "final_report.pdf"})], "Sorted."],
    "Move 'previous_report.pdf' in document": [
        [("cd", {"folder": ".."})],
        [("mv", {"source": "previous_report.pdf", "destination": "temp"})],
        [("cd", {"folder": "temp"})],
        [("diff", {"file_name1": "final_report.pdf", "file_name2": "previous_report.pdf"})],
        "Compared.",
    ],
    # multi_turn_base_1 wrong: its second turn does nothing
    "I am alex. Check if": [[("ls", {"a": True})], "There they are."],
    "Go to workspace directory": ["I would rather not."],
    "Investigate within 'log.txt'": ["I would rather not."],
    "Finally, show the last 20 lines": ["I would rather not."],
    # airline: 0, 1 and 2 right; 3 tells a wrong number; 4 pays what it should not
    "emma_kim_9957": ["I am sorry, that cannot be cancelled."],
    "raj_sanchez_7340": [
        [("get_user_details", {"user_id": "raj_sanchez_7340"})],
        [("get_reservation_details", {"reservation_id": "Q69X3R"})],
        "I am sorry, that cannot be cancelled.",
    ],
    "noah_muller_9847": [
        [("get_reservation_details", {"reservation_id": "4OG6T3"})],
        [("send_certificate", {"user_id": "noah_muller_9847", "amount": 50})],
        "You get a certificate.",
    ],
    "anya_garcia_5901": [[("get_reservation_details", {"reservation_id": "JMO1MG"})], "You may take 3 suitcases."],
    "sophia_silva_7557": [
        [("send_certificate", {"user_id": "sophia_silva_7557", "amount": 100})],
        "You get a certificate.",
    ],
    # the echo server: say_harbour right, say_two_words wrong
    "Echo the word harbour": [
        [("echo__echo_tool", {"text": "harbour"})],
        json.dumps({"thought": "done", "answer": json.dumps({"echoed": "harbour"})}),
    ],
    "Echo the words slow tide": [
        [("echo__echo_tool", {"text": "slow tide"})],
        json.dumps({"thought": "done", "answer": json.dumps({"echoed": "quick tide"})}),
    ],
}

PASSES = {
    "bfcl": {
        "simple_0": True,
        "simple_1": False,
        "parallel_0": True,
        "irrelevance_0": True,
        "multi_turn_base_0": True,
        "multi_turn_base_1": False,
    },
    "tau2": {"airline/0": True, "airline/1": True, "airline/2": True, "airline/3": False, "airline/4": False},
    "mcp-universe": {"echo/say_harbour": True, "echo/say_two_words": False},
}
"""What the harnesses must come to, by task."""


def answer(body: Mapping[str, Any]) -> Answer:
    """The answer to a request."""
    messages = body["messages"]
    system = str(messages[0].get("content") or "") if messages[0]["role"] == "system" else ""
    if system.startswith(SYSTEM):
        return _in_text(messages)
    if body.get("tools"):
        return _natively(messages)
    return _as_user(system, messages)


def _in_text(messages: Sequence[Mapping[str, Any]]) -> Answer:
    if not any(list_text() in str(message.get("content")) for message in messages if message["role"] == "assistant"):
        return _say(list_text())
    step = _step([message for message in messages if message.get("content") != list_text()])
    return _say(step if isinstance(step, str) else "\n".join(call_text(name, given) for name, given in step))


def _natively(messages: Sequence[Mapping[str, Any]]) -> Answer:
    step = _step(messages)
    if isinstance(step, str):
        return _say(step)
    calls = [
        {"id": f"c{len(messages)}x{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(step)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    document = {"id": "x", "object": "chat.completion", "created": 0, "model": "agent", "choices": [choice]}
    return Raw(json.dumps(document | {"usage": usage}).encode(), "application/json")


def _as_user(system: str, messages: Sequence[Mapping[str, Any]]) -> Answer:
    if not (found := re.search(r"\b[a-z]+_[a-z]+_\d{4}\b", system)):
        return _say("Hello.")  # the question whether the endpoint answers
    said = sum(message["role"] == "assistant" for message in messages)
    return _say("###STOP###" if said else f"My user id is {found.group()}. Please help me with what I came for.")


def _step(messages: Sequence[Mapping[str, Any]]) -> Step:
    """The next step of the script that the last known words of a user begin."""
    for number in range(len(messages) - 1, -1, -1):
        if messages[number]["role"] != "user":
            continue
        text = str(messages[number]["content"])
        known = [(text.rfind(words), words) for words in SCRIPT if words in text]
        if known:
            done = sum(message["role"] == "assistant" for message in messages[number + 1 :])
            steps = SCRIPT[max(known)[1]]
            return steps[done] if done < len(steps) else "That is all."
    return "Hello."


def _say(text: str) -> Say:
    return Say(text, streams=False)
