"""Tools are listed, and calls answered, in the very words of upstream's server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.model import Environment, normalise
from pipeline.runtime.engine import Engine
from pipeline.runtime.program import Program, load
from pipeline.runtime.tools import MAX_NAME
from tests.pipeline.runtime.programs import NOW, call, engine, loaded, program
from tests.pipeline.runtime.record_upstream import digest

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "recorded" / "sample_app.json").read_text("utf-8"))
REAL_LISTINGS = json.loads((HERE / "recorded" / "real_listings.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def sample_app() -> Program:
    return load((HERE / "sample_app.py").read_text("utf-8"), name="greenhouse", template=b"", now=NOW)


def listing(listed: Program) -> list[dict[str, Any]]:
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema} for tool in listed.tools
    ]


def test_listing_is_upstreams_to_the_order_of_keys(sample_app: Program) -> None:
    assert json.dumps(listing(sample_app)) == json.dumps(RECORDED["tools"])
    assert sample_app.findings == ()


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "through the app"])
def test_texts_are_upstreams(sample_app: Program, direct: bool) -> None:
    running, state = Engine(sample_app), 0
    for tick, recorded in enumerate(RECORDED["calls"]):
        state, reply = running.call(state, tick, recorded["tool"], recorded["arguments"], timeout=10, direct=direct)
        assert (reply["text"], reply["error"] is not None) == (recorded["text"], recorded["error"]), recorded


def test_listings_of_real_environments_are_upstreams(real: list[Environment]) -> None:
    recorded = {normalise(name): entry for name, entry in REAL_LISTINGS.items()}
    for environment in real:
        found = loaded(environment)
        shadowed = {entry.tool.name for entry in found.routes.values() if entry.shadowed}
        tools = [tool for tool in listing(found) if tool["name"] not in taken_over(found, shadowed)]
        assert {"tools": len(tools), "sha256": digest(tools)} == recorded[environment.name], environment.name


def taken_over(found: Program, shadowed: set[str]) -> set[str]:
    """Tools whose (method, path) a later one has: upstream does not list them."""
    places = {(found.routes[name].tool.method, found.routes[name].tool.path) for name in shadowed}
    return {tool.name for tool in found.tools if (tool.method, tool.path) in places} - shadowed


def test_two_operations_on_one_path_are_two_tools_that_do_what_they_say() -> None:
    running = engine(
        """
        @app.post("/pledges", operation_id="pledge_once")
        async def once(amount: int = Body(..., embed=True)):
            return "once"

        @app.post("/pledges", operation_id="pledge_monthly")
        async def monthly(amount: int = Body(...), start: str = Body(...)):
            return "monthly"

        @app.get("/pledges/{id}", operation_id="pledge")
        async def one(id: str):
            return id

        @app.get("/pledges/latest", operation_id="latest_pledge")
        async def latest():
            return "the latest"
        """
    )
    assert [tool.name for tool in running.program.tools] == [
        "pledge_once",
        "pledge_monthly",
        "pledge",
        "latest_pledge",
    ]
    for direct in (True, False):
        texts = [
            running.call(0, 0, tool, {"amount": 1, "start": "now"}, timeout=10, direct=direct)[1]["text"]
            for tool in ("pledge_once", "pledge_monthly", "latest_pledge")
        ]
        assert texts == ['"once"', '"monthly"', '"the latest"']
    assert [(found.code, found.where) for found in running.program.findings] == [
        ("shadowed_route", "code: pledge_monthly"),
        ("shadowed_route", "code: latest_pledge"),
    ]


def test_a_value_that_names_another_route_goes_where_a_server_would_send_it() -> None:
    running = engine(
        """
        @app.get("/users/me", operation_id="me")
        async def me():
            return "it is me"

        @app.get("/users/{name}", operation_id="user")
        async def user(name: str):
            return name
        """
    )
    assert call(running, "user", name="kit")["body"] == "kit"
    assert call(running, "user", name="me")["body"] == "it is me"
    assert running.program.findings == ()


LONG = "a_very_long_operation_name_that_goes_on_and_on_for_more_than_64_characters_"


def test_names_that_cannot_be_called_are_changed_without_collision_and_answer() -> None:
    handlers = "\n".join(
        f"@app.get('/r{number}', operation_id={name!r})\nasync def handler_{number}():\n    return {number}\n"
        for number, name in enumerate(
            [f"{LONG}1", f"{LONG}2", "get item", "get_item", "größe", "get/item", "same", "same"]
        )
    )
    running, again = engine(handlers), program(handlers)
    names = [tool.name for tool in running.program.tools]
    assert names == [tool.name for tool in again.tools]
    assert len(set(names)) == 8
    assert all(len(name) <= MAX_NAME and name.replace("_", "a").replace("-", "a").isalnum() for name in names)
    assert all(name.isascii() for name in names)
    assert names[3] == "get_item"
    assert [call(running, name)["body"] for name in names] == list(range(8))
    assert call(running, "same")["body"] == 7, "of two operations with one id the last keeps the name, as upstream"
    codes = [found.code for found in running.program.findings]
    assert codes == ["tool_name"] * 5 + ["duplicate_operation"]


def test_a_schema_that_upstream_chokes_on_is_reported_and_the_tool_works() -> None:
    running = engine(
        """
        @app.get("/items/{item_id}", operation_id="item")
        async def item(item_id: int = Path(..., examples={"example": {"value": 15}})):
            return item_id
        """
    )
    (found,) = running.program.findings
    assert (found.code, found.where) == ("tool_schema", "code: item")
    assert call(running, "item", item_id=15)["body"] == 15
    assert call(running, "item", item_id="x")["text"] == "Input validation error: 'x' is not of type 'integer'"


def test_schemas_that_refer_to_themselves_are_cut_where_they_repeat() -> None:
    running = engine(
        """
        class Node(BaseModel):
            name: str
            children: List["Node"] = []

        @app.post("/trees", operation_id="plant")
        async def plant(node: Node) -> int:
            return len(node.children)
        """
    )
    (tool,) = running.program.tools
    children = tool.input_schema["properties"]["children"]
    assert children["items"]["properties"]["children"]["items"] == {}
    assert call(running, "plant", name="a", children=[{"name": "b"}])["body"] == 1


def test_tools_say_where_they_come_from() -> None:
    handlers = """
@app.get(
    "/things",
    tags=["things", "all"],
    operation_id="things",
)
async def list_things():
    return []

@app.post("/things", operation_id="add_thing")
def add_thing():
    return 1
"""
    reading, writing = program(handlers, head="from fastapi import FastAPI\napp = FastAPI()\n").tools
    assert (reading.line, reading.method, reading.path, reading.group, reading.writes) == (
        9,
        "GET",
        "/things",
        "things",
        False,
    )
    assert (writing.line, writing.group, writing.writes) == (13, "", True)


def test_routes_of_included_routers_are_tools() -> None:
    running = engine(
        """
        from fastapi import APIRouter, Depends

        def limit():
            return 3

        router = APIRouter(prefix="/inner", tags=["inner"])

        @router.get("/x/{n}", operation_id="x")
        async def x(n: int):
            return n + 1

        app.include_router(router, prefix="/outer", dependencies=[Depends(limit)])
        """
    )
    (tool,) = running.program.tools
    assert (tool.path, tool.group) == ("/outer/inner/x/{n}", "inner")
    assert call(running, "x", n=1)["body"] == 2
