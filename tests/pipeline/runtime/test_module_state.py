"""What a program keeps in its module belongs to the instance that put it there."""

from __future__ import annotations

import pytest

from pipeline.runtime.engine import Engine
from pipeline.runtime.program import Program
from tests.pipeline.runtime.programs import call, engine, program

STATEFUL = """
import functools, itertools, random, threading
from collections import Counter, defaultdict, deque

CARTS = {}
TOTAL = 0
IDS = itertools.count(100, 5)
RNG = random.Random(7)
RECENT = deque(maxlen=2)
LIMITS = {"carts": 3}
WORDS = ["a", "b"]
ALIAS = CARTS
LOCK = threading.Lock()

class Store:
    seen = Counter()

    def __init__(self):
        self.items = defaultdict(list)

    def add(self, key, value):
        self.items[key].append(value)

STORE = Store()
app.state.hits = 0

@functools.lru_cache
def how_many():
    return len(CARTS)

@app.post("/add/{who}", operation_id="add")
async def add(who: str):
    global TOTAL
    TOTAL += 1
    CARTS.setdefault(who, []).append(next(IDS))
    STORE.add(who, TOTAL)
    Store.seen[who] += 1
    RECENT.append(who)
    app.state.hits += 1
    words = list(WORDS)
    words.append("c")
    return {
        "carts": ALIAS, "total": TOTAL, "items": STORE.items, "seen": Store.seen, "recent": list(RECENT),
        "hits": app.state.hits, "drawn": RNG.random(), "cached": how_many(), "limit": LIMITS["carts"],
    }
"""


@pytest.fixture(scope="module")
def stateful() -> Program:
    return program(STATEFUL)


def test_what_handlers_change_is_found_and_what_they_only_read_is_not(stateful: Program) -> None:
    lines = {found.message.split("`")[1]: int(found.where.removeprefix("code:")) for found in stateful.findings}
    assert set(lines) == {"CARTS", "TOTAL", "IDS", "RECENT", "STORE", "Store", "app"}
    assert {found.code for found in stateful.findings} == {"module_state"}
    assert {found.severity for found in stateful.findings} == {"warn"}
    assert stateful.source.splitlines()[lines["RECENT"] - 1].strip() == "RECENT.append(who)"


def test_instances_have_their_own(stateful: Program) -> None:
    running = Engine(stateful)
    first, reply = running.call(0, 1, "add", {"who": "kit"}, timeout=10)
    assert reply["body"] == {
        "carts": {"kit": [100]},
        "total": 1,
        "items": {"kit": [1]},
        "seen": {"kit": 1},
        "recent": ["kit"],
        "hits": 1,
        "drawn": reply["body"]["drawn"],
        "cached": 1,
        "limit": 3,
    }
    other, _ = running.call(0, 1, "add", {"who": "ann"}, timeout=10)
    assert other != first
    assert running.call(0, 1, "add", {"who": "kit"}, timeout=10)[0] == first
    body = running.call(first, 2, "add", {"who": "ann"}, timeout=10)[1]["body"]
    assert (body["carts"], body["total"], body["seen"]) == ({"kit": [100], "ann": [105]}, 2, {"kit": 1, "ann": 1})
    assert (body["recent"], body["cached"]) == (["kit", "ann"], 2)
    body = running.call(other, 2, "add", {"who": "ann"}, timeout=10)[1]["body"]
    assert (body["carts"], body["items"]) == ({"ann": [100, 105]}, {"ann": [1, 2]})


def test_only_the_database_counts_as_written(stateful: Program) -> None:
    state, reply = Engine(stateful).call(0, 0, "add", {"who": "kit"}, timeout=10)
    assert (state, reply["writes"]) == (1, False)


def test_what_cannot_be_copied_is_reported_and_forgotten() -> None:
    running = engine(
        """
        SESSIONS = {}
        FILES = [open("/dev/null")]

        @app.post("/log_in", operation_id="log_in")
        async def log_in():
            SESSIONS[len(SESSIONS)] = lambda: None
            return len(SESSIONS)

        @app.post("/files", operation_id="files")
        async def files():
            FILES.append(1)
        """
    )
    assert [call(running, "log_in")["body"] for _ in range(3)] == [1, 1, 1]
    (sessions, files) = running.program.findings
    assert (sessions.severity, files.severity) == ("warn", "error")
    assert "instances share it" in files.message


def test_a_call_that_is_cut_off_leaves_no_trace() -> None:
    running = engine(
        """
        SEEN = []

        @app.post("/hang", operation_id="hang")
        async def hang():
            SEEN.append("hung")
            while True:
                pass

        @app.get("/seen", operation_id="seen")
        async def seen():
            return SEEN
        """
    )
    assert running.call(0, 0, "hang", {}, timeout=0.1)[1]["status"] == 504
    assert call(running, "seen")["body"] == []


def test_names_that_a_function_makes_are_state_too() -> None:
    running = engine(
        """
        @app.post("/set/{value}", operation_id="set")
        async def set_name(value: str):
            global NAME
            NAME = value

        @app.get("/name", operation_id="name")
        async def name():
            return globals().get("NAME")
        """
    )
    state, _ = running.call(0, 0, "set", {"value": "kit"}, timeout=10)
    assert call(running, "name", state=state)["body"] == "kit"
    assert call(running, "name")["body"] is None
    assert [found.code for found in running.program.findings] == ["module_state"]


def test_programs_without_such_state_carry_nothing() -> None:
    running = engine(
        """
        CONSTANTS = {"a": 1}

        @app.get("/a", operation_id="a")
        async def a(CONSTANT: str = "x"):
            values = dict(CONSTANTS)
            values["b"] = 2
            CONSTANT += "y"
            return values
        """
    )
    assert running.program.findings == ()
    assert call(running, "a")["body"] == {"a": 1, "b": 2}
    assert running.stats()["states"] == 1
