"""Programs and instances: isolated, repeatable, recovered, and all gone at the end."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.runtime.host import Host, HostedProgram, Instance, LoadFailed, Reply
from pipeline.runtime.limits import Limits
from tests.pipeline.runtime.small_programs import NOTEBOOK, notebook, with_rows

LIMITS = Limits(call_timeout_s=1.0, load_timeout_s=20.0, grace_s=0.5, memory_mb=256, reply_mb=2)
DIE = {"code": "import os; os._exit(7)"}


@pytest.fixture(scope="module")
def host() -> Generator[Host]:
    with Host(limits=LIMITS) as started:
        yield started


@pytest.fixture(scope="module")
def program(host: Host) -> Generator[HostedProgram]:
    with host.program(notebook()) as loaded:
        yield loaded


def add(instance: Instance, text: str) -> Reply:
    return instance.call("add_note", {"text": text})


def notes(instance: Instance) -> list[str]:
    return instance.call("list_notes").body


def wait_for_end(process: int) -> None:
    """Wait until the process behind a pidfd has ended."""
    ended = select.select([process], [], [], 10)[0]
    os.close(process)
    assert ended, "a process outlived the one it belongs to"


# What a call gives


def test_a_call_gives_status_body_and_the_text_an_agent_sees(program: HostedProgram) -> None:
    reply = add(program.instance(), "milk")
    assert reply.ok
    assert reply.status == 200
    assert reply.body == {"id": 2, "text": "milk", "written": "2026-01-01T12:00:00"}
    assert json.loads(reply.text) == reply.body
    assert reply.error is None


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "status"),
    [
        ("no_such_tool", {}, "tool_not_found", 404),
        ("add_note", {"text": 7}, "invalid_arguments", 422),
        ("add_note", {}, "invalid_arguments", 422),
        ("add_note", {"text": b"bytes"}, "invalid_arguments", 422),
        ("add_note", ["milk"], "invalid_arguments", 422),
        ("delete_note", {"note_id": 99}, "client_error", 404),
        ("run", {"code": "1 / 0"}, "server_error", 500),
        ("run", {"code": "while True: pass"}, "timeout", 504),
        ("run", DIE, "crash", 500),
    ],
)
def test_a_call_that_fails_says_in_which_way(
    program: HostedProgram, tool: str, arguments: dict, kind: str, status: int
) -> None:
    reply = program.instance().call(tool, arguments)
    assert not reply.ok
    assert reply.error is not None
    assert (reply.error.kind, reply.status) == (kind, status)
    assert reply.error.message
    assert reply.text


def test_a_crash_says_how_the_process_ended(program: HostedProgram) -> None:
    error = program.instance().call("run", DIE).error
    assert error is not None
    assert "exit code 7" in error.message
    error = program.instance().call("run", {"code": "import ctypes; ctypes.string_at(0)"}).error
    assert error is not None
    assert "SIGSEGV" in error.message


def test_a_reply_that_is_too_large_is_an_error_of_its_call(program: HostedProgram) -> None:
    instance = program.instance()
    reply = instance.call("run", {"code": "out = 'x' * (3 << 20)"})
    assert reply.error is not None
    assert reply.error.kind == "server_error"
    assert "6 MB" in reply.error.message  # as JSON and as text
    assert notes(instance) == ["first"]


def test_a_body_that_python_cannot_hold_is_its_text() -> None:
    nested = "[" * 100_000 + "]" * 100_000
    assert Reply(200, nested, nested).body == nested
    assert Reply(200, "9" * 5000, "").body == "9" * 5000


def test_what_brings_a_worker_into_disorder_ends_it_and_is_told(program: HostedProgram) -> None:
    code = (
        "import gc\nfrom pipeline.runtime.engine import Engine\n"
        "[e] = [o for o in gc.get_objects() if isinstance(o, Engine)]\ne.get = None"
    )
    error = program.instance().call("run", {"code": code}).error
    assert error is not None
    assert error.kind == "crash"
    assert "TypeError" in error.message
    assert notes(program.instance()) == ["first"]


def test_changing_a_body_changes_no_other_reply(program: HostedProgram) -> None:
    one, other = program.instance(), program.instance()
    one.call("list_notes").body.append("intruder")
    assert notes(other) == ["first"]


# Instances


def test_instances_do_not_see_each_other(program: HostedProgram) -> None:
    instances = [program.instance() for _ in range(8)]
    for number, instance in enumerate(instances):
        for text in range(number):
            add(instance, f"{number}.{text}")
    for number, instance in enumerate(instances):
        assert notes(instance) == ["first", *(f"{number}.{text}" for text in range(number))]


def test_reset_goes_back_to_the_beginning_of_time(program: HostedProgram) -> None:
    instance = program.instance()
    first = add(instance, "milk")
    add(instance, "bread")
    instance.reset()
    assert instance.snapshot() == program.template
    assert add(instance, "milk") == first


def test_a_fork_goes_its_own_way(program: HostedProgram) -> None:
    parent = program.instance()
    add(parent, "milk")
    child = parent.fork()
    add(child, "bread")
    assert notes(parent) == ["first", "milk"]
    assert notes(child) == ["first", "milk", "bread"]
    assert parent.fork().snapshot() == parent.snapshot()


def test_a_snapshot_can_be_gone_back_to(program: HostedProgram) -> None:
    instance = program.instance()
    add(instance, "milk")
    saved = instance.snapshot()
    add(instance, "bread")
    instance.restore(saved)
    assert instance.snapshot() == saved
    assert notes(instance) == ["first", "milk"]
    with pytest.raises(UserError, match="not a SQLite database"):
        instance.restore(b"nonsense")


def test_the_clock_can_be_chosen(host: Host) -> None:
    moment = datetime(2030, 5, 1, 8, 0, tzinfo=UTC)
    with host.program(notebook(), now=moment) as program:
        instance = program.instance()
        assert add(instance, "milk").body["written"] == "2030-05-01T08:00:00"
        assert add(instance, "bread").body["written"] == "2030-05-01T08:00:01"


def test_a_live_clock_is_the_machines_and_nothing_is_cached(host: Host) -> None:
    with host.program(notebook(), now="live") as program:
        written = datetime.fromisoformat(add(program.instance(), "milk").body["written"])
        assert abs((written - datetime.now(UTC).replace(tzinfo=None)).total_seconds()) < 60
        program.instance().call("list_notes")
        program.instance().call("list_notes")
        assert program.stats()["cache"]["hits"] == 0


def test_states_that_nobody_holds_are_let_go(host: Host) -> None:
    with host.program(notebook(), cache=False) as program:
        instances = [program.instance() for _ in range(5)]
        for number, instance in enumerate(instances):
            add(instance, f"{number}")
        assert program.stats()["states"] == 6
        instances[0].close()
        instances[1].reset()
        del instance, instances[2]
        gc.collect()
        program.instance().call("list_notes")
        assert program.stats()["states"] == 3


def test_the_cache_is_bounded_and_so_are_the_states_it_holds() -> None:
    with Host(limits=LIMITS, cache_mb=1) as host, host.program(notebook()) as program:
        instance = program.instance()
        for number in range(60):
            add(instance, f"{number}" * 1000)
        stats = program.stats()
        assert 0 < stats["cache"]["entries"] < 60
        assert stats["cache"]["bytes"] <= 1 << 20
        assert stats["bytes"] <= (1 << 20) + len(program.template) + 2 * len(instance.snapshot())


# The same calls give the same bytes


def random_calls(seed: int, count: int) -> list[tuple[str, dict]]:
    draw = random.Random(seed)
    makers = [
        lambda: ("add_note", {"text": draw.choice(["milk", "bread", ""])}),
        lambda: ("list_notes", {}),
        lambda: ("delete_note", {"note_id": draw.randrange(6)}),
        lambda: ("add_note", {"text": draw.randrange(2)}),
        lambda: (
            "run",
            {
                "code": draw.choice(
                    ["import random; out = random.random()", "1 / 0", "import uuid; out = str(uuid.uuid4())"]
                )
            },
        ),
    ]
    return [draw.choice(makers)() for _ in range(count)]


def replies_and_states(program: HostedProgram, calls: list[tuple[str, dict]]) -> list[tuple[Reply, bytes]]:
    instance = program.instance()
    return [(instance.call(*call), instance.snapshot()) for call in calls]


def test_cached_and_uncached_calls_are_the_same_byte_for_byte(host: Host) -> None:
    with host.program(notebook()) as cached, host.program(notebook(), cache=False) as uncached:
        for seed in range(6):
            calls = random_calls(seed, 25)
            fresh = replies_and_states(uncached, calls)
            assert replies_and_states(cached, calls) == fresh
            assert replies_and_states(cached, calls) == fresh
        assert uncached.stats()["cache"]["hits"] == 0
        assert cached.stats()["cache"]["hits"] > 6 * 25


def test_interleaved_instances_are_as_if_each_were_alone(host: Host) -> None:
    with host.program(notebook(), cache=False) as program:
        sequences = [random_calls(seed, 20) for seed in range(8)]
        alone = [replies_and_states(program, calls) for calls in sequences]
        instances = [program.instance() for _ in sequences]
        together: list[list[tuple[Reply, bytes]]] = [[] for _ in sequences]
        for step in range(20):
            for number in random.Random(step).sample(range(8), 8):
                reply = instances[number].call(*sequences[number][step])
                together[number].append((reply, instances[number].snapshot()))
        assert together == alone


def test_calls_from_threads_are_as_if_each_were_alone(program: HostedProgram) -> None:
    sequences = [random_calls(seed, 15) for seed in range(6)]
    alone = [replies_and_states(program, calls) for calls in sequences]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(lambda calls: replies_and_states(program, calls), sequences)) == alone


async def test_many_instances_can_be_awaited_at_once(program: HostedProgram) -> None:
    instances = [program.instance() for _ in range(20)]
    await asyncio.gather(*(one.acall("add_note", {"text": f"{n}"}) for n, one in enumerate(instances)))
    replies = await asyncio.gather(*(one.acall("list_notes") for one in instances))
    assert [reply.body for reply in replies] == [["first", f"{n}"] for n in range(20)]


async def test_an_awaited_call_does_not_block_the_loop(program: HostedProgram) -> None:
    slow = asyncio.create_task(program.instance().acall("run", {"code": "while True: pass"}))
    ticks = 0
    while not slow.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 20
    assert slow.result().error.kind == "timeout"


# When a worker dies


def test_instances_come_back_as_they_were_when_their_worker_has_died(host: Host) -> None:
    with host.program(notebook()) as program:
        plain, restored, forked = program.instance(), program.instance(), program.instance()
        for text in ("milk", "bread"):
            add(plain, text)
        restored.restore(plain.snapshot())
        add(restored, "salt")
        child = forked.fork()
        add(child, "tea")
        everyone = [plain, restored, forked, child]
        before = [one.snapshot() for one in everyone]
        expected = add(plain.fork(), "next")

        program.instance().call("run", DIE)

        assert [one.snapshot() for one in everyone] == before
        assert add(plain, "next") == expected, "its clock goes on where it was"


def test_a_dead_instance_goes_on_from_before_the_call_that_killed_it(program: HostedProgram) -> None:
    instance = program.instance()
    add(instance, "milk")
    code = "session.add(Note(text='half')); session.commit(); import os; os._exit(1)"
    assert instance.call("run", {"code": code}).error.kind == "crash"
    assert notes(instance) == ["first", "milk"]
    code = "session.add(Note(text='half')); session.commit()\nwhile True: pass"
    assert instance.call("run", {"code": code}).error.kind == "timeout"
    assert notes(instance) == ["first", "milk"]


def test_a_worker_killed_from_outside_is_replaced(program: HostedProgram) -> None:
    instance = program.instance()
    add(instance, "milk")
    os.kill(program.stats()["pid"], signal.SIGKILL)
    assert instance.call("run", {"code": "out = 1"}).error.kind == "crash"
    assert notes(instance) == ["first", "milk"]


def test_a_dead_fork_server_is_replaced(host: Host, program: HostedProgram) -> None:
    instance = program.instance()
    add(instance, "milk")
    worker = os.pidfd_open(program.stats()["pid"])
    os.kill(host.server_pid, signal.SIGKILL)
    wait_for_end(worker)
    assert instance.call("run", {"code": "out = 1"}).error.kind == "crash"
    assert notes(instance) == ["first", "milk"]
    with host.program(notebook(name="later")) as later:
        assert notes(later.instance()) == ["first"]


# What cannot be loaded


@pytest.mark.parametrize(
    ("code", "finding", "where", "words"),
    [
        ("def broken(:\n", "load_syntax", "code:1", "invalid syntax"),
        ("import no_such_package\n", "load_missing_module", "code:1", "no_such_package"),
        ("x = 1\n", "load_no_app", "code", "FastAPI"),
        ("\n1 / 0\n", "load_exception", "code:2", "ZeroDivisionError"),
        ("import os\nos._exit(3)\n", "load_crash", "code", "exit code 3"),
        (None, "load_no_code", "code", "no code"),
    ],
)
def test_code_that_does_not_load_is_a_finding_with_its_line(
    host: Host, code: str | None, finding: str, where: str, words: str
) -> None:
    with pytest.raises(LoadFailed) as failure:
        host.program(notebook(code))  # ty: ignore[invalid-argument-type]
    found = failure.value.finding
    assert (found.code, found.severity, found.where) == (finding, "error", where)
    assert words in found.message
    assert found.remedy


def test_code_that_hangs_while_it_loads_is_stopped() -> None:
    with Host(limits=Limits(load_timeout_s=1.0)) as host, pytest.raises(LoadFailed, match="did not end within 1 s"):
        host.program(notebook("while True: pass"))


def test_a_database_that_ends_or_hangs_its_process_is_a_finding() -> None:
    rows = "WITH RECURSIVE r(x) AS (SELECT 9 UNION ALL SELECT x + 1 FROM r) SELECT x, 'n', 1 FROM r"
    with Host(limits=Limits(load_timeout_s=1.0)) as host, pytest.raises(LoadFailed) as failure:
        host.build(with_rows(f"INSERT INTO notes {rows}"))
    assert failure.value.finding.code in ("load_timeout", "load_crash")
    assert failure.value.finding.where == "database"


def test_a_database_that_is_too_large_is_a_finding() -> None:
    with Host(limits=Limits(reply_mb=1)) as host, pytest.raises(LoadFailed, match="a database of 2 MB"):
        host.build(with_rows("INSERT INTO notes VALUES (9, hex(zeroblob(1 << 20)), 1)"))


def test_a_program_without_code_still_has_its_database(host: Host) -> None:
    snapshot, build = host.initial(notebook(None))  # ty: ignore[invalid-argument-type]
    assert build.ok
    assert snapshot == build.snapshot
    with_code, _ = host.initial(notebook())
    assert with_code.startswith(b"SQLite format 3\0")


# Interpreters


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 3", "ended without a word"),
        ("echo 'no such version' >&2; exit 1", "no such version"),
        (f'exec {sys.executable} -S "$@"', "lacks fastapi, pydantic, sqlalchemy"),
    ],
)
def test_an_interpreter_that_cannot_run_workers_says_what_it_lacks(tmp_path: Path, script: str, words: str) -> None:
    python = tmp_path / "python3.12"
    python.write_text(f'#!/bin/sh\n[ "$1" = -s ] && shift\n{script}\n')
    python.chmod(0o755)
    with Host(python=str(python)) as host, pytest.raises(UserError, match=words) as failure:
        host.program(notebook())
    assert str(python) in str(failure.value)


def test_an_interpreter_that_is_not_there_is_named() -> None:
    with Host(python="/nowhere/python") as host, pytest.raises(UserError, match="/nowhere/python"):
        host.build(notebook())


# The end


async def test_a_closed_program_cannot_be_called(host: Host) -> None:
    with host.program(notebook()) as program:
        instance = program.instance()
        pid = program.stats()["pid"]
    with pytest.raises(UserError, match="closed"):
        instance.call("list_notes")
    with pytest.raises(UserError, match="closed"):
        await instance.acall("list_notes")
    assert not Path(f"/proc/{pid}").exists()


def test_closing_a_host_ends_calls_that_are_running() -> None:
    host = Host(limits=Limits(call_timeout_s=30.0))
    program = host.program(notebook())
    running = threading.Event()
    replies: list[Reply] = []

    def call() -> None:
        running.set()
        replies.append(program.instance().call("run", {"code": "while True: pass"}))

    caller = threading.Thread(target=call)
    caller.start()
    running.wait()
    host.close()
    caller.join(10)
    assert not caller.is_alive()
    assert replies[0].error.kind == "crash"


HOLDER = f"""
import sys, threading
sys.path[:0] = {sys.path!r}
from pipeline.runtime.host import Host
from tests.pipeline.runtime.small_programs import notebook

with Host() as host, host.program(notebook()) as program:
    instance = program.instance()
    print(host.server_pid, program.stats()["pid"], host.folder, flush=True)
    instance.call("run", {{"code": "import ctypes; ctypes.CDLL(None).pause()"}})
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_of_a_process_that_is_killed_or_interrupted(end: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        server, worker, folder = process.stdout.readline().split()
    watched = [os.pidfd_open(int(pid)) for pid in (server, worker)]

    process.send_signal(end)
    process.wait(20)

    for handle in watched:
        wait_for_end(handle)
    assert not Path(folder).exists()


def test_the_program_sees_upstreams_database_setting(host: Host) -> None:
    code = NOTEBOOK.replace('@app.post("/run"', "PATH = os.environ['DATABASE_PATH']\n\n\n@app.post(\"/run\"")
    with host.program(notebook(code)) as program:
        assert notes(program.instance()) == ["first"]


def test_a_running_call_can_be_stopped_and_its_instance_goes_on_from_before(host: Host) -> None:
    with host.program(notebook()) as program:
        instance, other = program.instance(), program.instance()
        instance.call("add_note", {"text": "milk"})
        replies: list[Reply] = []
        caller = threading.Thread(target=lambda: replies.append(instance.call("run", {"code": "while True: pass"})))
        caller.start()
        while not program.interrupt() and caller.is_alive():
            pass
        caller.join()
        assert [(reply.status, reply.error and reply.error.kind) for reply in replies] == [(499, "interrupted")]
        assert instance.call("list_notes").body == ["first", "milk"]
        assert other.call("list_notes").body == ["first"]


def test_stopping_where_nothing_runs_changes_nothing(host: Host) -> None:
    with host.program(notebook()) as program:
        instance = program.instance()
        instance.call("add_note", {"text": "milk"})
        worker = program.stats()["pid"]
        assert not program.interrupt()
        assert instance.call("list_notes").body == ["first", "milk"]
        assert program.stats()["pid"] == worker
