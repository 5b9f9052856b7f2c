"""States are values: what one instance does, no other sees, and the same calls give the same bytes."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipeline.model import Environment
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.engine import Engine
from pipeline.runtime.program import Program, load
from tests.pipeline.runtime.programs import call, engine, loaded, run

ROOT = Path(__file__).parents[3]

ITEMS = """
@app.post("/items", operation_id="add")
def add(name: str = Body(..., embed=True)):
    session = SessionLocal()
    session.add(Item(name=name))
    session.commit()
    return session.query(Item).count()

@app.get("/items", operation_id="names")
async def names():
    return [item.name for item in SessionLocal().query(Item).order_by(Item.id)]
"""


def test_a_call_takes_a_state_and_gives_the_next() -> None:
    running = engine(ITEMS)
    first, reply = running.call(0, 0, "add", {"name": "a"}, timeout=10)
    assert (reply["status"], reply["body"], reply["text"], reply["error"], reply["writes"]) == (200, 1, "1", None, True)
    second, _ = running.call(first, 1, "add", {"name": "b"}, timeout=10)
    assert call(running, "names", state=0)["body"] == []
    assert call(running, "names", state=first)["body"] == ["a"]
    assert call(running, "names", state=second)["body"] == ["a", "b"]


def test_equal_states_are_one_state() -> None:
    running = engine(ITEMS)
    assert run(running, [("names", {})])[0] == 0, "reading changes nothing"
    calls = [("add", {"name": "a"}), ("add", {"name": "b"})]
    assert run(running, calls) == run(running, calls)
    assert running.stats()["states"] == 3
    state, _ = run(running, calls)
    assert running.put(running.get(state)) == state


def test_states_can_be_put_taken_and_dropped() -> None:
    running = engine(ITEMS)
    state, _ = run(running, [("add", {"name": "a"})])
    snapshot = running.get(state)
    running.drop([state, 0, 99])
    assert running.stats()["states"] == 1
    with pytest.raises(KeyError):
        running.get(state)
    again = running.put(snapshot)
    assert call(running, "names", state=again)["body"] == ["a"]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(snapshot)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_state_that_is_no_database_answers_with_a_server_error() -> None:
    running = engine(ITEMS)
    for rubbish in (b"", b"SQLite format 3\0 and then nothing", running.get(0)[:700], b"x" * 4096):
        reply = call(running, "names", state=running.put(rubbish))
        assert (reply["status"], reply["error"]["kind"]) == (500, "server_error")
    assert call(running, "names")["body"] == []


def test_kinds_of_errors() -> None:
    running = engine(
        """
        @app.get("/items/{item_id}", operation_id="item")
        async def item(item_id: int, size: int = Query(1, ge=1)):
            if item_id == 1:
                raise HTTPException(409, "taken")
            return SessionLocal().query(Item).filter(Item.id == item_id).first().name

        @app.post("/items", operation_id="add")
        async def add(name: Any = Body(None, embed=True), made_at: str = Body(None)):
            session = SessionLocal()
            session.add_all([Item(name=name, made_at=made_at), Item(name=name)])
            session.commit()

        @app.post("/shape", operation_id="shape")
        async def shape() -> int:
            return "no number"
        """
    )

    def error(tool: str, **arguments: Any) -> tuple[Any, ...]:
        reply = call(running, tool, **arguments)
        detail = reply["error"]["detail"]
        return reply["status"], reply["error"]["kind"], detail["cause"] if "cause" in (detail or "") else detail

    assert error("unheard_of") == (404, "tool_not_found", None)
    assert error("item") == (422, "invalid_arguments", {"source": "input_schema"})
    assert error("item", item_id=0, size=-1) == (422, "invalid_arguments", {"source": "input_schema"})
    assert error("item", item_id=1) == (409, "client_error", "taken")
    assert error("item", item_id=2) == (500, "server_error", "missing_row")
    assert error("add", name="x") == (500, "server_error", "integrity")
    assert error("add", name="x", made_at="2026-03-01 10:00:00") == (500, "server_error", "wrong_type")
    assert error("shape") == (500, "server_error", "response")


def test_a_server_error_tells_people_what_agents_are_not_told() -> None:
    running = engine(
        """
        @app.get("/broken", operation_id="broken")
        async def broken():
            return {"a": 1}["b"]
        """
    )
    reply = call(running, "broken")
    line = next(n for n, text in enumerate(running.program.source.splitlines(), 1) if '["b"]' in text)
    assert reply["text"] == "Error calling broken. Status code: 500. Response: Internal Server Error"
    assert reply["error"] == {
        "kind": "server_error",
        "message": f"KeyError: 'b' (line {line} of the code)",
        "detail": {
            "cause": "code",
            "exception": "builtins.KeyError",
            "message": "'b'",
            "line": line,
            "code_line": 'return {"a": 1}["b"]',
        },
    }


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except Exception: pass",
        "try:\n    while True: pass\nexcept:\n    while True: pass",
        "session.execute(text('WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n'))",
        "import re; re.match(r'(a+)+b', 'a' * 26)",
    ],
)
def test_a_call_that_takes_too_long_changes_nothing(body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    running = engine(
        f"{ITEMS}\n@app.post('/slow', operation_id='slow')\ndef slow():\n    session = SessionLocal()\n"
        f"    session.add(Item(name='half done'))\n    session.commit()\n{lines}\n"
    )
    start, _ = run(running, [("add", {"name": "a"})])
    state, reply = running.call(start, 1, "slow", {}, timeout=0.2)
    assert (state, reply["status"], reply["error"]["kind"]) == (start, 504, "timeout")
    assert reply["text"] == "Error calling slow. No answer within 0.2 seconds."
    assert call(running, "names", state=start)["body"] == ["a"]
    assert running.stats()["timeouts"] == 1


LEAVES_THINGS = """
KEPT = []

@app.post("/uncommitted", operation_id="uncommitted")
async def uncommitted():
    session = SessionLocal()
    session.add(Item(name="never committed"))
    session.flush()
    KEPT.append(session)

@app.post("/begun", operation_id="begun")
def begun():
    connection = engine.raw_connection()
    connection.execute("INSERT INTO items(name) VALUES ('never committed')")
    KEPT.append(connection)
    KEPT.append(engine.connect().execute(text("SELECT 1 UNION SELECT 2")))

@app.post("/reading", operation_id="reading")
def reading():
    cursor = engine.raw_connection().execute("SELECT * FROM sqlite_master")
    cursor.fetchone()
    KEPT.append(cursor)

@app.post("/temporary", operation_id="temporary")
def temporary():
    session = SessionLocal()
    session.execute(text("CREATE TEMP TABLE IF NOT EXISTS secret(x)"))
    session.execute(text("INSERT INTO secret VALUES (1)"))
    session.commit()
    return session.execute(text("SELECT count(*) FROM secret")).scalar()

@app.post("/settings", operation_id="settings")
def settings():
    connection = engine.raw_connection().driver_connection
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("foreign_keys", "cache_size")]
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = 17")
    connection.create_function("shout", 1, str.upper)
    return found

@app.get("/shout", operation_id="shout")
def shout():
    return SessionLocal().execute(text("SELECT shout('a')")).scalar()

@app.post("/factories", operation_id="factories")
def factories():
    import sqlite3
    connection = engine.raw_connection().driver_connection
    found = type(connection.execute("SELECT 1").fetchone()).__name__
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes
    connection.isolation_level = None
    return found

@app.get("/last", operation_id="last")
def last():
    return list(SessionLocal().execute(text("SELECT last_insert_rowid(), changes(), total_changes()")).one())

@app.post("/attach", operation_id="attach")
def attach():
    SessionLocal().execute(text("ATTACH ':memory:' AS other"))

@app.post("/ddl/{name}", operation_id="ddl")
def ddl(name: str):
    session = SessionLocal()
    session.execute(text(f"CREATE TABLE {name}(x)"))
    session.execute(text(f"INSERT INTO {name} VALUES ('{name}')"))
    session.commit()

@app.get("/ddl/{name}", operation_id="read_ddl")
def read_ddl(name: str):
    return SessionLocal().execute(text(f"SELECT x FROM {name}")).scalars().all()
"""


@pytest.fixture(scope="module")
def careless() -> Program:
    return engine(ITEMS + LEAVES_THINGS).program


@pytest.mark.parametrize(
    ("tool", "body"),
    [
        ("uncommitted", None),
        ("begun", None),
        ("reading", None),
        ("temporary", 1),
        ("settings", [0, -2000]),
        ("factories", "tuple"),
    ],
)
def test_what_a_call_leaves_behind_is_gone_before_the_next(careless: Program, tool: str, body: Any) -> None:
    running = Engine(careless)
    before, expected = run(running, [("add", {"name": "a"}), ("names", {})])
    for _ in range(3):
        state, reply = running.call(before, 5, tool, {}, timeout=10)
        assert (state, reply["body"]) == (before, body)
        assert run(running, [("names", {})], state=state) == (before, expected[1:])
        assert call(running, "add", state=before, name="b")["body"] == 2


def test_functions_that_a_call_defines_are_not_there_for_the_next(careless: Program) -> None:
    running = Engine(careless)
    assert call(running, "settings")["status"] == 200
    assert call(running, "shout")["error"]["detail"]["cause"] == "database"


def test_what_the_connection_did_for_others_cannot_be_asked() -> None:
    fresh = [0, 0, 0]
    running = engine(ITEMS + LEAVES_THINGS)
    run(running, [("add", {"name": "a"})])
    assert call(running, "last")["body"] == fresh
    run(running, [("add", {"name": "a"})])
    assert call(running, "last")["body"] == fresh


def test_other_databases_cannot_be_attached(careless: Program) -> None:
    assert "not authorized" in call(Engine(careless), "attach")["error"]["message"]


def test_tables_that_one_instance_makes_are_not_those_of_another(careless: Program) -> None:
    running = Engine(careless)
    apple, _ = run(running, [("ddl", {"name": "apple"})])
    pear, _ = run(running, [("ddl", {"name": "pear"})])
    for _ in range(2):
        assert call(running, "read_ddl", state=apple, name="apple")["body"] == ["apple"]
        assert call(running, "read_ddl", state=pear, name="pear")["body"] == ["pear"]
        assert call(running, "read_ddl", state=apple, name="pear")["status"] == 500
        assert call(running, "read_ddl", name="pear")["status"] == 500


def test_a_helper_with_a_session_of_its_own_does_not_end_its_callers_transaction() -> None:
    running = engine(
        f"""{ITEMS}
def is_taken(name):
    session = SessionLocal()
    found = session.query(Item).filter(Item.name == name).first() is not None
    session.rollback()
    session.close()
    return found

@app.post("/both", operation_id="both")
def both():
    session = SessionLocal()
    session.add(Item(name="first"))
    session.flush()
    taken = is_taken("second")
    session.add(Item(name="second"))
    session.commit()
    return taken

@app.post("/undone", operation_id="undone")
def undone():
    session = SessionLocal()
    session.add(Item(name="first"))
    session.flush()
    is_taken("second")
    session.rollback()
    return [item.name for item in session.query(Item)]
"""
    )
    state, reply = running.call(0, 0, "both", {}, timeout=10)
    assert reply["body"] is False
    assert call(running, "names", state=state)["body"] == ["first", "second"]
    assert call(running, "undone")["body"] == []


FOREIGN_KEYS = """
class Part(Base):
    __tablename__ = "parts"
    id = Column(Integer, primary_key=True)
    item_id = Column(Integer, ForeignKey("items.id"))

Base.metadata.create_all(engine)

@app.post("/parts", operation_id="add_part")
def add_part(item_id: int = Body(..., embed=True)):
    session = SessionLocal()
    session.add(Part(item_id=item_id))
    session.commit()
"""
TURNED_ON = """
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlite3 import Connection

@event.listens_for(engine, "connect")
def turn_on(connection, record):
    assert isinstance(connection, Connection)
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()

@app.post("/spoil", operation_id="spoil")
def spoil():
    SessionLocal().execute(text("PRAGMA foreign_keys=OFF"))
"""


def test_foreign_keys_are_not_enforced_unless_asked_for() -> None:
    assert call(engine(FOREIGN_KEYS), "add_part", item_id=77)["status"] == 200
    strict = engine(FOREIGN_KEYS, foreign_keys=True)
    assert call(strict, "add_part", item_id=77)["error"]["detail"]["cause"] == "integrity"


def test_settings_that_the_program_makes_for_its_connections_stay() -> None:
    running = engine(FOREIGN_KEYS.replace("Base.metadata", f"{TURNED_ON}\nBase.metadata", 1))
    for _ in range(2):
        assert call(running, "add_part", item_id=77)["error"]["detail"]["cause"] == "integrity"
        assert call(running, "spoil")["status"] == 200


RAW = """
import sqlite3
from contextlib import closing

PATH = os.environ["DATABASE_PATH"].replace("sqlite:///", "")

def connection():
    opened = sqlite3.connect(PATH, timeout=3)
    opened.row_factory = sqlite3.Row
    return opened

with connection() as opened:
    opened.execute("CREATE TABLE IF NOT EXISTS notes(id INTEGER PRIMARY KEY, text TEXT)")

@app.post("/notes", operation_id="note")
def note(text: str = Body(..., embed=True)):
    with connection() as opened:
        found = opened.execute("INSERT INTO notes(text) VALUES (?)", (text,))
    return found.lastrowid

@app.post("/lost", operation_id="lost")
def lost():
    opened = connection()
    opened.execute("INSERT INTO notes(text) VALUES ('lost')")
    opened.close()

@app.get("/notes", operation_id="notes")
def notes():
    with closing(connection()) as opened:
        rows = opened.execute("SELECT * FROM notes ORDER BY id").fetchall()
        memory = sqlite3.connect(":memory:").execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return [[dict(row) for row in rows], memory]
"""


def test_programs_that_use_sqlite3_themselves_reach_their_instances_database() -> None:
    running = engine(RAW)
    assert running.program.tables_added == ("items", "notes")
    _, texts = run(running, [("note", {"text": "a"}), ("lost", {}), ("notes", {})])
    assert texts[0] == "1"
    assert json.loads(texts[2]) == [[{"id": 1, "text": "a"}], 0]
    assert call(running, "notes")["body"] == [[], 0]


# Isolation and determinism, on real environments


def scripts(program: Program, instances: int, calls: int) -> list[list[tuple[str, dict[str, Any]]]]:
    """For each instance, the calls it makes."""
    rng = random.Random(1)
    return [
        [
            (tool.name, sample_arguments(tool.input_schema, program.template, seed=rng.randrange(10_000)))
            for tool in rng.choices(program.tools, k=calls)
        ]
        for _ in range(instances)
    ]


def check_isolation(program: Program, instances: int, calls: int) -> None:
    """Instances whose calls are made in turn end with the same bytes, and say the same, as each alone."""
    script = scripts(program, instances, calls)
    together = Engine(program)
    states, said = [0] * instances, [[] for _ in script]
    for tick in range(calls):
        for number in random.Random(tick).sample(range(instances), instances):
            tool, arguments = script[number][tick]
            states[number], reply = together.call(states[number], tick, tool, arguments, timeout=10)
            said[number].append(reply["text"])
    assert len({together.get(state) for state in states}) > instances // 2, "the calls must make a difference"
    for number, own in enumerate(script):
        alone = Engine(program)
        state, texts = run(alone, own)
        assert texts == said[number]
        assert alone.get(state) == together.get(states[number])


def as_plain_functions(code: str) -> str:
    return code.replace("async def ", "def ").replace("session.close()", "pass")


def with_suspensions(code: str) -> str:
    lines = ["import asyncio", *code.splitlines()]
    suspended = [
        f"{line[: len(line) - len(line.lstrip())]}await asyncio.sleep(0.01); {line.lstrip()}; await asyncio.sleep(0)"
        if line.strip() == "session.commit()"
        else line
        for line in lines
    ]
    return "\n".join(suspended)


def variant(environment: Environment, change: Any) -> Program:
    assert environment.code is not None
    code = change(environment.code)
    assert code != environment.code
    return load(code, name="variant", template=loaded(environment).template, now=environment.now)


def test_instances_called_in_turn_are_as_if_alone(real: list[Environment]) -> None:
    check_isolation(loaded(named(real, "gofundme")), instances=12, calls=15)


@pytest.mark.parametrize("change", [as_plain_functions, with_suspensions])
def test_so_are_those_whose_handlers_are_plain_functions_leave_sessions_open_or_suspend(
    real: list[Environment], change: Any
) -> None:
    check_isolation(variant(named(real, "doordash_drive_delivery_tracking"), change), instances=8, calls=15)


def named(real: list[Environment], name: str) -> Environment:
    return next(environment for environment in real if environment.name == name)


def fingerprint(program: Program, calls: int) -> dict[str, str]:
    """What so many calls, one after the other, said and left."""
    (script,) = scripts(program, instances=1, calls=calls)
    running = Engine(program)
    state, texts = run(running, script)
    return {
        "said": hashlib.sha256("\n".join(texts).encode()).hexdigest(),
        "left": hashlib.sha256(running.get(state)).hexdigest(),
    }


IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from pipeline.model import Environment, TableRows, TableSchema
from tests.pipeline.runtime.programs import loaded
from tests.pipeline.runtime.test_engine import fingerprint

given = json.load(sys.stdin)
environments = [
    Environment(
        name, code=code, schema=tuple(TableSchema(n, d, tuple(i)) for n, d, i in schema),
        sample=tuple(TableRows(t, tuple(i)) for t, i in sample),
    )
    for name, code, schema, sample in given
]
calls = int(sys.argv[1])
print(json.dumps({environment.name: fingerprint(loaded(environment), calls) for environment in environments}))
"""


def check_determinism(real: list[Environment], calls: int) -> None:
    """The same calls give the same bytes here, here again, and in another process."""
    first = {environment.name: fingerprint(loaded(environment), calls) for environment in real}
    again = {environment.name: fingerprint(loaded(environment), calls) for environment in real}
    given = [
        (
            environment.name,
            environment.code,
            [(table.name, table.ddl, table.indexes) for table in environment.schema],
            [(rows.table, rows.inserts) for rows in environment.sample],
        )
        for environment in real
    ]
    elsewhere = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(calls)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "77"},
    )
    assert first == again == json.loads(elsewhere.stdout)


def test_the_same_calls_give_the_same_bytes(real: list[Environment]) -> None:
    check_determinism(real, calls=30)


@pytest.mark.benchmark
def test_150_calls_give_the_same_bytes(real: list[Environment]) -> None:
    check_determinism(real, calls=150)


@pytest.mark.benchmark
@pytest.mark.parametrize("number", range(5))
def test_64_instances_are_isolated_over_200_calls(real: list[Environment], number: int) -> None:
    check_isolation(loaded(real[number]), instances=64, calls=200)


@pytest.mark.benchmark
@pytest.mark.parametrize("change", [as_plain_functions, with_suspensions])
def test_64_instances_of_changed_handlers_are_isolated_over_200_calls(real: list[Environment], change: Any) -> None:
    check_isolation(variant(named(real, "surveymonkey_apply"), change), instances=64, calls=200)
