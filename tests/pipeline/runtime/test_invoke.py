"""A call answered directly and one that goes through the whole application are the same call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.model import Environment
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.engine import Engine
from pipeline.runtime.invoke import is_plain
from pipeline.runtime.program import load
from pipeline.runtime.tools import Tool
from tests.pipeline.runtime.programs import NOW, engine, loaded

SAMPLE_APP = load((Path(__file__).parent / "sample_app.py").read_text("utf-8"), name="invoked", template=b"", now=NOW)

ODD = (None, True, False, -7, 0, 999_999, 2.5, "nonsense", "", " ", "é☃/?#%&=+", "..", [], [1], {}, {"a": 1}, "\ud800")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def same_both_ways(running: Engine, tool: str, arguments: dict[str, Any], *, state: int = 0, tick: int = 0) -> int:
    """The state after a call, which has been made in both ways."""
    answers = [running.call(state, tick, tool, arguments, timeout=10, direct=direct) for direct in (True, False)]
    (direct_state, direct), (app_state, through_app) = answers
    for reply in (direct, through_app):
        del reply["ms"]
    assert json.dumps(direct) == json.dumps(through_app), (tool, arguments)
    assert direct_state == app_state, (tool, arguments)
    return direct_state


def odd_arguments(tool: Tool, template: bytes, seed: int) -> list[dict[str, Any]]:
    """Good arguments, and the same with some wrong, with one missing and one too many."""
    good = sample_arguments(tool.input_schema, template, seed=seed)
    names = list(tool.input_schema["properties"])[:2]
    wrong = [{**good, name: ODD[(2 * seed + number) % len(ODD)]} for number, name in enumerate(names)]
    missing = [{key: value for key, value in good.items() if key != name} for name in list(good)[:1]]
    return [good, *wrong, *missing, {**good, "unheard_of": [1]}]


def test_all_tools_of_real_environments_answer_the_same_both_ways(real: list[Environment]) -> None:
    for environment in real:
        found = loaded(environment)
        running, state = Engine(found), 0
        assert all(is_plain(found.app, entry) for entry in found.routes.values())
        for tick, tool in enumerate(found.tools):
            for arguments in odd_arguments(tool, found.template, seed=tick):
                state = same_both_ways(running, tool.name, arguments, state=state, tick=tick)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SAMPLE_APP.tools), st.integers(0, 50), st.data())
def test_any_json_as_arguments_gives_the_same_both_ways(tool: Tool, seed: int, data: st.DataObject) -> None:
    arguments = sample_arguments(tool.input_schema, SAMPLE_APP.template, seed=seed)
    names = [*tool.input_schema["properties"], "other"]
    arguments.update(data.draw(st.dictionaries(st.sampled_from(names), JSON, max_size=2)))
    same_both_ways(Engine(SAMPLE_APP), tool.name, arguments)


HANDLERS = """
import asyncio
from fastapi import BackgroundTasks
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response, StreamingResponse

@app.get("/suspends", operation_id="suspends")
async def suspends():
    first = asyncio.create_task(asyncio.sleep(3600, "an hour"))
    await asyncio.sleep(1)
    return [await asyncio.wait_for(first, 4000), await asyncio.to_thread(sum, [1, 2])]

@app.get("/runs", operation_id="runs")
def runs():
    async def inner():
        await asyncio.sleep(0)
        return "ran"
    return asyncio.run(inner())

@app.get("/never", operation_id="never")
async def never():
    await asyncio.Event().wait()

@app.get("/impatient", operation_id="impatient")
async def impatient():
    async with asyncio.timeout(1):
        await asyncio.sleep(2)

@app.get("/streams", operation_id="streams")
async def streams():
    async def pieces():
        yield b"a"
        await asyncio.sleep(1)
        yield b"b"
    return StreamingResponse(pieces(), media_type="text/plain")

@app.get("/streams_plainly", operation_id="streams_plainly")
def streams_plainly():
    return StreamingResponse(iter(["x", "y"]), media_type="text/plain")

@app.get("/moved", operation_id="moved")
async def moved():
    return RedirectResponse("/elsewhere")

@app.get("/latin", operation_id="latin")
async def latin():
    return Response("é".encode("latin-1"), media_type="text/plain; charset=latin-1")

@app.get("/exits", operation_id="exits")
async def exits():
    raise SystemExit(3)

@app.get("/cancelled", operation_id="cancelled")
async def cancelled():
    raise asyncio.CancelledError

@app.get("/afterwards", operation_id="afterwards")
async def afterwards(tasks: BackgroundTasks):
    tasks.add_task(add, "made afterwards")
    asyncio.create_task(later())
    return "before"

async def later():
    await asyncio.sleep(0.5)
    add("made later")
    await asyncio.sleep(10)
    add("made far too late")

def add(name):
    session = SessionLocal()
    session.add(Item(name=name))
    session.commit()

@app.get("/names", operation_id="names")
def names():
    return [item.name for item in SessionLocal().query(Item).order_by(Item.id)]

@app.get("/recurses", operation_id="recurses")
def recurses():
    return recurses()

@app.get("/nan", operation_id="nan")
def nan() -> Dict[str, float]:
    return {"x": float("nan")}

@app.get("/between/{a}-{b}", operation_id="between")
def between(a: str, b: str):
    return [a, b]

@app.get("/nothing", operation_id="nothing", status_code=204)
def nothing():
    return {"ignored": True}

@app.get("/answers_500", operation_id="answers_500")
def answers_500():
    raise HTTPException(503, {"why": "closed"})

@app.get("/not_json", operation_id="not_json")
def not_json():
    return {"x": object()}

@app.get("/half_done", operation_id="half_done")
def half_done():
    add("half")
    raise KeyError("half done")
"""


@pytest.fixture(scope="module")
def unusual() -> Engine:
    return engine(HANDLERS)


@pytest.mark.parametrize(
    ("tool", "status", "text"),
    [
        ("suspends", 200, '[\n  "an hour",\n  3\n]'),
        ("runs", 200, '"ran"'),
        ("never", 500, "Error calling never. Status code: 500. Response: Internal Server Error"),
        ("impatient", 500, "Error calling impatient. Status code: 500. Response: Internal Server Error"),
        ("streams", 200, "ab"),
        ("streams_plainly", 200, "xy"),
        ("moved", 307, ""),
        ("latin", 200, "é"),
        ("exits", 500, "Error calling exits. Status code: 500. Response: Internal Server Error"),
        ("cancelled", 500, "Error calling cancelled. Status code: 500. Response: Internal Server Error"),
        ("afterwards", 200, '"before"'),
        ("recurses", 500, "Error calling recurses. Status code: 500. Response: Internal Server Error"),
        ("nothing", 204, ""),
        ("answers_500", 503, 'Error calling answers_500. Status code: 503. Response: {"detail":{"why":"closed"}}'),
        ("nan", 500, "Error calling nan. Status code: 500. Response: Internal Server Error"),
        ("not_json", 500, "Error calling not_json. Status code: 500. Response: Internal Server Error"),
        ("half_done", 500, "Error calling half_done. Status code: 500. Response: Internal Server Error"),
    ],
)
def test_unusual_handlers_answer_as_behind_a_server(unusual: Engine, tool: str, status: int, text: str) -> None:
    reply = unusual.call(0, 0, tool, {}, timeout=10)[1]
    assert (reply["status"], reply["text"]) == (status, text)
    same_both_ways(unusual, tool, {})


def test_values_that_can_be_read_in_two_ways_are_read_as_the_router_reads_them(unusual: Engine) -> None:
    same_both_ways(unusual, "between", {"a": "1", "b": "2-3"})
    same_both_ways(unusual, "between", {"a": "1-2", "b": "3"})


def test_work_left_for_later_is_done_until_the_next_call(unusual: Engine) -> None:
    state, _ = unusual.call(0, 0, "afterwards", {}, timeout=10)
    assert unusual.call(state, 1, "names", {}, timeout=10)[1]["body"] == ["made afterwards", "made later"]


def test_what_was_committed_before_a_server_error_stays(unusual: Engine) -> None:
    state, reply = unusual.call(0, 0, "half_done", {}, timeout=10)
    assert reply["writes"]
    assert unusual.call(state, 1, "names", {}, timeout=10)[1]["body"] == ["half"]


MIDDLEWARE = """
from fastapi import Depends, Request
from fastapi.responses import JSONResponse

class Refused(Exception):
    pass

@app.exception_handler(Refused)
async def refused(request, error):
    return JSONResponse({"refused": str(error)}, status_code=403)

@app.middleware("http")
async def count(request: Request, call_next):
    request.state.seen = "yes"
    response = await call_next(request)
    return response

def session():
    opened = SessionLocal()
    try:
        yield opened
    finally:
        opened.close()

@app.get("/seen/{name}", operation_id="seen")
def seen(name: str, request: Request, opened=Depends(session)):
    if name == "nobody":
        raise Refused(name)
    opened.add(Item(name=name))
    opened.commit()
    return [request.state.seen, opened.query(Item).count()]
"""


def test_middleware_dependencies_and_handlers_of_exceptions_are_honoured() -> None:
    running = engine(MIDDLEWARE)
    state, reply = running.call(0, 0, "seen", {"name": "kit"}, timeout=10)
    assert reply["body"] == ["yes", 1]
    after, reply = running.call(state, 1, "seen", {"name": "nobody"}, timeout=10)
    assert (after, reply["status"], reply["body"]) == (state, 403, {"refused": "nobody"})
    assert reply["error"]["kind"] == "client_error"
