"""Records what upstream's MCP server shows an agent: fastapi-mcp 0.4.0 on FastAPI 0.115 and mcp 1.x.

Those versions do not install beside ours, so they get an environment of their own:

    python3.11 -m venv /tmp/upstream
    /tmp/upstream/bin/pip install 'fastapi-mcp==0.4.0' 'fastapi==0.115.*' 'mcp<2' sqlalchemy httpx email-validator
    cd tests/pipeline/runtime
    PYTHONHASHSEED=1 /tmp/upstream/bin/python record_upstream.py program sample_app.py recorded/sample_app.calls.json \
        recorded/sample_app.json
    PYTHONHASHSEED=1 /tmp/upstream/bin/python record_upstream.py listings ../../../../shared/awm-real \
        recorded/real_listings.json

`program` takes a FastAPI program (its `app`) and a JSON list of [tool, arguments], and writes {"tools": [{"name",
"description", "input_schema"}], "calls": [{"tool", "arguments", "text", "error"}]}; the calls are made one after the
other on one new database (or on a copy of a fourth argument). `listings` takes a folder in the AWM release layout
and writes, by scenario, the number of its tools and a digest of their listing: its content is not ours to keep.

Where a parameter has several types, upstream writes one of them beside `anyOf`, the first of a set, so which one
depends on the hash seed; with seed 1 it is the one that ours always takes.
"""

import asyncio
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path


def record_program(program: str, calls: str, output: str, database: str | None = None) -> None:
    """Run a program, list its tools, make the calls, write what came back."""
    recorded = run(Path(program).read_text(), json.loads(Path(calls).read_text()), database)
    write(output, recorded)


def record_listings(folder: str, output: str) -> None:
    """Write the digest of every scenario's listing."""
    lines = (Path(folder) / "gen_envs.jsonl").read_text().splitlines()
    programs = {row["scenario"]: row["full_code"] for row in map(json.loads, lines)}
    listings = {name: run(code, [])["tools"] for name, code in sorted(programs.items())}
    write(output, {name: {"tools": len(tools), "sha256": digest(tools)} for name, tools in listings.items()})


def digest(tools: list) -> str:
    """The sha256 of a listing, as hex digits."""
    return hashlib.sha256(json.dumps(tools, ensure_ascii=False).encode()).hexdigest()


def write(output: str, recorded: dict) -> None:
    """Write JSON that reads well in a diff."""
    Path(output).write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


def run(code: str, calls: list, database: str | None = None) -> dict:
    """What a client of a program's MCP server sees."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.db"
        if database is not None:
            shutil.copy(database, path)
        os.environ["DATABASE_PATH"] = f"sqlite:///{path}"
        sys.modules["recorded_program"] = type(sys)("recorded_program")
        namespace = {"__name__": "recorded_program"}
        exec(compile(code, "<recorded>", "exec"), namespace)
        return asyncio.run(record(namespace["app"], calls))


async def record(app: object, calls: list) -> dict:
    """List the app's tools and call them, through the SDK's own client."""
    from fastapi_mcp import FastApiMCP
    from mcp.shared.memory import create_connected_server_and_client_session

    server = FastApiMCP(app).server
    async with create_connected_server_and_client_session(server) as client:
        listed = (await client.list_tools()).tools
        made = []
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            text = "".join(part.text for part in result.content)
            made.append({"tool": tool, "arguments": arguments, "text": text, "error": bool(result.isError)})
    tools = [{"name": t.name, "description": t.description, "input_schema": t.inputSchema} for t in listed]
    return {"tools": tools, "calls": made}


if __name__ == "__main__":
    {"program": record_program, "listings": record_listings}[sys.argv[1]](*sys.argv[2:])
