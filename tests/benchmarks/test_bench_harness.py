"""The real harnesses, installed where they are not, on their smoke presets against a scripted server.

make bench-harness runs this: it downloads up to 2.3 GB, so make bench leaves it out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.llm_server import Answer, Server, Status
from tests.train.harness.scripted_agent import PASSES, SCRIPT, answer
from train.harness.known import HARNESSES
from train.harness.venvs import installed

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.skipif("AWM_BENCH_HARNESS" not in os.environ, reason="downloads up to 2.3 GB: make bench-harness"),
]

CHECKOUT = Path(__file__).parents[1] / "train" / "harness" / "checkout"
SUITES = list(PASSES)
STUDIO = [sys.executable, "-m", "studio.cli"]


@pytest.fixture(scope="module", autouse=True)
def harnesses() -> None:
    """All three, installed."""
    for harness in HARNESSES:
        if installed(harness) is None:
            began = time.perf_counter()
            subprocess.run([*STUDIO, "eval", "harnesses", "--install", harness.name], check=True)
            print(f"\n{harness.requirement} installed in {time.perf_counter() - began:.0f} s")
        found = installed(harness)
        assert found is not None
        print(f"\n{harness.requirement}: {found.facts['megabytes']} MB")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    subprocess.run(
        [*STUDIO, "synth", "--offline", "--count", "1", "--workspace", str(folder)], check=True, capture_output=True
    )
    return folder


class Endpoint(Server):
    """The scripted agent behind a server whose script can be changed while it runs."""

    def __init__(self) -> None:
        self.script: Callable[[Mapping[str, Any]], Answer] = answer
        super().__init__(self.reply)

    def reply(self, body: Mapping[str, Any]) -> Answer:
        return self.script(body)


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint() as running:
        yield running


def command(suite: str, protocol: str, server: Server, workspace: Path) -> list[str]:
    model = ["--model", "scripted/agent-high", "--base-url", server.url]
    user = ["--user-model", "scripted/user", "--user-base-url", server.url] if suite == "tau2" else []
    tasks = ["--tasks", str(CHECKOUT)] if suite == "mcp-universe" else []
    rest = ["--protocol", protocol, "--calls", "all", "--yes", "--json", "--workspace", str(workspace)]
    return [*STUDIO, "eval", suite, "--preset", "smoke", *model, *user, *tasks, *rest]


def studio(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, with what would lead harnesses astray if it reached them."""
    astray = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-a-real-key-of-someone"}
    return subprocess.run(arguments, check=False, capture_output=True, text=True, env={**os.environ, **astray})


def report(done: subprocess.CompletedProcess[str] | None, workspace: Path) -> dict[str, Any]:
    """The newest evaluation's report, with its tasks; the run's last words are shown where it failed."""
    if done is not None and done.returncode not in (0, 2):
        raise AssertionError(done.stderr[-2000:])
    newest = max((path for path in (workspace / "runs").iterdir() if path.name.isdigit()), key=lambda p: int(p.name))
    return json.loads((newest / "report.json").read_bytes())


def passes(document: Mapping[str, Any]) -> dict[str, bool]:
    return {item["id"]: all(item["passes"]) for item in document["items"] if item["passes"]}


@pytest.mark.parametrize("suite", SUITES)
def test_a_model_comes_to_the_same_natively_and_through_the_proxy(
    suite: str, server: Endpoint, workspace: Path
) -> None:
    for protocol in ("native", "awm"):
        began = time.perf_counter()
        done = studio(command(suite, protocol, server, workspace))
        seconds, document = time.perf_counter() - began, report(done, workspace)
        estimate = next(line for line in done.stderr.splitlines() if "tries;" in line)
        print(
            f"\n{suite} {protocol}: {document['n']} of {document['total']} in {seconds:.1f} s, {document['requests']}"
        )
        print(f"told before: {estimate}")
        assert (done.returncode, document["state"], document["excluded"]) == (0, "done", 0)
        assert passes(document) == PASSES[suite]


@pytest.mark.parametrize(
    ("suite", "words", "task", "status"),
    [
        ("bfcl", "Calculate the factorial of 5", "simple_1", 400),  # after a 503 it sleeps for 65 seconds, thrice
        ("tau2", "raj_sanchez_7340", "airline/1", 400),
        ("mcp-universe", "Echo the words slow tide", "echo/say_two_words", 503),
    ],
)
def test_a_task_without_an_answer_is_left_out_and_done_by_resuming(
    suite: str, words: str, task: str, status: int, server: Endpoint, workspace: Path
) -> None:
    assert words in SCRIPT

    def refusing(body: Mapping[str, Any]) -> Answer:
        is_users = suite == "tau2" and not body.get("tools") and "list_tools" not in json.dumps(body)
        return Status(status, "no") if words in json.dumps(body) and not is_users else answer(body)

    server.script = refusing
    first = studio(command(suite, "native", server, workspace))
    document = report(first, workspace)
    print(f"\n{suite}: {document['state']}, {document['n']} of {document['total']}, {document['why']}")
    assert (first.returncode, document["state"]) == (2, "stopped")
    assert passes(document) == {name: passed for name, passed in PASSES[suite].items() if name != task}
    server.script = answer
    done = studio([*STUDIO, "eval", suite, "--resume", "--json", "--workspace", str(workspace)])
    assert (done.returncode, passes(report(done, workspace))) == (0, PASSES[suite])


@pytest.mark.parametrize("suite", SUITES)
def test_a_dead_endpoint_has_no_score(suite: str, server: Endpoint, workspace: Path) -> None:
    begun = threading.Event()

    def dying(body: Mapping[str, Any]) -> Answer:
        if "Reply with one word" in json.dumps(body) and not begun.is_set():
            return answer(body)
        begun.set()
        return Status(503, "down")

    server.script = dying
    began = time.perf_counter()
    done = studio(command(suite, "native", server, workspace))
    document = report(done, workspace)
    print(f"\n{suite}: {document['state']} after {time.perf_counter() - began:.1f} s: {document['why']}")
    assert (done.returncode, document["state"], document["score"], document["n"]) == (2, "not run", None, 0)


@pytest.mark.parametrize("suite", SUITES)
def test_an_interrupted_run_leaves_no_process_and_goes_on(suite: str, server: Endpoint, workspace: Path) -> None:
    held, goes_on = threading.Event(), threading.Event()

    def holding(body: Mapping[str, Any]) -> Answer:
        if "Reply with one word" not in json.dumps(body):
            held.set()
            goes_on.wait(60)
        return answer(body)

    server.script = holding
    process = subprocess.Popen(
        command(suite, "native", server, workspace), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert held.wait(120)
    process.send_signal(signal.SIGTERM)
    began = time.perf_counter()
    code = process.wait(60)
    print(f"\n{suite}: ended {time.perf_counter() - began:.1f} s after SIGTERM")
    goes_on.set()
    assert code == 130
    assert report(None, workspace)["state"] == "not run"
    server.script = answer
    done = studio([*STUDIO, "eval", suite, "--resume", "--json", "--workspace", str(workspace)])
    assert (done.returncode, passes(report(done, workspace))) == (0, PASSES[suite])
