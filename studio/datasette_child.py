"""The process that runs Datasette for `studio.datasette`.

It is started as `python -m studio.datasette_child CONTROL LISTENER (pages|downloads)`, with two inherited socket
descriptors. Over CONTROL it asks its parent, in JSON lines, what the page of an environment shows (`page`) and which
environments there are (`entries`); when that socket closes, the parent has gone and so does this process, however
the parent ended.

A database is opened when somebody asks for it and the least recently used one is closed again, because 1,000 at
once would take 5-15 s and 1,000-3,000 file descriptors.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sqlite3
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from datasette import Response, hookimpl
from datasette.app import Datasette
from datasette.database import Database
from datasette.plugins import pm
from datasette.utils.asgi import Request

from studio.changed_rows import Change, changes

KEPT_OPEN = 16
"""How many databases are open at most; also how many requests are answered at once."""

ENTRIES_A_PAGE = 50

TEMPLATES = Path(__file__).parent / "templates"
STYLE = "/-/awm-studio.css"

LONGEST_VALUE = 32 * 1024 * 1024
"""Bytes of the longest string or blob a query may build: a view can be generated code, too."""

COUNT_MS = 1000
"""Longest time to count the rows of one table; they are counted once, when the database is opened."""

LONGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of the longest line the parent may send: the descriptions of one database, or a page of the index."""

HOSTS = {"127.0.0.1", "localhost", "::1"}
"""Names this server answers to. A web page whose own name was pointed at 127.0.0.1 is refused."""


class Refused(Exception):
    """The parent has no such page; the message is for the person who asked."""


class Parent:
    """The process that started this one, as something to ask."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0

    def tell(self, **message: Any) -> None:
        """Send a message that has no answer."""
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def ask(self, **question: Any) -> dict[str, Any]:
        """The parent's answer to a question. Raises Refused with its reason."""
        self._asked += 1
        number = self._asked
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self.tell(number=number, **question)
        answer = await self._waiting[number]
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer

    async def listen(self) -> None:
        """Hand out answers until the parent has gone."""
        while line := await self._reader.readline():
            answer = json.loads(line)
            self._waiting.pop(answer["number"]).set_result(answer)


class Snapshot(Database):
    """A finished database file, opened so that nothing can be written and its schema is not trusted."""

    def __init__(self, datasette: Datasette, page: dict[str, Any]) -> None:
        super().__init__(datasette, page["path"], is_mutable=False)
        self.page = page
        self.readers = 0
        self._changes: list[Change] | None = None

    def connect(self, write: bool = False) -> sqlite3.Connection:
        """An immutable connection, with the initial snapshot attached where there is one."""
        connection = sqlite3.connect(_immutable(self.page["path"]), uri=True, check_same_thread=False)
        self._all_file_connections.append(connection)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        connection.execute("pragma trusted_schema = off")
        if self.page["initial"]:
            connection.execute("attach database ? as initial", [_immutable(self.page["initial"])])
        return connection

    async def table_counts(self, limit: int = 0) -> dict[str, int | None]:
        """Rows by table. Datasette gives up after 5 ms, and on a busy machine would show every table as "Many rows"."""
        return await super().table_counts(limit=COUNT_MS)

    async def changes(self) -> list[Change]:
        """What changed since the initial snapshot; nothing where there is none."""
        if self._changes is None:
            self._changes = await self.execute_fn(changes) if self.page["initial"] else []
        return self._changes


def _immutable(path: str) -> str:
    return f"{Path(path).as_uri()}?immutable=1"


class Shelf:
    """The open databases, at most `KEPT_OPEN` of them, the least recently used first."""

    def __init__(self, datasette: Datasette, parent: Parent) -> None:
        self._datasette, self._parent = datasette, parent
        self._open: OrderedDict[str, Snapshot] = OrderedDict()
        # Every reader holds a place, so whenever one more database is needed some open one is idle.
        self._places = asyncio.Semaphore(KEPT_OPEN)

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncGenerator[None]:
        """Have the current database of that name open for the length of a request. Raises Refused."""
        async with self._places:
            snapshot = self._take(name, await self._parent.ask(ask="page", name=name))
            snapshot.readers += 1
            try:
                yield
            finally:
                snapshot.readers -= 1
                if not snapshot.readers and self._open.get(name) is not snapshot:
                    snapshot.close()

    def _take(self, name: str, page: dict[str, Any]) -> Snapshot:
        kept = self._open.get(name)
        if kept is not None and kept.page["version"] == page["version"]:
            self._open.move_to_end(name)
            return kept
        if kept is not None:
            self._remove(name)
        elif len(self._open) >= KEPT_OPEN:
            self._remove(next(name for name, snapshot in self._open.items() if not snapshot.readers))
        snapshot = Snapshot(self._datasette, page)
        self._datasette.add_database(snapshot, name=name)
        self._open[name] = snapshot
        return snapshot

    def _remove(self, name: str) -> None:
        self._datasette.remove_database(name)
        snapshot = self._open.pop(name)
        if not snapshot.readers:
            snapshot.close()

    def pages(self) -> dict[str, dict[str, Any]]:
        """What is said about each open database, by name."""
        return {name: snapshot.page for name, snapshot in self._open.items()}

    async def changes(self, name: str) -> list[Change]:
        """What changed in an open database since its initial snapshot."""
        return await self._open[name].changes() if name in self._open else []


class Pages:
    """What we add to Datasette: the index of all environments, descriptions, and the queries *what changed*."""

    __name__ = "awm_studio"  # Datasette lists its plugins by this

    def __init__(self, shelf: Shelf, parent: Parent) -> None:
        self._shelf, self._parent = shelf, parent

    @hookimpl
    def register_routes(self) -> list[tuple[str, Any]]:
        """Our index in place of Datasette's, which lists only what is open."""
        return [(r"/$", self._index), (rf"{STYLE}$", self._style)]

    @hookimpl
    def get_metadata(self) -> dict[str, Any]:
        """Titles and descriptions. Made anew for every call, because Datasette writes into it."""
        return {
            "title": "Environments",
            "extra_css_urls": [STYLE],
            "databases": {
                name: {
                    "title": page["title"],
                    "description": page["description"],
                    "tables": {
                        table: {"description": text["description"], "columns": dict(text["columns"])}
                        for table, text in page["tables"].items()
                    },
                }
                for name, page in self._shelf.pages().items()
            },
        }

    @hookimpl
    def canned_queries(self, database: str) -> Any:
        """One query for every table that changed between the initial and the final snapshot."""

        async def queries() -> dict[str, Any]:
            return {
                f"changed_{change.table}": {
                    "title": str(change),
                    "description": f"The rows of {change.table} that differ from the initial database.",
                    "sql": change.sql,
                    "hide_sql": True,
                }
                for change in await self._shelf.changes(database)
            }

        return queries

    async def _index(self, datasette: Datasette, request: Request) -> Response:
        words = request.args.get("q") or ""
        number = request.args.get("page") or ""
        page = max(1, int(number) if number.isdecimal() else 1)
        try:
            found = await self._parent.ask(
                ask="entries", words=words, start=(page - 1) * ENTRIES_A_PAGE, count=ENTRIES_A_PAGE
            )
        except Refused as refused:
            return await _error_page(datasette, request, 500, str(refused))
        context = {
            "q": words,
            "page": page,
            "pages": -(-found["total"] // ENTRIES_A_PAGE),
            "total": found["total"],
            "entries": found["entries"],
            "attached": found["attached"],
        }
        return Response.html(await datasette.render_template("environments.html", context, request=request))

    async def _style(self) -> Response:
        return Response((TEMPLATES / "studio.css").read_text(), content_type="text/css; charset=utf-8")


async def _error_page(datasette: Datasette, request: Request, status: int, message: str) -> Response:
    if request.path.endswith(".json"):
        return Response.json({"ok": False, "error": message, "status": status}, status=status)
    context = {"title": "Nothing to show", "error": message, "status": status}
    return Response.html(await datasette.render_template("error.html", context), status=status)


def _database_name(path: str) -> str | None:
    """The database a path is about; None for the index, for Datasette's own pages and for static files."""
    found = re.match(r"/([^/.]+)", path)
    return found[1] if found and found[1][0] not in "-_" and path != "/favicon.ico" else None


def _host_name(request: Request) -> str | None:
    return urlsplit(f"//{request.headers.get('host', '')}").hostname


async def _serve(control: socket.socket, listener: socket.socket, downloads: bool) -> None:
    # Where Datasette finds rich it prints every error, 404s included, with the local variables of each frame. This
    # must be imported after Datasette itself, which registers it as a plugin while importing.
    from datasette import handle_exception

    handle_exception.rich = None
    parent = Parent(*await asyncio.open_connection(sock=control, limit=LONGEST_ANSWER))
    datasette = Datasette(
        template_dir=str(TEMPLATES),
        settings={
            # Without threads a database that was closed can be opened again under its name. With them Datasette
            # 0.65 answers 500, because it keeps one connection a thread by name.
            "num_sql_threads": 0,
            "allow_download": downloads,
            "default_cache_ttl": 0,  # an environment may change at any time
        },
    )
    datasette.remove_database("_memory")
    shelf = Shelf(datasette, parent)
    pm.register(Pages(shelf, parent))
    await datasette.invoke_startup()
    pages = datasette.app()

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await pages(scope, receive, send)
            return
        request = Request(scope, receive)
        if _host_name(request) not in HOSTS:
            await Response.text("Only requests to 127.0.0.1 or localhost are answered.", status=421).asgi_send(send)
        elif name := _database_name(request.path):
            try:
                async with shelf.opened(name):
                    await pages(scope, receive, send)
            except Refused as refused:
                await (await _error_page(datasette, request, 404, str(refused))).asgi_send(send)
        else:
            await pages(scope, receive, send)

    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, proxy_headers=False, timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    parent.tell(ready=True)
    await asyncio.wait({serving, asyncio.create_task(parent.listen())}, return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await serving


def main(control: int, listener: int, downloads: bool) -> None:
    """Serve until the parent has gone."""
    asyncio.run(_serve(socket.socket(fileno=control), socket.socket(fileno=listener), downloads))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "downloads")
