"""Time stands where it was put, for Python and for SQL, and moves one second a call."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.clock import Clock, pin_sql_time
from tests.pipeline.runtime.programs import NOW, call, engine, run

STAMP = "2026-03-01 08:30:05"


@pytest.fixture
def pinned() -> sqlite3.Connection:
    clock = Clock(NOW)
    clock.at(5)
    connection = sqlite3.connect(":memory:")
    pin_sql_time(connection, clock)
    return connection


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("datetime('now')", STAMP),
        ("DATETIME('NOW')", STAMP),
        ("datetime()", STAMP),
        ("CURRENT_TIMESTAMP", STAMP),
        ("current_date", "2026-03-01"),
        ("current_time", "08:30:05"),
        ("date('now', '-3 days', 'weekday 1')", "2026-03-02"),
        ("time('now', '+90 minutes')", "10:00:05"),
        ("strftime('%Y/%m/%d %H', 'now', 'start of year')", "2026/01/01 00"),
        ("strftime('%s')", "1772353805"),
        ("CAST(julianday('now') * 86400 - julianday('2026-03-01') * 86400 AS INTEGER)", 30605),
        ("unixepoch('now')", 1772353805),
        ("unixepoch()", 1772353805),
        ("date('2024-02-29', '+1 year')", "2025-03-01"),
        ("datetime(1772353805, 'unixepoch')", STAMP),
        ("datetime('nonsense')", None),
        ("date(NULL)", None),
        ("strftime('now')", "now"),
    ],
)
def test_sql_time_is_the_clocks(pinned: sqlite3.Connection, expression: str, value: object) -> None:
    assert pinned.execute(f"SELECT {expression}").fetchone() == (value,)


def test_sql_time_may_stand_in_defaults_checks_triggers_indexes_and_generated_columns(
    pinned: sqlite3.Connection,
) -> None:
    pinned.executescript(
        """
        CREATE TABLE t(
            id INTEGER PRIMARY KEY, at TEXT DEFAULT CURRENT_TIMESTAMP, day TEXT DEFAULT (date('now')),
            year AS (strftime('%Y', at)) STORED, CHECK (at <= datetime('now'))
        );
        CREATE INDEX by_month ON t(strftime('%m', at));
        CREATE TABLE log(at TEXT);
        CREATE TRIGGER logged AFTER INSERT ON t BEGIN INSERT INTO log VALUES (CURRENT_TIMESTAMP); END;
        INSERT INTO t DEFAULT VALUES;
        """
    )
    assert pinned.execute("SELECT at, day, year FROM t").fetchone() == (STAMP, "2026-03-01", "2026")
    assert pinned.execute("SELECT at FROM log").fetchone() == (STAMP,)
    with pytest.raises(sqlite3.IntegrityError):
        pinned.execute("INSERT INTO t(at) VALUES ('2026-03-01 08:30:06')")


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    st.sampled_from(["+1 month", "-7 days", "utc", "start of day"]),
)
def test_times_that_are_given_are_not_touched(moment: datetime, modifier: str) -> None:
    clock, plain, pinned = Clock(NOW), sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    pin_sql_time(pinned, clock)
    query = "SELECT datetime(?, ?), date(?, ?), julianday(?, ?), strftime('%s %f', ?, ?)"
    values = (moment.isoformat(), modifier) * 4
    assert pinned.execute(query, values).fetchone() == plain.execute(query, values).fetchone()
    plain.close()
    pinned.close()


def test_random_values_in_sql_follow_the_clock(pinned: sqlite3.Connection) -> None:
    clock, again = Clock(NOW), sqlite3.connect(":memory:")
    clock.at(5)
    pin_sql_time(again, clock)
    query = "SELECT random(), hex(randomblob(8)), random()"
    first, second = pinned.execute(query).fetchone(), again.execute(query).fetchone()
    assert first == second
    assert first[0] != first[2]
    again.close()


HANDLERS = """
import datetime as dt
import os, random, secrets, time, uuid
import datetime
from uuid import uuid4
from time import time as seconds
from random import choice

PLACES = {"class": datetime.datetime, "utcnow": datetime.datetime.utcnow}

@app.get("/python", operation_id="python")
def python():
    from datetime import date, datetime as inner, timezone
    return {
        "now": dt.datetime.now().isoformat(),
        "utc": inner.now(timezone.utc).isoformat(),
        "zone": inner.now(timezone(timedelta(hours=2))).isoformat(),
        "utcnow": PLACES["utcnow"]().isoformat(),
        "today": [date.today().isoformat(), inner.today().isoformat(), dt.date.today().isoformat()],
        "time": [time.time(), seconds(), time.time_ns()],
        "text": [time.strftime("%Y-%m-%d %H:%M:%S"), time.ctime(), time.strftime("%Y", time.localtime())],
        "since": time.perf_counter() - time.perf_counter(),
    }

@app.get("/drawn", operation_id="drawn")
def drawn():
    return [
        str(uuid.uuid4()), str(uuid4()), uuid.uuid1().hex, random.random(), random.gauss(0, 1), choice(range(1000)),
        random.sample(range(100), 3), random.Random().random(), random.SystemRandom().randint(0, 9),
        secrets.token_hex(8), secrets.token_urlsafe(), secrets.choice("abc"), secrets.randbelow(5), os.urandom(4).hex(),
    ]

@app.get("/one_half_of_a_pair", operation_id="gauss")
def one_half_of_a_pair():
    return random.gauss(0, 1)

@app.get("/checks", operation_id="checks")
def checks():
    value = dt.datetime(2020, 2, 29, 12)
    match value:
        case dt.datetime():
            matched = True
    return [
        isinstance(value, dt.datetime), isinstance(value, dt.date), isinstance(value.date(), dt.date),
        not isinstance(value.date(), dt.datetime), issubclass(dt.datetime, dt.date), matched,
        dt.datetime.fromisoformat("2020-02-29T12:00:00") == value, dt.datetime.strptime("29.2.2020", "%d.%m.%Y").day == 29,
        dt.datetime.combine(dt.date(2020, 2, 29), dt.time(12)) == value, type(value) is type(dt.datetime.utcnow()),
        dt.datetime.max.year == 9999, dt.datetime.fromtimestamp(0, dt.timezone.utc).year == 1970,
    ]

class Event(BaseModel):
    at: dt.datetime
    day: Optional[dt.date] = None
    times: List[dt.datetime] = []
    made: dt.datetime = Field(default_factory=dt.datetime.utcnow)

@app.post("/events", operation_id="event", response_model=Event)
def event(event: Event):
    return event

@app.get("/since", operation_id="since")
def since(at: dt.datetime, day: Optional[dt.date] = None):
    return {"at": at, "day": day, "past": at < dt.datetime.now()}

@app.post("/items", operation_id="add_item")
def add_item(name: str = Body(..., embed=True)):
    session = SessionLocal()
    session.add(Item(name=name))
    session.commit()
    stored = session.execute(text("SELECT made_at, CURRENT_TIMESTAMP, date('now') FROM items ORDER BY id DESC")).first()
    return [*stored, session.query(func.now()).scalar().isoformat()]

@app.post("/sleeps", operation_id="sleeps")
def sleeps():
    time.sleep(3600)
    return time.time()
"""


def test_python_time_is_the_clocks_however_it_is_asked_for() -> None:
    reply = call(engine(HANDLERS), "python", tick=5)
    assert reply["body"] == {
        "now": "2026-03-01T08:30:05",
        "utc": "2026-03-01T08:30:05+00:00",
        "zone": "2026-03-01T10:30:05+02:00",
        "utcnow": "2026-03-01T08:30:05",
        "today": ["2026-03-01", "2026-03-01T08:30:05", "2026-03-01"],
        "time": [1772353805.0, 1772353805.0, 1772353805000000000],
        "text": ["2026-03-01 08:30:05", "Sun Mar  1 08:30:05 2026", "2026"],
        "since": 0.0,
    }


def test_pinned_classes_behave_like_the_real_ones() -> None:
    running = engine(HANDLERS)
    assert call(running, "checks")["body"] == [True] * 12
    event = {"at": "2026-01-02T03:04:05Z", "day": "2026-01-02", "times": ["2026-01-02T00:00:00"]}
    assert call(running, "event", tick=1, **event)["body"] == {**event, "made": "2026-03-01T08:30:01"}
    schema = running.program.routes["event"].tool.input_schema
    assert (schema["properties"]["at"]["format"], schema["properties"]["times"]["items"]["format"]) == (
        "date-time",
    ) * 2
    assert call(running, "since", at="2026-03-01T08:00:00", day="2026-02-28")["body"]["past"] is True
    assert call(running, "since", at="yesterday")["status"] == 422


def test_sqlalchemy_and_sql_agree_with_python() -> None:
    running = engine(HANDLERS)
    state, reply = running.call(0, 3, "add_item", {"name": "a"}, timeout=10)
    stamp = "2026-03-01 08:30:03"
    assert reply["body"] == [f"{stamp}.000000", stamp, "2026-03-01", "2026-03-01T08:30:03"]
    assert running.call(state, 4, "add_item", {"name": "b"}, timeout=10)[1]["body"][1] == "2026-03-01 08:30:04"


def test_draws_are_a_function_of_now_and_tick_and_nothing_else() -> None:
    first, second = engine(HANDLERS), engine(HANDLERS)
    drawn = call(first, "drawn", tick=1)["body"]
    call(first, "gauss", tick=1)
    assert call(first, "drawn", tick=1)["body"] == drawn
    assert call(second, "drawn", tick=1)["body"] == drawn
    assert call(second, "drawn", tick=2)["body"] != drawn
    later = engine(HANDLERS, now=NOW + timedelta(days=1))
    assert call(later, "drawn", tick=1)["body"] != drawn
    assert drawn[0] != drawn[1]
    assert (drawn[0][14], drawn[2][12]) == ("4", "1"), "uuids keep their version"


def test_the_second_number_of_a_pair_does_not_reach_the_next_call() -> None:
    running = engine(HANDLERS)
    assert call(running, "gauss", tick=7)["body"] == call(running, "gauss", tick=7)["body"]


def test_sleeping_takes_no_time() -> None:
    reply = call(engine(HANDLERS), "sleeps")
    assert reply["body"] == NOW.timestamp()
    assert reply["ms"] < 1000


def test_now_is_taken_in_any_zone() -> None:
    moment = datetime(2026, 3, 1, 10, 30, tzinfo=timezone(timedelta(hours=2)))
    assert Clock(moment).now == NOW.replace(tzinfo=None)


def test_a_live_clock_tells_the_real_time() -> None:
    running = engine(HANDLERS, now=None)
    before = datetime.now(UTC).replace(tzinfo=None)
    _, (text, *_) = run(running, [("python", {})])
    assert before.isoformat()[:10] in text
    assert call(running, "drawn")["body"] != call(running, "drawn")["body"]


def test_other_code_keeps_the_real_modules() -> None:
    engine(HANDLERS)
    assert abs(datetime.now(UTC).timestamp() - __import__("time").time()) < 5
    assert datetime.__module__ == "datetime"
    assert type(datetime(2026, 1, 1)) is datetime
