"""`awm-studio serve` and `awm-studio datasette`, as a person starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from mcp import Client

from curation.importers import import_awm
from pipeline.catalog import Catalog
from pipeline.loopback import listen, port_of
from pipeline.model import Author, AuthorKind, Part
from pipeline.runtime.host import Host
from pipeline.snapshots import snapshot_file
from pipeline.workspace import Workspace
from studio.datasette import DatasetteServer
from studio.environment_pages import EnvironmentPages

CODE = """
from fastapi import FastAPI

app = FastAPI()


@app.get("/hello", operation_id="hello", summary="Say hello")
async def hello():
    return {"said": "hello"}
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    author = Author(AuthorKind.person, "test")
    with Catalog.open(folder / "catalog.db") as catalog:
        for name, title in (("ferry", "Ferry office"), ("zoo", "City Zoo")):
            schema = {"tables": [{"name": "boats", "ddl": "CREATE TABLE boats (name TEXT)", "indexes": []}]}
            sample = {"tables": [{"table_name": "boats", "insert_statements": ["INSERT INTO boats VALUES ('Iris')"]}]}
            catalog.put(name, Part.schema, json.dumps(schema), author=author, title=title)
            catalog.put(name, Part.sample, json.dumps(sample), author=author)
            catalog.put(name, Part.code, CODE, author=author)
            catalog.put(name, Part.tasks, '["Greet."]', author=author)
    return folder


def command(workspace: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "studio.cli", "--workspace", str(workspace), *arguments]


@contextmanager
def started(workspace: Path, *arguments: str, **environ: str) -> Generator[subprocess.Popen[str]]:
    """A command that runs until Ctrl-C, which it must take as a normal end."""
    process = subprocess.Popen(
        command(workspace, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )
    try:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.communicate()


def failed(workspace: Path, *arguments: str) -> str:
    """What a command says that could not be done."""
    result = subprocess.run(
        command(workspace, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_datasette_prints_its_url_and_builds_what_is_opened(workspace: Path) -> None:
    with started(workspace, "datasette", SSH_CONNECTION="10.0.0.5 50022 192.0.2.7 22") as process:
        url = first_line(process)
        assert "2 environments" in httpx.get(url).text
        assert not (workspace / "databases" / "zoo.db").exists()
        assert httpx.get(f"{url}zoo/boats.json?_shape=array").json() == [{"rowid": 1, "name": "Iris"}]
        assert (workspace / "databases" / "zoo.db").exists()
        assert process.stderr is not None
        assert process.stderr.readline().startswith("From your own machine: ssh -N -L ")


def test_datasette_shows_only_the_environments_it_was_given(workspace: Path) -> None:
    with started(workspace, "datasette", "Zoo", "--json") as process:
        assert process.stdout is not None
        document = ""
        for line in process.stdout:
            document += line
            if line == "}\n":
                break
        facts = json.loads(document)
        assert facts["environments"] == {"zoo": facts["url"] + "zoo"}
        assert "1 environment<" in httpx.get(facts["url"]).text.replace("\n", "<")
        assert httpx.get(facts["url"] + "zoo").status_code == 200
        assert httpx.get(facts["url"] + "ferry").status_code == 404


def test_datasette_says_what_cannot_be_done(workspace: Path) -> None:
    assert "Did you mean ferry?" in failed(workspace, "datasette", "fery")
    with listen() as taken:
        assert f"port {port_of(taken)} is taken" in failed(workspace, "datasette", "--port", str(port_of(taken)))


async def test_serve_over_http_prints_its_url(workspace: Path) -> None:
    with started(workspace, "serve", "ferry", "--transport", "http", "--task", "0") as process:
        async with Client(first_line(process)) as client:
            assert client.instructions is not None
            assert "Task: Greet." in client.instructions
            result = await client.call_tool("hello", {})
            assert json.loads(result.content[0].text) == {"said": "hello"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fery"], "Did you mean ferry?"),
        (["ferry", "--task", "1"], "it has tasks 0 to 0"),
        (["ferry", "--now", "yesterday"], "--now"),
        (["ferry", "--json"], "--transport http"),
        (["ferry", "--transport", "http", "--host", "0.0.0.0"], "only on 127.0.0.1"),
    ],
)
def test_serve_says_what_cannot_be_done(workspace: Path, arguments: list[str], message: str) -> None:
    assert message in failed(workspace, "serve", *arguments)


def test_every_table_of_the_real_environments_has_a_page(awm_real: Path, tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "workspace", create=True) as workspace, Host() as host:
        import_awm(workspace.catalog, awm_real)
        pages = EnvironmentPages(workspace.catalog, lambda env: snapshot_file(workspace, env, host))
        with DatasetteServer(pages) as server, httpx.Client(base_url=server.url(), timeout=30) as browser:
            for name in workspace.catalog.names():
                tables = browser.get(f"/{name}.json").json()["tables"]
                assert len(tables) >= 12
                for table in tables:
                    shown = browser.get(f"/{name}/{table['name']}.json?_shape=array").json()
                    assert len(shown) == table["count"]
