"""Environments over MCP, seen through the SDK's own client over both transports."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.loopback import listen, port_of
from pipeline.model import Author, AuthorKind, Environment, Part, TableRows, TableSchema
from pipeline.runtime.host import Host, HostedProgram, Instance
from pipeline.runtime.mcp_server import http_app, serve_http

CODE = """
import os
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, Integer, Text, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

print("a line on stdout while loading")
engine = create_engine(os.getenv("DATABASE_PATH", "sqlite:///notes.db"), connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(bind=engine)
Base = declarative_base()


class Note(Base):
    __tablename__ = "notes"
    id = Column(Integer, primary_key=True)
    text = Column(Text, nullable=False)


Base.metadata.create_all(engine)
app = FastAPI()


class NewNote(BaseModel):
    text: str


@app.get("/notes", operation_id="list_notes", summary="List all notes")
async def list_notes():
    print("a line on stdout while answering")
    session = SessionLocal()
    return {"notes": [note.text for note in session.query(Note).order_by(Note.id)]}


@app.post("/notes", operation_id="add_note", summary="Add a note")
async def add_note(body: NewNote):
    session = SessionLocal()
    note = Note(text=body.text)
    session.add(note)
    session.commit()
    return {"id": note.id}


@app.get("/notes/{note_id}", operation_id="get_note", summary="Get one note")
async def get_note(note_id: int):
    raise HTTPException(status_code=404, detail=f"Note {note_id} not found")


if __name__ == "__main__":
    import uvicorn
    uvicorn.run(app)
"""

NOTES = Environment(
    "notes",
    title="Notes",
    description="A place to keep notes.",
    tasks=("Read the notes.", "Add a note that says hello."),
    schema=(TableSchema("notes", "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);"),),
    sample=(TableRows("notes", ("INSERT INTO notes (id, text) VALUES (1, 'first');",)),),
    code=CODE,
)


@pytest.fixture(scope="module")
def program() -> Iterator[HostedProgram]:
    with Host() as host, host.program(NOTES) as program:
        yield program


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that holds the notes."""
    folder = tmp_path_factory.mktemp("workspace")
    for name in ("databases", "runs", "logs"):
        (folder / name).mkdir()
    author = Author(AuthorKind.person, "test")
    parts = {
        Part.scenario: json.dumps({"name": NOTES.title, "description": NOTES.description}),
        Part.tasks: json.dumps(NOTES.tasks),
        Part.schema: json.dumps({"tables": [{"name": "notes", "ddl": NOTES.schema[0].ddl, "indexes": []}]}),
        Part.sample: json.dumps(
            {"tables": [{"table_name": "notes", "insert_statements": list(NOTES.sample[0].inserts)}]}
        ),
        Part.code: CODE,
    }
    with Catalog.open(folder / "catalog.db") as catalog:
        for part, content in parts.items():
            catalog.put("notes", part, content, author=author, title=NOTES.title)
    return folder


class Watched:
    """A program that remembers the instances it gave out and which of them are open."""

    def __init__(self, program: HostedProgram) -> None:
        self._program = program
        self.tools = program.tools
        self.open: set[Instance] = set()
        self.closed = asyncio.Event()

    def instance(self) -> Instance:
        instance = self._program.instance()
        self.open.add(instance)
        close = instance.close

        def watched_close() -> None:
            close()
            self.open.discard(instance)
            self.closed.set()

        instance.close = watched_close
        return instance


@asynccontextmanager
async def served(program: Any, **options: Any) -> AsyncGenerator[str]:
    """The URL of an environment served over HTTP."""
    with listen() as listener:
        serving = asyncio.create_task(serve_http(http_app(NOTES, program, **options), listener))
        try:
            yield f"http://127.0.0.1:{port_of(listener)}/mcp"
        finally:
            serving.cancel()
            await asyncio.wait({serving})


def stdio(workspace: Path, *arguments: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "studio.cli", "serve", "notes", "--workspace", str(workspace), *arguments],
    )


async def call(client: Client, tool: str, **arguments: Any) -> tuple[Any, bool]:
    """A tool's result (parsed where it is JSON) and whether it is an error."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    try:
        return json.loads(content.text), bool(result.is_error)
    except ValueError:
        return content.text, bool(result.is_error)


async def test_two_http_sessions_do_not_see_each_others_writes(program: HostedProgram) -> None:
    async with served(program) as url, Client(url) as one, Client(url) as other:
        assert await call(one, "add_note", text="mine") == ({"id": 2}, False)
        assert await call(other, "list_notes") == ({"notes": ["first"]}, False)
        await asyncio.gather(call(one, "add_note", text="more"), call(other, "add_note", text="theirs"))
        assert await call(one, "list_notes") == ({"notes": ["first", "mine", "more"]}, False)
        assert await call(other, "list_notes") == ({"notes": ["first", "theirs"]}, False)
    async with served(program) as url, Client(url) as later:
        assert await call(later, "list_notes") == ({"notes": ["first"]}, False)


async def test_two_stdio_sessions_do_not_see_each_others_writes(workspace: Path) -> None:
    async with Client(stdio(workspace)) as one, Client(stdio(workspace)) as other:
        assert await call(one, "add_note", text="mine") == ({"id": 2}, False)
        assert await call(one, "list_notes") == ({"notes": ["first", "mine"]}, False)
        assert await call(other, "list_notes") == ({"notes": ["first"]}, False)


async def test_tools_are_listed_as_the_environment_has_them(program: HostedProgram) -> None:
    async with served(program) as url, Client(url) as client:
        listed = (await client.list_tools()).tools
        assert [(tool.name, tool.description, tool.input_schema) for tool in listed] == [
            (tool.name, tool.description, tool.input_schema) for tool in program.tools
        ]
        assert {tool.name for tool in listed} == {"list_notes", "add_note", "get_note"}


async def test_failures_are_results_marked_as_errors(program: HostedProgram) -> None:
    async with served(program) as url, Client(url) as client:
        instance = program.instance()
        for tool, arguments in (("get_note", {"note_id": 7}), ("add_note", {}), ("no_such_tool", {})):
            text, failed = await call(client, tool, **arguments)
            assert failed
            reply = instance.call(tool, arguments)
            assert not reply.ok
            assert text == reply.text
        assert await call(client, "list_notes") == ({"notes": ["first"]}, False)


async def test_the_server_says_what_it_is_and_what_the_task_is(program: HostedProgram) -> None:
    async with served(program, task=1) as url, Client(url) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.title) == ("notes", "Notes")
        assert client.instructions == "A place to keep notes.\n\nTask: Add a note that says hello."
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["task"]
        (message,) = (await client.get_prompt("task")).messages
        assert isinstance(message.content, TextContent)
        assert message.content.text == "Add a note that says hello."
        with pytest.raises(MCPError, match="no prompt 'other'"):
            await client.get_prompt("other")
    async with served(program) as url, Client(url) as client:
        assert client.instructions == "A place to keep notes."
        assert client.server_capabilities.prompts is None


def test_a_task_there_is_not_is_said(program: HostedProgram) -> None:
    with pytest.raises(UserError, match="notes has no task 2; it has tasks 0 to 1"):
        http_app(NOTES, program, task=2)


async def test_an_instance_is_freed_when_its_session_ends(program: HostedProgram) -> None:
    watched = Watched(program)
    async with served(watched) as url, Client(url) as one:
        await call(one, "list_notes")
        async with Client(url) as other:
            await call(other, "list_notes")
            assert len(watched.open) == 2
        await asyncio.wait_for(watched.closed.wait(), 10)
        assert len(watched.open) == 1
        assert await call(one, "list_notes") == ({"notes": ["first"]}, False)


async def test_an_instance_is_freed_when_its_client_is_killed(program: HostedProgram) -> None:
    watched = Watched(program)
    async with served(watched, idle_s=0.5) as url:
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, url, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert client.stdout is not None
        assert await asyncio.wait_for(client.stdout.readline(), 30) == b"called\n"
        assert len(watched.open) == 1
        client.kill()
        await client.wait()
        await asyncio.wait_for(watched.closed.wait(), 10)
        assert watched.open == set()


CLIENT = """
import asyncio, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1]) as client:
        await client.call_tool("list_notes", {})
        print("called", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_client_without_sessions_is_told_to_shake_hands(program: HostedProgram) -> None:
    async with served(program) as url:
        with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesExc(MCPError, match="starts with `initialize`"))):
            async with Client(url, mode="2026-07-28") as client:
                await client.call_tool("list_notes", {})


@pytest.mark.parametrize(("header", "status"), [("Host", 421), ("Origin", 403)])
async def test_a_page_of_another_site_is_refused(program: HostedProgram, header: str, status: int) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Accept": "application/json, text/event-stream", header: "http://evil.example"}
    async with served(program) as url, httpx.AsyncClient() as browser:
        assert (await browser.post(url, json=request, headers=headers)).status_code == status


def test_over_stdio_stdout_carries_messages_and_nothing_else(workspace: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_notes", "arguments": {}}},
    ]
    server = stdio(workspace)
    with subprocess.Popen(
        [server.command, *server.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(timeout=20) == 0
    assert [answer["id"] for answer in answers] == [1, 2]
    assert json.loads(answers[1]["result"]["content"][0]["text"]) == {"notes": ["first"]}
    assert rest == ""
