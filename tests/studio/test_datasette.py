"""Datasette over real HTTP: an index of any number of environments, and each database opened when asked for."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from pipeline.errors import UserError
from pipeline.loopback import listen, port_of
from studio.datasette import DatasetteServer, Entry, Page, TableText, holds

KEPT_OPEN = 16


def write_database(path: Path, sql: str) -> Path:
    """A SQLite file made by a script, in one step."""
    draft = path.with_suffix(".draft")
    with closing(sqlite3.connect(draft)) as connection:
        connection.executescript(sql)
    return draft.replace(path)


@dataclass
class Shop:
    """A thousand shops, of which each has a database once somebody asks for it."""

    folder: Path
    entries_made: list[Entry] = field(
        default_factory=lambda: [
            Entry(f"shop_{n}", f"Shop {n}", "retail" if n % 2 else "food", 1, n, 5, 10, "pass") for n in range(1000)
        ]
    )

    def page(self, name: str) -> Page:
        number = int(name.removeprefix("shop_")) if name.startswith("shop_") else 1000
        if number >= 1000:
            raise UserError(f"There is no environment {name!r}. Did you mean shop_1?")
        path = self.folder / f"{name}.db"
        if not path.exists():
            write_database(
                path,
                f"create table goods (id integer primary key, name text); insert into goods values ({number}, 'pen');",
            )
        texts = {"goods": TableText("Used by list_goods.", {"name": "What it is called"})}
        return Page(path, f"Shop {number}", "Sells <pens>.", texts)

    def entries(self, words: str) -> list[Entry]:
        return [entry for entry in self.entries_made if holds(f"{entry.name} {entry.title} {entry.domain}", words)]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    # A workspace may lie in a folder whose name means something in a URL.
    folder = tmp_path_factory.mktemp("data") / "a #1?%20 & b"
    folder.mkdir()
    return Shop(folder)


@pytest.fixture(scope="module")
def server(shop: Shop) -> Iterator[DatasetteServer]:
    with DatasetteServer(shop, log=shop.folder / "datasette.log") as server:
        yield server


@pytest.fixture(scope="module")
def browser(server: DatasetteServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url(), timeout=30) as client:
        yield client


def test_the_index_shows_a_page_of_a_thousand_environments(browser: httpx.Client) -> None:
    first = browser.get("/").text
    assert "1,000 environments" in first
    assert first.count('href="/shop_') == 50
    assert "Page 1 of 20" in first
    assert browser.get("/-/awm-studio.css").headers["content-type"].startswith("text/css")
    last = browser.get("/?page=20").text
    assert 'href="/shop_999"' in last
    assert "Next" not in last


def test_the_index_is_searched_by_words_of_name_title_and_domain(browser: httpx.Client) -> None:
    found = browser.get("/", params={"q": "FOOD 77"}).text
    assert "5 environments" in found  # the even numbers with 77: 770, 772, 774, 776, 778
    assert 'href="/shop_770"' in found
    assert 'href="/shop_771"' not in found
    assert "0 environments" in browser.get("/", params={"q": "<script>alert(1)</script>"}).text
    assert "<script>alert(1)" not in browser.get("/", params={"q": "<script>alert(1)</script>"}).text


def test_following_a_link_opens_the_database(browser: httpx.Client) -> None:
    page = browser.get("/shop_7")
    assert page.status_code == 200
    assert "Shop 7" in page.text
    assert "Sells &lt;pens&gt;." in page.text
    table = browser.get("/shop_7/goods").text
    assert "Used by list_goods." in table
    assert "What it is called" in table
    assert browser.get("/shop_7/goods.json?_shape=array").json() == [{"id": 7, "name": "pen"}]


def test_at_most_sixteen_are_open_and_a_closed_one_opens_again(browser: httpx.Client) -> None:
    for number in (*range(40), *range(40)):
        rows = browser.get(f"/shop_{number}/goods.json?_shape=array")
        assert rows.json() == [{"id": number, "name": "pen"}]
    assert len(browser.get("/-/databases.json").json()) == KEPT_OPEN


def test_many_people_at_once_each_see_their_database(browser: httpx.Client) -> None:
    def look(number: int) -> int:
        return browser.get(f"/shop_{number % 60}/goods.json?_shape=array").json()[0]["id"]

    with ThreadPoolExecutor(24) as pool:
        assert list(pool.map(look, range(120))) == [number % 60 for number in range(120)]


def test_a_database_that_was_built_again_is_shown_anew(shop: Shop, browser: httpx.Client) -> None:
    assert browser.get("/shop_500/goods.json?_shape=array").json() == [{"id": 500, "name": "pen"}]
    write_database(
        shop.folder / "shop_500.db", "create table goods (id integer primary key); insert into goods values (1);"
    )
    assert browser.get("/shop_500/goods.json?_shape=array").json() == [{"id": 1}]


def test_an_unknown_name_is_answered_with_the_close_ones(browser: httpx.Client) -> None:
    page = browser.get("/shops")
    assert page.status_code == 404
    assert "Did you mean shop_1?" in page.text
    assert browser.get("/shops.json").json()["error"] == "There is no environment 'shops'. Did you mean shop_1?"


def test_a_failure_of_the_source_is_said_and_the_server_goes_on(browser: httpx.Client) -> None:
    broken = browser.get("/shop_x")
    assert broken.status_code == 404
    assert "ValueError" in broken.text
    assert browser.get("/shop_1").status_code == 200


@pytest.mark.parametrize(
    "sql",
    [
        "delete from goods",
        "insert into goods values (1, 'x')",
        "attach 'x.db' as x",
        "drop table goods",
        "pragma writable_schema = on",
    ],
)
def test_nothing_can_be_written(shop: Shop, browser: httpx.Client, sql: str) -> None:
    browser.get("/shop_3")
    before = (shop.folder / "shop_3.db").read_bytes()
    assert browser.get("/shop_3.json", params={"sql": sql}).json()["ok"] is False
    assert browser.post("/shop_3", data={"sql": sql}).status_code in (400, 403, 405)
    assert (shop.folder / "shop_3.db").read_bytes() == before


def test_a_query_that_does_not_end_is_stopped(browser: httpx.Client) -> None:
    endless = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"
    assert browser.get("/shop_3.json", params={"sql": endless}).json()["title"] == "SQL Interrupted"
    too_large = "select length(randomblob(100000000)) as bytes"
    assert "too big" in browser.get("/shop_3.json", params={"sql": too_large}).text


def test_files_are_downloaded_only_where_that_was_asked_for(shop: Shop, browser: httpx.Client) -> None:
    assert browser.get("/shop_3.db").status_code == 403
    with DatasetteServer(shop, downloads=True) as generous:
        assert httpx.get(generous.url("shop_3.db")).content.startswith(b"SQLite format 3")


def test_only_local_names_are_answered(server: DatasetteServer, browser: httpx.Client) -> None:
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", ""):
        assert browser.get("/shop_3", headers={"Host": host}).status_code in (400, 421)
    for host in (f"localhost:{server.port}", "127.0.0.1:9", "[::1]:80"):
        assert browser.get("/shop_3", headers={"Host": host}).status_code == 200


def test_a_pair_of_snapshots_shows_what_changed_by_table(
    server: DatasetteServer, browser: httpx.Client, tmp_path: Path
) -> None:
    tables = "create table goods (id integer primary key, name text); create table idle (x); create table log (line);"
    initial = write_database(tmp_path / "initial.db", tables + "insert into goods values (1, 'pen'), (2, 'ink');")
    final = write_database(
        tmp_path / "final.db",
        tables + "insert into goods values (1, 'Pen'), (3, 'nib'); insert into log values ('hi');",
    )
    url = server.attach("shop_1-call-2", Page(final, "Shop 1, call 2", initial=initial))
    page = httpx.get(url).text
    assert "Shop 1, call 2" in page
    assert "goods: 1 added, 1 removed, 1 changed" in page
    assert "log: 1 added" in page
    assert "changed_idle" not in page
    assert httpx.get(f"{url}/changed_goods.json?_shape=array").json() == [
        {"change": "changed from", "id": 1, "name": "pen"},
        {"change": "changed to", "id": 1, "name": "Pen"},
        {"change": "removed", "id": 2, "name": "ink"},
        {"change": "added", "id": 3, "name": "nib"},
    ]
    assert httpx.get(f"{url}/changed_goods").status_code == 200
    assert "Shop 1, call 2" in browser.get("/?q=call").text

    server.attach("shop_1-call-2", Page(final, "Shop 1, call 2", initial=final))
    assert "No row differs from the initial database." in httpx.get(url).text


@pytest.mark.parametrize("name", ["", "_internal", "-", "a/b", "a.b", "../x", "Ä"])
def test_a_name_that_is_no_url_is_refused(server: DatasetteServer, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        server.attach(name, Page(tmp_path / "x.db"))


def test_a_taken_port_is_said() -> None:
    with listen() as taken, pytest.raises(UserError, match=f"port {port_of(taken)} is taken"):
        DatasetteServer(Shop(Path()), port=port_of(taken)).start()


def test_stopping_ends_the_child(shop: Shop) -> None:
    others = set(psutil.Process().children())
    server = DatasetteServer(shop)
    server.start()
    (child,) = set(psutil.Process().children()) - others
    server.stop()
    assert not child.is_running()
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url())


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_child_ends_with_its_parent_however_that_ends(tmp_path: Path, end: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert parent.stdout is not None
    url = parent.stdout.readline().strip()
    (child,) = psutil.Process(parent.pid).children()
    assert httpx.get(f"{url}shop_1").status_code == 200
    os.kill(parent.pid, end)
    parent.wait(timeout=20)
    assert psutil.wait_procs([child], timeout=20)[1] == []


PARENT = """
import sys
from pathlib import Path
from studio.datasette import DatasetteServer
from tests.studio.test_datasette import Shop

with DatasetteServer(Shop(Path(sys.argv[1]))) as server:
    print(server.url(), flush=True)
    server.wait()
"""
