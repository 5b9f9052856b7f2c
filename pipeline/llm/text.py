"""Reading what models write: thinking parts, fenced blocks, JSON with small faults, replies in pieces."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_THINK = re.compile(r"<(think|thinking|reasoning)>(.*?)(?:</\1>|\Z)", re.S)
_THINK_END = re.compile(r"\A(.*?)</(?:think|thinking|reasoning)>", re.S)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:\n```|\Z)", re.S)


class Unreadable(ValueError):
    """A reply that is not what was asked for. The message is written for the model that is to correct it."""


@dataclass(frozen=True, slots=True)
class Json:
    """A value read from a reply. `repaired` says that the text was not quite JSON."""

    value: Any
    repaired: bool


def split_thinking(text: str) -> tuple[str, str]:
    """`(thinking, rest)` of a reply of a reasoning model.

    Knows `<think>…</think>` (and `<thinking>`, `<reasoning>`) at the start of the reply, left open where the reply
    ends inside it, and without its opening tag where the server's chat template put that into the prompt.
    """
    body = text.lstrip()
    if opened := _THINK.match(body):
        return opened.group(2).strip(), body[opened.end() :].lstrip("\n")
    if (closed := _THINK_END.match(body)) and not re.search(r"<(think|thinking|reasoning)>", closed.group(1)):
        return closed.group(1).strip(), body[closed.end() :].lstrip("\n")
    return "", text


def unfence(text: str) -> str:
    """The longest fenced block of a reply, or the whole reply where there is none."""
    blocks = _FENCE.findall(text)
    return max(blocks, key=len) if blocks else text.strip()


def read_json(text: str) -> Json:
    """The JSON object or array in a reply, also where it is fenced, surrounded by words, or slightly broken.

    Raises Unreadable where there is none, or where it stops in the middle: a cut value is never completed by guessing.
    """
    candidate = text.strip()
    if not candidate.startswith(("{", "[")):
        candidate = unfence(text).strip()
    found = re.search(r"^\s*([{\[])", candidate, re.M) or re.search(r"([{\[])", candidate)
    if not found:
        raise Unreadable("The reply contains no JSON. Reply with one JSON document and nothing else.")
    candidate = candidate[found.start(1) :]
    try:
        lenient = json.JSONDecoder(strict=False)  # a raw newline inside a string is common and harmless
        return Json(lenient.raw_decode(candidate)[0], repaired=False)
    except json.JSONDecodeError as error:
        fault = error
    candidate = candidate[: max(candidate.rfind("}"), candidate.rfind("]")) + 1]
    if not candidate or _open_at_end(candidate):
        raise Unreadable("The JSON stops in the middle. Reply with the complete document.")
    import json_repair

    value = json_repair.loads(candidate, skip_json_loads=True)
    if not isinstance(value, dict | list) or not value:
        raise Unreadable(f"The reply is not valid JSON ({fault}). Reply with one valid JSON document.")
    return Json(value, repaired=True)


def _open_at_end(text: str) -> bool:
    """Whether a bracket or a string is left open in text that should be one JSON value."""
    depth, quoted, escaped = 0, False, False
    for char in text:
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
    return quoted or depth > 0


def joined(first: str, rest: str, *, least: int = 16, most: int = 2000) -> str:
    """A reply and its continuation as one text.

    Models that go on tend to open a new fence, or to repeat the last words: an overlap of at least `least` (and at
    most `most`) characters is kept once.
    """
    if first.count("```") % 2 == 1 and rest.lstrip().startswith("```"):
        rest = rest.lstrip().partition("\n")[2]
    for size in range(min(len(first), len(rest), most), least - 1, -1):
        if first.endswith(rest[:size]):
            return first + rest[size:]
    return first + rest


def problems_with(value: Any, schema: dict[str, Any], *, limit: int = 8) -> list[str]:
    """Where a value departs from a JSON schema, as sentences with the path; at most `limit` of them."""
    import jsonschema

    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(value), key=lambda error: [str(step) for step in error.absolute_path])
    return [f"at {error.json_path}: {_trimmed(error.message)}" for error in errors[:limit]]


def _trimmed(message: str, limit: int = 200) -> str:
    return message if len(message) <= limit else f"{message[:limit]}…"
