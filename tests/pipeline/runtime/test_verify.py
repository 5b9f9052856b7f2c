"""Verdicts: what a verifier may return, what it sees, what it cannot do, and whose fault a failure is."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import Environment, Mode, Verifier
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.host import Host, Verdict
from pipeline.runtime.limits import Limits
from pipeline.runtime.verifier_worker import JudgeError, call_verifier, find_function, needs_files
from pipeline.runtime.verify import read_verdict

LIMITS = Limits(verify_timeout_s=1.0, grace_s=0.5, memory_mb=512, reply_mb=2)
HEAD = "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n"


def database(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        return connection.serialize()


TICKETS = ("CREATE TABLE ticket (id INTEGER PRIMARY KEY, state TEXT)", "INSERT INTO ticket VALUES (1, 'open')")
INITIAL = database(*TICKETS)
FINAL = database(*TICKETS, "UPDATE ticket SET state = 'closed'")

Judge = Callable[..., Verdict]


@pytest.fixture(scope="module")
def host() -> Generator[Host]:
    with Host(limits=LIMITS) as started:
        yield started


@pytest.fixture(scope="module")
def judge(host: Host) -> Judge:
    def run(
        body: str, *, mode: Mode = Mode.code, initial: bytes = INITIAL, final: bytes = FINAL, answer: str | None = None
    ) -> Verdict:
        code = body if body.lstrip().startswith(("def ", "import ", "x =", "class ")) else HEAD + indented(body)
        return host.verify(Verifier(0, mode, code), initial, final, answer)

    return run


def indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.splitlines())


# What it may return


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [
        ("{'result': 'complete'}", "complete"),
        ("{'result': 'others'}", "others"),
        ("{'result': ' Complete\\n', 'why': object()}", "complete"),
        ("{'result': 'OTHERS'}", "others"),
        ("{'result': 'incomplete'}", "judge_error"),
        ("{'result': True}", "judge_error"),
        ("{'result': None}", "judge_error"),
        ("{'verdict': 'complete'}", "judge_error"),
        ("'complete'", "judge_error"),
        ("True", "judge_error"),
        ("None", "judge_error"),
        ("{'result': 'complete', 'execution_status': 'error', 'error_message': 'no table'}", "judge_error"),
        ("{'result': 'x' * (100 << 20)}", "judge_error"),
    ],
)
def test_a_code_verifier_says_complete_or_others(judge: Judge, returned: str, verdict: str) -> None:
    said = judge(f"return {returned}")
    assert said.verdict == verdict
    assert said.evidence is None
    assert bool(said.error) == (verdict == "judge_error")


def test_a_sql_verifier_gives_evidence(judge: Judge) -> None:
    body = (
        "def verify_task(initial_db_path, final_db_path):\n"
        "    import sqlite3\n"
        "    q = lambda p: sqlite3.connect(p).execute('SELECT state FROM ticket').fetchall()\n"
        "    return {'before': q(initial_db_path), 'after': q(final_db_path), 3: b'x', 'when': object}\n"
    )
    verdict = judge(body, mode=Mode.sql)
    assert verdict.verdict == "evidence"
    assert verdict.evidence == {
        "before": [["open"]],
        "after": [["closed"]],
        "3": "b'x'",
        "when": "<class 'object'>",
    }


@pytest.mark.parametrize("returned", ["'evidence'", "[1]", "{(1, 2): 3}", "None", "{'x': 'x' * (100 << 20)}"])
def test_evidence_that_is_no_json_object_is_a_judge_error(judge: Judge, returned: str) -> None:
    began = time.monotonic()
    verdict = judge(f"return {returned}", mode=Mode.sql)
    assert (verdict.verdict, verdict.evidence) == ("judge_error", None)
    assert verdict.error
    assert time.monotonic() - began < 10


# How it may be written


@pytest.mark.parametrize(
    "signature",
    [
        "verify_task_completion(initial_db_path, final_db_path, final_answer=None)",
        "verify_task_completion(initial_db_path: str, final_db_path: str) -> dict",
        "verify_task_completion(final_answer, final_db_path, initial_db_path)",
        "verify_task_completion(*, final_db, initial_db)",
        "verify_task(db_before, db_after)",
        "verify_ticket(first, second, /)",
        "check(first, second, third, fourth=4)",
        "verify_task_completion(*arguments)",
        "verify_task_completion(initial_db_path, final_db_path, final_answer='', **options)",
    ],
)
def test_names_and_order_of_parameters_do_not_matter(judge: Judge, signature: str) -> None:
    seen = "arguments" if "*arguments" in signature else "list(locals().values())"
    body = (
        f"def {signature}:\n"
        f"    seen = {seen}\n"
        "    import sqlite3\n"
        "    paths = sorted(str(p) for p in seen if str(p).endswith('.db'))\n"
        "    state = lambda p: sqlite3.connect(p).execute('SELECT state FROM ticket').fetchone()[0]\n"
        "    return {'result': 'complete' if [state(p) for p in paths] == ['closed', 'open'] else 'others'}\n"
    )
    assert judge(body).verdict == "complete"


NAMES = {
    "initial": ["initial_db_path", "db_before"],
    "final": ["final_db_path", "after"],
    "answer": ["final_answer", "response"],
}


@given(st.permutations(["initial", "final", "answer"]), st.data())
def test_a_parameter_gets_what_its_name_says(order: list[str], data: st.DataObject) -> None:
    names = [data.draw(st.sampled_from(NAMES[meaning])) for meaning in order]
    namespace: dict = {}
    exec(f"def verify({', '.join(names)}): return [{', '.join(names)}]", namespace)
    assert call_verifier(namespace["verify"], "initial", "final", "answer") == order


def test_a_parameter_nobody_knows_is_a_judge_error(judge: Judge) -> None:
    verdict = judge("def verify_task(initial, final, answer, trajectory):\n    return {'result': 'complete'}")
    assert verdict.verdict == "judge_error"
    assert "'trajectory'" in str(verdict.error)
    with pytest.raises(JudgeError):
        call_verifier(lambda a, b, c, d: None, "a", "b", "c")


def test_no_answer_is_an_empty_one_as_upstream(judge: Judge) -> None:
    body = "return {'result': 'complete' if final_answer == %r else 'others'}"
    assert judge(body % "").verdict == "complete"
    assert judge(body % "42 ü", answer="42 ü").verdict == "complete"


def test_helpers_beside_the_function_are_fine_and_none_is_an_error(judge: Judge) -> None:
    helper = "import re\n\n\ndef helper():\n    return 'complete'\n\n\n"
    assert judge(f"{helper}{HEAD}    return {{'result': helper()}}\n").verdict == "complete"
    missing = judge("x = 1")
    assert missing.verdict == "judge_error"
    assert "no function" in str(missing.error)
    with pytest.raises(JudgeError, match="no function"):
        find_function({"verify_task": sqlite3.connect})


def test_what_upstream_provides_needs_no_import(judge: Judge) -> None:
    body = "assert sqlite3 and json and os and re\nreturn {'result': 'complete'}"
    assert judge(body).verdict == "complete"


# Whose fault it is


def test_an_exception_is_told_with_the_verifiers_line(judge: Judge) -> None:
    verdict = judge("rows = []\nfirst = rows[0]\nreturn {'result': 'complete'}")
    assert verdict.verdict == "judge_error"
    assert verdict.error == "IndexError: list index out of range (line 3: `first = rows[0]`)"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def verify_task(a, b):\n    return {'result': 'complete'\n", "line 2"),
        ("def verify_task(a, b):\n    import no_such_module", "no_such_module"),
        ("def verify_task(a, b):\n    raise SystemExit", "SystemExit"),
        ("def verify_task(a, b):\n    return verify_task(a, b)", "RecursionError"),
        ("def verify_task(a, b):\n    return bytearray(4 << 30)", "MemoryError"),
        ("def verify_task(a, b):\n    while True: pass", "stopped after 1 s (line 2"),
        (
            "def verify_task(a, b):\n    while True:\n        try: __import__('time').sleep(0)\n        except: pass",
            "",  # stopped by its own timer or by the host's, whichever comes first
        ),
        ("def verify_task(a, b):\n    import os; os._exit(0)", "exit code 0"),
        ("def verify_task(a, b):\n    import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("def verify_task(a, b):\n    import os\n    for n in range(99): os.close(n) if n > 2 else 0", ""),
        ("x = '\0'", "null bytes"),
    ],
)
def test_a_verifier_that_fails_is_a_judge_error_in_time(judge: Judge, code: str, words: str) -> None:
    began = time.monotonic()
    verdict = judge(code)
    assert verdict.verdict == "judge_error"
    assert words in str(verdict.error)
    assert time.monotonic() - began < LIMITS.verify_timeout_s + LIMITS.grace_s + 3


ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"


def test_endless_sql_is_stopped_even_where_its_error_is_swallowed(judge: Judge) -> None:
    body = (
        f"try: sqlite3.connect(final_db_path).execute({ENDLESS!r}).fetchall()\n"
        "except Exception: pass\n"
        "return {'result': 'complete'}"
    )
    verdict = judge(body)
    assert verdict.verdict == "judge_error"
    assert "SQL was stopped" in str(verdict.error)


def test_the_sql_that_took_the_time_is_named_also_where_the_verifier_goes_on_after_it(judge: Judge) -> None:
    body = (
        f"try: sqlite3.connect(final_db_path).execute({ENDLESS!r}).fetchall()\n"
        "except BaseException: pass\n"
        "while True: pass"
    )
    assert "SQL was stopped" in str(judge(body).error)


SWALLOWING = """
import sqlite3
def q(p, s):
    try: return sqlite3.connect(f"file:{p}?mode=ro", uri=True).execute(s).fetchall()
    except Exception: return []
"""


def test_a_database_that_is_none_is_not_the_agents_failure(judge: Judge) -> None:
    body = (
        SWALLOWING + HEAD + "    return {'result': 'others' if not q(final_db_path, 'SELECT 1 FROM ticket') else 'x'}\n"
    )
    for broken, words in (
        (b"", "not a SQLite database (0 bytes)"),
        (b"hello", "not a SQLite database"),
        (FINAL[:4096], "damaged"),
        (FINAL[:4096] + b"\xff" * (len(FINAL) - 4096), "damaged"),
    ):
        verdict = judge(body, final=broken)
        assert verdict.verdict == "judge_error"
        assert "final" in str(verdict.error)
        assert words in str(verdict.error)
        assert verdict.queries == ()
    assert "initial" in str(judge(body, initial=b"").error)


def test_a_final_database_without_a_table_is_not_the_agents_failure(judge: Judge) -> None:
    verdict = judge("return {'result': 'others'}", final=database("CREATE TABLE other (x)"))
    assert verdict.verdict == "judge_error"
    assert "ticket" in str(verdict.error)


@pytest.mark.parametrize("result", ["others", "complete"])
def test_a_statement_that_failed_unseen_is_told(judge: Judge, result: str) -> None:
    body = SWALLOWING + HEAD + f"    q(final_db_path, 'SELECT lost FROM ticket')\n    return {{'result': {result!r}}}\n"
    verdict = judge(body)
    assert verdict.verdict == "judge_error"
    assert "SELECT lost FROM ticket (no such column: lost)" in str(verdict.error)
    assert verdict.queries == (
        {"db": "final", "sql": "SELECT lost FROM ticket", "ok": False, "error": "no such column: lost"},
    )


def test_in_sql_mode_a_failed_statement_leaves_the_evidence_to_the_judge(judge: Judge) -> None:
    body = SWALLOWING + "def verify_task(a, b):\n    return {'rows': q(b, 'SELECT * FROM nowhere')}\n"
    verdict = judge(body, mode=Mode.sql)
    assert (verdict.verdict, verdict.evidence) == ("evidence", {"rows": []})
    assert "nowhere" in str(verdict.error)


def test_a_page_that_fails_while_rows_are_fetched_is_told(judge: Judge) -> None:
    many = database(*TICKETS, *(f"INSERT INTO ticket VALUES ({n}, hex(randomblob(900)))" for n in range(2, 40)))
    body = (
        "import sqlite3\n" + HEAD + "    rows = sqlite3.connect(final_db_path).execute("
        "'SELECT CASE WHEN id > 20 THEN json(state) END FROM ticket')\n"
        "    try: list(rows)\n    except Exception: pass\n    return {'result': 'others'}\n"
    )
    verdict = judge(body, final=many)
    assert verdict.verdict == "judge_error"
    assert "malformed JSON" in str(verdict.error)
    assert [query["ok"] for query in verdict.queries] == [False]


def test_the_vacuous_verifier_of_an_empty_list_is_no_verdict_without_its_table(judge: Judge) -> None:
    body = (
        SWALLOWING
        + HEAD
        + (
            "    rows = q(final_db_path, \"select id, status from ticket where status='shortlisted'\")\n"
            "    return {'result': 'complete' if all(r[0] == 4007 for r in rows) else 'others'}\n"
        )
    )
    assert judge(body).verdict == "judge_error"


# What it sees


@pytest.mark.parametrize(
    "connect",
    [
        "sqlite3.connect(final_db_path)",
        "sqlite3.connect(database=final_db_path)",
        "sqlite3.connect(pathlib.Path(final_db_path))",
        "sqlite3.connect(final_db_path.encode())",
        "sqlite3.connect(f'file:{final_db_path}?mode=ro', uri=True)",
        "sqlite3.connect(f'file://{final_db_path}?mode=ro&immutable=1', uri=True)",
        "sqlite3.connect(f'file:{final_db_path}', 5.0, 0, None, True, sqlite3.Connection, 128, True)",
        "sqlite3.dbapi2.connect(final_db_path)",
        "sqlite3.Connection(final_db_path)",
        "contextlib.closing(sqlite3.connect(final_db_path)).thing",
    ],
)
def test_every_way_of_connecting_opens_the_right_database_and_is_traced(judge: Judge, connect: str) -> None:
    body = (
        "import contextlib, pathlib, sqlite3\n"
        f"{HEAD}    connection = {connect}\n"
        "    state = connection.cursor().execute('SELECT state FROM ticket').fetchone()[0]\n"
        "    return {'result': 'complete' if state == 'closed' else 'others'}\n"
    )
    verdict = judge(body)
    assert verdict.verdict == "complete", verdict.error
    assert verdict.queries == ({"db": "final", "sql": "SELECT state FROM ticket", "ok": True, "error": None},)


def test_queries_name_the_database_they_ran_on(judge: Judge) -> None:
    body = (
        "for path in (initial_db_path, ':memory:', final_db_path):\n"
        "    connection = sqlite3.connect(path)\n"
        "    connection.row_factory = sqlite3.Row\n"
        "    assert connection.execute('SELECT 1 AS one').fetchone()['one'] == 1\n"
        "return {'result': 'complete'}"
    )
    assert [query["db"] for query in judge(body).queries] == ["initial", "other", "final"]


def test_the_list_of_queries_is_bounded_and_keeps_failures(judge: Judge) -> None:
    body = (
        "connection = sqlite3.connect(final_db_path)\n"
        "for n in range(3000): connection.execute('SELECT 1 -- ' + 'x' * 5000)\n"
        "try: connection.execute('SELECT 1 FROM nowhere')\n"
        "except Exception: pass\n"
        "return {'result': 'others'}"
    )
    verdict = judge(body)
    assert "nowhere" in str(verdict.error)
    assert len(verdict.queries) == 1001
    assert max(len(query["sql"]) for query in verdict.queries) == 2000


def test_the_time_is_the_environments(host: Host) -> None:
    body = (
        "from datetime import date, datetime\n" + HEAD + "    import sqlite3, time\n"
        "    sql = sqlite3.connect(final_db_path).execute(\"SELECT datetime('now'), current_date\").fetchone()\n"
        "    python = (datetime.utcnow().isoformat(' '), date.today().isoformat())\n"
        "    assert sql == python == ('2031-02-03 04:05:06', '2031-02-03'), (sql, python)\n"
        "    return {'result': 'complete'}\n"
    )
    now = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    verdict = host.verify(Verifier(0, Mode.code, body), INITIAL, FINAL, now=now)
    assert verdict.verdict == "complete", verdict.error


def test_a_database_in_wal_mode_can_be_judged(judge: Judge, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "wal.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in TICKETS:
            connection.execute(statement)
    content = (tmp_path / "wal.db").read_bytes()
    assert content[18] == 2
    body = "return {'result': 'complete' if sqlite3.connect(final_db_path).execute('SELECT id FROM ticket').fetchone() else 'others'}"
    assert judge(body, final=content).verdict == "complete"
    assert judge("import os\n" + HEAD + indented(body), final=content).verdict == "complete"


# In memory or as files


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("import sqlite3, re, json, datetime\nsqlite3.connect('x').execute('SELECT 1')", False),
        ("import os", True),
        ("os.path.exists(p)", True),
        ("open(p)", True),
        ("import io\nio.open(p)", True),
        ("from pathlib import Path", True),
        ("import pandas as pd", True),
        ("eval('x')", True),
        ("c.execute('ATTACH ? AS i')", True),
        ("c.execute(f'create temp table {x}(y)')", True),
        ("c.execute('SELECT attached, template FROM t')", False),
    ],
)
def test_files_are_written_only_for_code_that_may_look_at_them(code: str, files: bool) -> None:
    assert needs_files(code) is files


FILES_TOO = {
    "os.path": "return {'result': 'complete' if os.path.getsize(final_db_path) else 'others'}",
    "open": "return {'result': 'complete' if open(final_db_path, 'rb').read(6) == b'SQLite' else 'others'}",
    "ATTACH": (
        "c = sqlite3.connect(final_db_path)\n"
        "c.execute('ATTACH ? AS before', (initial_db_path,))\n"
        "n = c.execute('SELECT count(*) FROM ticket t JOIN before.ticket b USING (id) WHERE t.state <> b.state')\n"
        "return {'result': 'complete' if n.fetchone()[0] == 1 else 'others'}"
    ),
    "a temporary table": (
        "c = sqlite3.connect(final_db_path)\n"
        "c.execute('CREATE TEMP TABLE x AS SELECT * FROM ticket')\n"
        "return {'result': 'complete' if c.execute('SELECT * FROM x').fetchall() else 'others'}"
    ),
    "a copy in memory": (
        "import shutil\nc = sqlite3.connect(':memory:')\nsqlite3.connect(final_db_path).backup(c)\n"
        "return {'result': 'complete' if c.execute('SELECT * FROM ticket').fetchall() else 'others'}"
    ),
    "SQLAlchemy": (
        "from sqlalchemy import create_engine, text\n"
        "with create_engine(f'sqlite:///{final_db_path}').connect() as c:\n"
        "    return {'result': 'complete' if c.execute(text('SELECT * FROM ticket')).fetchall() else 'others'}"
    ),
}


@pytest.mark.parametrize("what", FILES_TOO)
def test_verifiers_that_do_more_with_paths_find_real_files(judge: Judge, what: str) -> None:
    verdict = judge(HEAD + indented(FILES_TOO[what]))
    assert verdict.verdict == "complete", verdict.error


WRITING = {
    "SQL in memory": "sqlite3.connect(final_db_path).execute('DELETE FROM ticket')",
    "SQL on the file": "os.path\nsqlite3.connect(final_db_path).execute('DELETE FROM ticket')",
    "open": "open(final_db_path, 'ab')",
    "unlink": "os.unlink(final_db_path)",
    "rename": "os.rename(initial_db_path, final_db_path)",
    "chmod": "os.chmod(final_db_path, 0o666)",
}


@pytest.mark.parametrize("what", WRITING)
def test_a_verifier_cannot_change_what_it_judges(judge: Judge, host: Host, what: str) -> None:
    if not host.sandbox()["landlock"].active and what in ("unlink", "rename"):
        pytest.skip("this machine has no Landlock")
    before = bytes(FINAL)
    verdict = judge(f"{WRITING[what]}\nreturn {{'result': 'complete'}}")
    assert verdict.verdict == "judge_error"
    assert "readonly database" in str(verdict.error) or "PermissionError" in str(verdict.error)
    assert before == FINAL


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_real_verifiers_judge_the_same_in_memory_and_over_files(host: Host, real: list[Environment]) -> None:
    queries = []
    for env in real:
        with host.program(env) as program, program.instance() as instance:
            for tool in program.tools:
                instance.call(tool.name, sample_arguments(tool.input_schema, program.template, seed=1))
            initial, final = program.template, instance.snapshot()
        for verifier in env.verifiers:
            assert not needs_files(verifier.code)
            over_files = Verifier(verifier.task, verifier.mode, f"{verifier.code}\nimport os\n")
            in_memory = host.verify(verifier, initial, final, "12 USD", now=env.now)
            assert in_memory.verdict in ("complete", "others"), in_memory.error
            as_files = host.verify(over_files, initial, final, "12 USD", now=env.now)
            assert (as_files.verdict, as_files.queries) == (in_memory.verdict, in_memory.queries)
            queries.append(len(in_memory.queries))
    assert len(queries) == 50
    assert sum(queries) > 100


# What the host makes of a worker's words

GOOD = {"verdict": "complete", "error": None, "queries": [], "reads": [["final", "ticket", "id"]], "said": "complete"}


@pytest.mark.parametrize(
    ("header", "attachments", "mode"),
    [
        ({}, (), "code"),
        ({**GOOD, "verdict": "evidence"}, (), "code"),
        ({**GOOD, "verdict": "evidence"}, (), "sql"),
        ({**GOOD, "verdict": "evidence"}, (b"[]",), "sql"),
        ({**GOOD, "verdict": "evidence"}, (b"{",), "sql"),
        ({**GOOD, "verdict": "complete"}, (), "sql"),
        ({**GOOD, "verdict": ["complete"]}, (), "code"),
        ({**GOOD, "verdict": "perfect"}, (), "code"),
        ({**GOOD, "error": 1}, (), "code"),
        ({**GOOD, "queries": {}}, (), "code"),
        ({**GOOD, "queries": [{"db": "final", "sql": "x", "ok": "yes", "error": None}]}, (), "code"),
        ({**GOOD, "queries": ["SELECT"]}, (), "code"),
        ({**GOOD, "reads": [["final", "ticket"]]}, (), "code"),
        ({**GOOD, "said": "perfect"}, (), "code"),
    ],
)
def test_words_of_another_form_are_no_verdict(header: dict, attachments: tuple, mode: str) -> None:
    assert read_verdict(header, attachments, mode).verdict == "judge_error"
    assert read_verdict(GOOD, (), "code").verdict == "complete"
