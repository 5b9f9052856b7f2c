"""Generated code that attacks: each attack ends as an error of its own call, and everything else goes on."""

from __future__ import annotations

import os
import platform
import socket
import struct
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.catalog import Catalog
from pipeline.model import Mode, Verifier
from pipeline.runtime import seccomp
from pipeline.runtime.host import Host, HostedProgram
from pipeline.runtime.limits import Limits
from pipeline.runtime.sandbox import LAYERS
from tests.pipeline.runtime.small_programs import notebook, with_rows

LIMITS = Limits(call_timeout_s=1.0, verify_timeout_s=1.0, grace_s=0.5, memory_mb=256, file_mb=4)
LONGEST_S = LIMITS.call_timeout_s + LIMITS.grace_s + 3.0
"""What an attack may take, with a busy machine's allowance for killing and burying a process."""


@pytest.fixture(scope="module")
def host() -> Generator[Host]:
    with Host(limits=LIMITS) as started:
        yield started


@pytest.fixture(scope="module")
def program(host: Host) -> Generator[HostedProgram]:
    with host.program(notebook()) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def neighbour(host: Host) -> Generator[HostedProgram]:
    with host.program(notebook(name="neighbour")) as loaded:
        yield loaded


@pytest.fixture
def needs(host: Host) -> Callable[[str], None]:
    """Skips a test where this machine lacks the layer it shows."""
    layers = host.sandbox()

    def check(layer: str) -> None:
        if not layers[layer].active:
            pytest.skip(f"this machine has no {layer}: {layers[layer].detail}")

    return check


@dataclass
class Target:
    """What attacks aim at, and what tells whether they came through."""

    folder: Path
    secret: Path
    catalog: Path
    server: socket.socket
    unix_server: socket.socket

    @property
    def untouched(self) -> bool:
        intact = self.secret.read_text() == "secret" and self.catalog.stat().st_size > 0
        return intact and not (self.folder / "made").exists() and self.secret.stat().st_mode & 0o777 == 0o600

    @property
    def reached(self) -> bool:
        for server in (self.server, self.unix_server):
            try:
                server.accept()
            except BlockingIOError:
                continue
            return True
        return False


@pytest.fixture
def target(tmp_path: Path) -> Generator[Target]:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    with Catalog.open(tmp_path / "catalog.db"):
        pass
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix_server:
        short = Path(f"/tmp/awm-test-{os.getpid()}.sock")  # Unix socket paths may be 108 bytes long at most
        unix_server.bind(str(short))
        unix_server.listen()
        server.setblocking(False)
        unix_server.setblocking(False)
        try:
            yield Target(tmp_path, secret, tmp_path / "catalog.db", server, unix_server)
        finally:
            short.unlink()


def aimed(code: str, target: Target) -> str:
    """An attack's code with the places it aims at."""
    places = {
        "HOME": str(Path.home()),
        "SECRET": str(target.secret),
        "CATALOG": str(target.catalog),
        "MADE": str(target.folder / "made"),
        "PORT": str(target.server.getsockname()[1]),
        "SOCKET": target.unix_server.getsockname(),
    }
    for name, value in places.items():
        code = code.replace(f"<{name}>", value)
    return code


REFUSED = {
    # what: (layer that shows it, code, exception)
    "reading /etc/passwd": ("landlock", "out = open('/etc/passwd').read()", "PermissionError"),
    "listing the home folder": ("landlock", "import os; out = os.listdir('<HOME>')", "PermissionError"),
    "listing the root folder": ("landlock", "import os; out = os.listdir('/')", "PermissionError"),
    "reading a private file": ("landlock", "out = open('<SECRET>').read()", "PermissionError"),
    "reading another process's environment": ("landlock", "open('/proc/1/environ').read()", "PermissionError"),
    "reading its own memory map": ("landlock", "out = open('/proc/self/maps').read()", "PermissionError"),
    "writing outside its folder": ("landlock", "open('<MADE>', 'w').write('x')", "PermissionError"),
    "overwriting a file": ("landlock", "open('<SECRET>', 'w').write('x')", "PermissionError"),
    "appending to a file": ("landlock", "open('<SECRET>', 'a').write('x')", "PermissionError"),
    "making a folder": ("landlock", "import os; os.mkdir('<MADE>')", "PermissionError"),
    "deleting the catalog": ("landlock", "import os; os.unlink('<CATALOG>')", "PermissionError"),
    "renaming the catalog": ("landlock", "import os; os.rename('<CATALOG>', '<MADE>')", "PermissionError"),
    "opening the catalog with sqlite3": (
        "landlock",
        "import _sqlite3; _sqlite3.connect('<CATALOG>').execute('DELETE FROM scenarios')",
        "OperationalError",
    ),
    "attaching the catalog": (
        "landlock",
        "import _sqlite3; _sqlite3.connect(':memory:').execute(\"ATTACH '<CATALOG>' AS c\")",
        "OperationalError",
    ),
    "truncating a file by name": ("seccomp", "import os; os.truncate('<SECRET>', 0)", "PermissionError"),
    "changing a file's mode": ("seccomp", "import os; os.chmod('<SECRET>', 0o777)", "PermissionError"),
    "changing a file's time": ("seccomp", "import os; os.utime('<SECRET>', (0, 0))", "PermissionError"),
    "making a link": ("seccomp", "import os; os.symlink('<SECRET>', 'link')", "PermissionError"),
    "opening a TCP connection": (
        "seccomp",
        "import socket; socket.create_connection(('127.0.0.1', <PORT>), 1)",
        "PermissionError",
    ),
    "sending a datagram": (
        "seccomp",
        "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', <PORT>))",
        "PermissionError",
    ),
    "connecting to a Unix socket": (
        "seccomp",
        "import socket; socket.socket(socket.AF_UNIX).connect('<SOCKET>')",
        "PermissionError",
    ),
    "sending to a Unix socket from a pair": (
        "seccomp",
        "import socket; socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', '<SOCKET>')",
        "PermissionError",
    ),
    "a shell": ("seccomp", "import os; assert os.system('touch <MADE>') == 0", "AssertionError"),
    "a subprocess": ("seccomp", "import subprocess; subprocess.run(['touch', '<MADE>'])", "PermissionError"),
    "posix_spawn": ("seccomp", "import os; os.posix_spawn('/bin/touch', ['touch', '<MADE>'], {})", "PermissionError"),
    "exec": ("seccomp", "import os; os.execv('/bin/touch', ['touch', '<MADE>'])", "PermissionError"),
    "a fork bomb": ("seccomp", "import os\nwhile True:\n    os.fork()", "PermissionError"),
    "a thread bomb": (
        "seccomp",
        "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(9,)).start()",
        "RuntimeError",
    ),
    "multiprocessing": ("seccomp", "import multiprocessing; multiprocessing.Process(target=print).start()", None),
    "killing the parent": ("seccomp", "import os; os.kill(os.getppid(), 9)", "PermissionError"),
    "killing everything": ("seccomp", "import os; os.kill(-1, 9)", "PermissionError"),
    "having the kernel signal the parent": (
        "seccomp",
        "import fcntl, os, socket\na, b = socket.socketpair()\nfcntl.fcntl(a, fcntl.F_SETOWN, os.getppid())",
        "PermissionError",
    ),
    "watching a folder": (
        "seccomp",
        "import ctypes\nif ctypes.CDLL(None).inotify_init1(0) < 0: raise PermissionError",
        "PermissionError",
    ),
    "raising its memory limit": (
        "seccomp",
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        None,
    ),
    "becoming root": ("seccomp", "import os; os.setuid(0)", "PermissionError"),
    "allocating 10 GB": ("rlimits", "out = len(bytearray(10 << 30))", "MemoryError"),
    "allocating without end": ("rlimits", "kept = []\nwhile True:\n    kept.append(bytearray(1 << 20))", "MemoryError"),
    "writing a big file": ("rlimits", "open('big', 'wb').write(bytes(8 << 20))", "OSError"),
    "filling its folder": (
        "namespaces",
        "import itertools\nfor n in itertools.count():\n    open(f'{n}', 'wb').write(bytes(1 << 20))",
        "OSError",
    ),
    "opening descriptors without end": (
        "rlimits",
        "import os\nwhile True:\n    os.open('/dev/null', os.O_RDONLY)",
        "OSError",
    ),
}


@pytest.mark.parametrize("attack", REFUSED)
def test_an_attack_on_the_system_is_a_server_error_of_its_call(
    attack: str, program: HostedProgram, neighbour: HostedProgram, target: Target, needs: Callable[[str], None]
) -> None:
    layer, code, exception = REFUSED[attack]
    needs(layer)
    other, stranger = program.instance(), neighbour.instance()
    other.call("add_note", {"text": "mine"})
    stranger.call("add_note", {"text": "theirs"})

    began = time.monotonic()
    reply = program.instance().call("run", {"code": aimed(code, target)})

    assert reply.error is not None, reply.text
    assert reply.error.kind == "server_error"
    if exception is not None:
        assert str(reply.error.exception).rpartition(".")[2] == exception
    assert time.monotonic() - began < LONGEST_S
    assert target.untouched
    assert not target.reached
    assert other.call("list_notes").body == ["first", "mine"]
    assert stranger.call("list_notes").body == ["first", "theirs"]


STOPPED = {
    "an endless loop": ("timeout", "while True: pass"),
    "an endless loop that catches everything": (
        "timeout",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    ),
    "ignoring the alarm": (
        "timeout",
        "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass",
    ),
    "endless SQL": (
        "timeout",
        "from sqlalchemy import text\n"
        "sql = 'WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r'\n"
        "session.execute(text(sql))",
    ),
    "a pattern that backtracks without end": ("timeout", "import re; re.match(r'(a+)+$', 'a' * 40 + 'b')"),
    "waiting in C": ("timeout", "import ctypes; ctypes.CDLL(None).pause()"),
    "a segmentation fault": ("crash", "import ctypes; ctypes.string_at(0)"),
    "aborting": ("crash", "import os; os.abort()"),
    "leaving": ("crash", "import os; os._exit(0)"),
    "endless recursion in C": (
        "crash",
        "import sys\nsys.setrecursionlimit(10**9)\nf = lambda: f()\nclass A:\n    __repr__ = lambda self: repr(self)\nrepr(A())",
    ),
    "writing on every descriptor": (
        "crash",
        "import os\nfor fd in range(64):\n    try: os.write(fd, b'spam' * 1000)\n    except OSError: pass",
    ),
    "closing every descriptor": ("crash", "import os; os.closerange(0, 64)"),
    "forging a reply": (
        "crash",
        "import json, os, struct\n"
        "reply = json.dumps({'state': 0, 'status': 200, 'error': None, 'sizes': [4, 4], 'nonce': ''}).encode()\n"
        "for fd in range(3, 64):\n"
        "    try: os.write(fd, struct.pack('>I', len(reply)) + reply + b'truefine')\n"
        "    except OSError: pass",
    ),
    "announcing an endless reply": (
        "crash",
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 4)\n    except OSError: pass",
    ),
}


@pytest.mark.parametrize("attack", STOPPED)
def test_an_attack_on_the_worker_ends_its_call_alone(
    attack: str, program: HostedProgram, neighbour: HostedProgram
) -> None:
    kind, code = STOPPED[attack]
    attacker, other, stranger = program.instance(), program.instance(), neighbour.instance()
    attacker.call("add_note", {"text": "before"})
    other.call("add_note", {"text": "mine"})
    stranger.call("add_note", {"text": "theirs"})

    began = time.monotonic()
    reply = attacker.call("run", {"code": code})

    assert reply.error is not None, reply.text
    assert reply.error.kind == kind, reply.error
    assert time.monotonic() - began < LONGEST_S
    assert attacker.call("list_notes").body == ["first", "before"], "the attacker's instance stays as it was"
    assert other.call("list_notes").body == ["first", "mine"]
    assert stranger.call("list_notes").body == ["first", "theirs"]


def test_what_generated_code_prints_is_nowhere(program: HostedProgram, capfd: pytest.CaptureFixture[str]) -> None:
    code = (
        "import os, sys\nprint('spam' * 100_000)\nprint('spam', file=sys.stderr)\nout = os.write(1, b'spam' * 100_000)"
    )
    assert program.instance().call("run", {"code": code}).body == 400_000
    assert capfd.readouterr() == ("", "")


def test_the_worker_knows_nothing_of_our_environment(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with Host(limits=LIMITS) as fresh, fresh.program(notebook()) as program:
        code = "import importlib; out = sorted(importlib.import_module('os').environ.values())"
        assert "sk-secret" not in program.instance().call("run", {"code": code}).body


def test_its_own_folder_can_be_written_and_read(program: HostedProgram, needs: Callable[[str], None]) -> None:
    needs("namespaces")
    code = "import tempfile\nwith tempfile.TemporaryFile('w+') as f:\n    f.write('x'); f.seek(0); out = f.read()"
    assert program.instance().call("run", {"code": code}).body == "x"


TAMPERING = {
    "json": "import json; json.dumps = json.loads = lambda *a, **k: {'result': 'complete'}",
    "sqlite3": "import sqlite3; sqlite3.connect = lambda *a, **k: None",
    "builtins": "import builtins; builtins.dict = builtins.isinstance = lambda *a, **k: True",
    "our own modules": "import sys; [sys.modules.pop(m) for m in list(sys.modules) if m.startswith('pipeline')]",
    "a trace function": "import sys; sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)",
}


@pytest.mark.parametrize("what", TAMPERING)
def test_an_environment_cannot_change_a_verdict(what: str, host: Host, program: HostedProgram) -> None:
    verifier = Verifier(
        0,
        Mode.code,
        "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n"
        "    import sqlite3\n"
        "    n = sqlite3.connect(final_db_path).execute('SELECT count(*) FROM notes').fetchone()[0]\n"
        "    return {'result': 'complete' if n == 2 else 'others'}\n",
    )
    instance = program.instance()
    instance.call("run", {"code": TAMPERING[what]})
    instance.call("add_note", {"text": "second"})

    assert host.verify(verifier, program.template, program.template).verdict == "others"


def test_every_layer_is_tried_and_told(host: Host) -> None:
    layers = host.sandbox()
    assert tuple(layers) == LAYERS
    assert all(layer.active or layer.detail for layer in layers.values())


# Machines that lack a layer. They are made here by forbidding workers' interpreters what the layer needs.

WITHOUT = {
    "namespaces": (("unshare", 272, 97), None),
    "landlock": (("landlock_create_ruleset", 444, 444), None),
    "seccomp": (("prctl", 157, 167), seccomp.PR_SET_SECCOMP),
}
"""The system call (with its numbers) that a layer begins with, and the first argument that makes it that one."""

FORBIDDING = """
import ctypes, os, platform, struct, sys
number, argument = int(sys.argv[1]), int(sys.argv[2])
step = lambda code, operand, yes=0, no=0: struct.pack("=HBBI", code, yes, no, operand)
program = step(0x20, 0) + step(0x15, number, 0, 1 if argument < 0 else 3)
if argument >= 0:
    program += step(0x20, 16) + step(0x15, argument, 0, 1)
program += step(0x06, 0x00050000 | 1) + step(0x06, 0x7FFF0000)
libc = ctypes.CDLL(None)
buffer = ctypes.create_string_buffer(program, len(program))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))) == 0
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""


@pytest.mark.parametrize("layer", WITHOUT)
def test_a_machine_without_a_layer_works_with_the_others_and_says_so(
    layer: str, tmp_path: Path, needs: Callable[[str], None]
) -> None:
    for name in LAYERS:
        needs(name)
    (_, *numbers), argument = WITHOUT[layer]
    number = numbers[list(seccomp.AUDIT_ARCHITECTURES).index(platform.machine())]
    (tmp_path / "forbid.py").write_text(FORBIDDING)
    python = tmp_path / "python"
    argument = -1 if argument is None else argument
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/forbid.py {number} {argument} "$@"\n')
    python.chmod(0o755)
    over_files = (
        "def verify_task(initial_db_path, final_db_path):\n"
        "    return {'result': 'complete' if os.path.getsize(final_db_path) else 'others'}\n"
    )
    with Host(python=str(python), limits=LIMITS) as host:
        layers = host.sandbox()
        assert {name for name in LAYERS if not layers[name].active} == {layer}
        assert layers[layer].detail
        with host.program(notebook()) as program:
            instance = program.instance()
            instance.call("add_note", {"text": "mine"})
            assert instance.call("list_notes").body == ["first", "mine"]
            writing = instance.call("run", {"code": "open('made', 'w')"})
            assert writing.ok == (layer != "namespaces"), "without a folder of limited size nothing can be written"
            large = host.build(with_rows("INSERT INTO notes VALUES (9, hex(zeroblob(4 << 20)), 1)"))
            assert len(large.snapshot) > 8 << 20, "SQLite needs no files of its own"
            verdict = host.verify(Verifier(0, Mode.code, over_files), program.template, instance.snapshot())
        assert verdict.verdict == "complete", verdict.error


# The filter's program is checked on its own, because no machine has both architectures.

ALLOWED, REFUSED_BY_FILTER, UNKNOWN, KILLED = "allowed", "EPERM", "ENOSYS", "killed"
ANSWERS = {0x7FFF0000: ALLOWED, 0x00050001: REFUSED_BY_FILTER, 0x00050026: UNKNOWN, 0x80000000: KILLED}


def answer(machine: str, number: int, first: int = 0, second: int = 0, *, architecture: int | None = None) -> str:
    """What the filter says to a system call, by running its BPF program."""
    known = seccomp.AUDIT_ARCHITECTURES[machine]
    data = struct.pack("=IIQ6Q", number, known if architecture is None else architecture, 0, first, second, 0, 0, 0, 0)
    steps = [struct.unpack("=HBBI", step) for step in seccomp.program(machine)]
    accumulator = place = 0
    while True:
        code, if_true, if_false, operand = steps[place]
        place += 1
        match code:
            case seccomp.LOAD:
                (accumulator,) = struct.unpack_from("=I", data, operand)
            case seccomp.AND:
                accumulator &= operand
            case seccomp.IF_EQUAL:
                place += if_true if accumulator == operand else if_false
            case seccomp.IF_AT_LEAST:
                place += if_true if accumulator >= operand else if_false
            case seccomp.RETURN:
                return ANSWERS[operand]


# read, write, openat, mmap, exit_group, futex, getrandom
HARMLESS = {"x86_64": (0, 1, 257, 9, 231, 202, 318), "aarch64": (63, 64, 56, 222, 94, 98, 278)}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_denies_its_list_and_nothing_else(machine: str) -> None:
    column = list(seccomp.AUDIT_ARCHITECTURES).index(machine)
    denied = {numbers[column] for numbers in seccomp.DENIED.values()} - {None}
    allowed = set(range(seccomp.SHARED_NUMBERS)) - denied - {seccomp.SOCKETPAIR[column]}

    assert {answer(machine, number) for number in denied} == {REFUSED_BY_FILTER}
    assert {answer(machine, number) for number in allowed} == {ALLOWED}
    assert set(HARMLESS[machine]) <= allowed
    for number in range(seccomp.SHARED_NUMBERS, 600):
        expected = ALLOWED if number in seccomp.NEW_CALLS_ALLOWED.values() else UNKNOWN
        assert answer(machine, number) == expected


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_only_connected_unix_streams(machine: str) -> None:
    number = seccomp.SOCKETPAIR[list(seccomp.AUDIT_ARCHITECTURES).index(machine)]
    close_on_exec = 0o2000000
    assert answer(machine, number, socket.AF_UNIX, socket.SOCK_STREAM) == ALLOWED
    assert answer(machine, number, socket.AF_UNIX, socket.SOCK_STREAM | close_on_exec) == ALLOWED
    assert answer(machine, number, socket.AF_UNIX, socket.SOCK_DGRAM) == REFUSED_BY_FILTER
    assert answer(machine, number, socket.AF_INET, socket.SOCK_STREAM) == REFUSED_BY_FILTER


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_denies_having_others_signalled(machine: str) -> None:
    column = list(seccomp.AUDIT_ARCHITECTURES).index(machine)
    for numbers, commands in seccomp.DENIED_COMMANDS.values():
        assert {answer(machine, numbers[column], 3, command) for command in commands} == {REFUSED_BY_FILTER}
        assert {answer(machine, numbers[column], 3, command) for command in (0, 1, 2, 3, 4)} == {ALLOWED}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_kills_what_calls_in_another_way(machine: str) -> None:
    assert answer(machine, 0, architecture=0x40000003) == KILLED  # i386 calls of an x86_64 process
    assert answer(machine, 0x40000000 | 59) == KILLED  # x32
