"""Evaluations by a harness from beginning to end, with a pretended BFCL and a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline.errors import UserError
from pipeline.llm.profiles import Prices, Profile
from pipeline.workspace import Workspace
from tests.llm_server import KEY, Answer, Say, Server, Status
from tests.train.harness.conftest import CHECKOUT, TASKS
from train import evaluate
from train.harness import bfcl, harness_run, launching, venvs
from train.harness.known import harness
from train.harness.offers import estimate_of, offers, plan_for
from train.harness.plan import Plan
from train.protocol import list_text

IDS = [name for names in TASKS.values() for name in names]


class Model(Server):
    """Says "right" to some tasks; others can be refused."""

    def __init__(self, **options: Any) -> None:
        self.right = {"simple_0", "simple_1", "irrelevance_0"}
        self.refused: set[str] = set()
        self.why = "no"
        super().__init__(self.reply, **options)

    def reply(self, body: dict[str, Any]) -> Answer:
        told = [message["content"] for message in body["messages"]]
        if "tools" not in body and list_text() not in told:
            return Say(list_text(), streams=False)
        task = next((text for text in told if text in IDS), "")
        if task in self.refused:
            return Status(400, self.why)
        return Say("right" if task in self.right else "wrong", tokens=(1000, 10), streams=False)


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        yield server


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "LOOK_EVERY_S", 0.05)


def plan_profile(server: Server) -> Profile:
    return Profile(model="some/model-high", base_url=server.url, api_key_env="", concurrency=2)


def plan(server: Server, preset: str = "paper", **options: Any) -> Plan:
    return plan_for("bfcl", preset, plan_profile(server), **{"domains": list(TASKS), **options})


def outcomes(document: dict[str, Any]) -> dict[str, list[bool]]:
    return {item["id"]: list(item["passes"]) for item in document["items"]}


@pytest.mark.parametrize("protocol", ["native", "awm"])
def test_an_evaluation_is_what_the_harness_says_and_how_it_was_made(
    protocol: Any, fake_bfcl: Path, workspace: Workspace, model: Model
) -> None:
    run = harness_run.create(workspace, plan(model, protocol=protocol))
    told: list[int] = []
    document = harness_run.work(workspace, run, tell=lambda standing, total: told.append(standing.done))
    assert outcomes(document) == {name: [name in model.right] for name in IDS}
    assert (document["state"], document["n"], document["total"], document["excluded"]) == ("done", 5, 5, 0)
    assert (document["score"], document["version"], document["why"]) == (0.6, "2025.7.9", "")
    assert document["settings"]["protocol"] == protocol
    assert document["settings"]["window"] == (10 if protocol == "awm" else None)
    assert document["requests"]["requests"] == 5
    assert document["usd"] is None
    assert told == sorted(told)
    assert evaluate.find(workspace, run.id).state == "done"
    asked = [body for body in model.requests if body["messages"][-1]["content"] in IDS]
    assert {body["model"] for body in model.requests} == {"some/model-high"}
    assert all("store" not in body for body in asked)


def test_a_real_key_is_only_in_the_proxy(
    fake_bfcl: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with Model(key=KEY) as server:
        profile = Profile(model="m", base_url=server.url, api_key_env="SOME_KEY")
        run = harness_run.create(workspace, plan_for("bfcl", "paper", profile, domains=["simple"], protocol="native"))
        assert harness_run.work(workspace, run)["state"] == "done"
    for path in (workspace.runs / str(run.id)).rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_tasks_without_an_answer_are_left_out_and_done_by_going_on(
    fake_bfcl: Path, workspace: Workspace, model: Model
) -> None:
    model.refused = {"simple_1", "simple_3"}
    run = harness_run.create(workspace, plan(model, protocol="native"))
    document = harness_run.work(workspace, run)
    assert (document["state"], document["n"], document["excluded"]) == ("stopped", 3, 2)
    assert document["excluded_why"] == {bfcl.LOST: 2}
    assert document["why"].startswith("2 of 5 tries have no result: resume to run them. ")
    assert "HTTP 400" in document["why"]
    assert document["score"] == pytest.approx(2 / 3, abs=1e-4)
    model.refused, before = set(), len(model.requests)
    again = harness_run.work(workspace, evaluate.find(workspace, run.id))
    assert (again["state"], again["n"], again["score"], again["why"]) == ("done", 5, 0.6, "")
    assert len(model.requests) == before + 3  # the two, and whether anybody answers


def test_what_does_not_fit_into_the_models_context_is_left_out_for_good(
    fake_bfcl: Path, workspace: Workspace, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.harness.watching.LOST_IN_A_ROW", 2)
    model.refused, model.why = {"simple_1", "simple_2", "simple_3"}, "maximum context length is 4096 tokens"
    run = harness_run.create(workspace, plan(model, protocol="native"))
    document = harness_run.work(workspace, run)
    assert (document["state"], document["why"], document["n"], document["total"]) == ("done", "", 2, 5)
    assert document["excluded_why"] == {bfcl.TOO_LONG: 3}


def test_a_server_that_dies_stops_the_harness_and_what_was_done_is_judged(
    fake_bfcl: Path, workspace: Workspace, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.harness.watching.LOST_IN_A_ROW", 2)
    model.refused = {"simple_1", "simple_2", "simple_3", "irrelevance_0"}
    run = harness_run.create(workspace, plan(model, protocol="native"))
    document = harness_run.work(workspace, run)
    assert document["state"] == "stopped"
    assert "requests in a row got no answer from the model's server" in document["why"]
    assert outcomes(document)["simple_0"] == [True]
    assert document["n"] == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "there is no connection to http://127.0.0.1:9/v1"),
        ({"model": "other"}, "knows no model 'other'"),
        ({"api_key_env": "NO_SUCH_KEY"}, "refuses the key"),
    ],
)
def test_what_cannot_answer_is_found_out_before_anything_is_started(
    wrong: dict[str, str], told: str, fake_bfcl: Path, workspace: Workspace
) -> None:
    with Model(key=KEY, models=("m",)) as server:
        os.environ["SOME_KEY"] = KEY
        profile = Profile(**{"model": "m", "base_url": server.url, "api_key_env": "SOME_KEY", **wrong})  # ty: ignore
        run = harness_run.create(workspace, plan_for("bfcl", "paper", profile, domains=["simple"]))
        document = harness_run.work(workspace, run)
        del os.environ["SOME_KEY"]
    assert (document["state"], document["score"], document["n"]) == ("not run", None, 0)
    assert told in document["why"]
    assert not (workspace.runs / str(run.id) / "harness.log").exists()


def test_a_server_without_tools_is_found_out_in_the_native_protocol(fake_bfcl: Path, workspace: Workspace) -> None:
    with Model(refuses=("tools",)) as server:
        run = harness_run.create(workspace, plan(server, protocol="native"))
        document = harness_run.work(workspace, run)
        assert document["state"] == "not run"
        assert "tools" in document["why"]
        run = harness_run.create(workspace, plan(server, protocol="awm"))
        assert harness_run.work(workspace, run)["state"] == "done"


def test_a_harness_that_breaks_off_says_why(fake_bfcl: Path, workspace: Workspace, model: Model) -> None:
    (fake_bfcl / "bfcl_eval" / "__main__.py").write_text("def cli(): raise SystemExit('no such category')\n")
    run = harness_run.create(workspace, plan(model))
    document = harness_run.work(workspace, run)
    assert (document["state"], document["why"]) == ("not run", "BFCL broke off: no such category")


def test_a_nan_is_a_state_and_not_a_number(fake_bfcl: Path, workspace: Workspace, model: Model) -> None:
    main = fake_bfcl / "bfcl_eval" / "__main__.py"
    main.write_text(main.read_text().replace("right / len(results)", "float('nan')"))
    run = harness_run.create(workspace, plan(model))
    document = harness_run.work(workspace, run)
    assert (document["state"], document["score"], document["n"]) == ("not run", None, 0)
    assert "NaN is not a result" in document["why"]


def test_numbers_of_another_version_are_not_gone_on_with(fake_bfcl: Path, workspace: Workspace, model: Model) -> None:
    run = harness_run.create(workspace, plan(model).model_copy(update={"version": "2026.3.23"}))
    with pytest.raises(UserError, match=r"was begun with BFCLv3 2026.3.23; this studio runs 2025.7.9"):
        harness_run.work(workspace, run)


def test_an_interrupted_evaluation_leaves_no_process_and_goes_on(
    fake_bfcl: Path, workspace: Workspace, model: Model
) -> None:
    run = harness_run.create(workspace, plan(model, protocol="native"))
    root = workspace.runs / str(run.id) / "harness"
    root.mkdir()
    (root / "hang").touch()
    work = (
        "import sys\nfrom pipeline.workspace import Workspace\nfrom train import evaluate\n"
        "from train.harness import harness_run\n"
        "with Workspace.open(sys.argv[1]) as opened:\n"
        "    harness_run.work(opened, evaluate.find(opened, int(sys.argv[2])), tell=lambda s, n: print(s.done, flush=True))\n"
    )
    command = [sys.executable, "-c", work, str(workspace.path), str(run.id)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout
    assert any(line == "5\n" for line in process.stdout)  # all results are there, and it hangs
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) != 0
    process.stdout.close()
    assert started
    assert all(not child.is_running() or child.status() == psutil.STATUS_ZOMBIE for child in started)
    assert evaluate.find(workspace, run.id).state == "stopped"
    (root / "hang").unlink()
    before = len(model.requests)
    assert harness_run.work(workspace, evaluate.find(workspace, run.id))["state"] == "done"
    assert len(model.requests) == before + 1  # only whether anybody answers


def test_two_processes_do_not_work_on_one_evaluation(fake_bfcl: Path, workspace: Workspace, model: Model) -> None:
    run = harness_run.create(workspace, plan(model))
    begun, ends = threading.Event(), threading.Event()

    def hold(*_: Any) -> None:
        begun.set()
        ends.wait(30)

    first = threading.Thread(target=lambda: harness_run.work(workspace, run, tell=hold))
    first.start()
    try:
        assert begun.wait(30)
        with pytest.raises(UserError, match=f"is working on run {run.id} already"):
            harness_run.work(workspace, run)
    finally:
        ends.set()
        first.join()


def test_an_estimate_counts_requests_tokens_and_money(fake_bfcl: Path, model: Model) -> None:
    asked = plan(model, protocol="native")
    free = estimate_of(asked)
    assert (free.tries, free.model.requests, free.usd) == (5, 5, None)
    priced = asked.model.model_copy(update={"prices": Prices(input=1000, output=1000)})
    estimate = estimate_of(asked.model_copy(update={"model": priced}))
    assert estimate.usd == pytest.approx(1000 * (estimate.model.tokens_in + estimate.model.tokens_out) / 1e6, abs=0.01)
    assert estimate_of(asked.model_copy(update={"protocol": "awm"})).model.requests == 10


def test_presets_that_cannot_be_run_say_why(fake_bfcl: Path, model: Model) -> None:
    profile = plan(model).model
    found = {each["preset"]: each for each in offers("bfcl", profile)}
    assert found["paper"]["estimate"]["tries"] == 5
    assert [each["estimate"] for each in offers("tau2", profile, user=profile)] == [None] * 3
    assert "τ²-bench is not installed" in offers("tau2", profile)[0]["why"]


def test_task_files_that_changed_since_are_not_gone_on_with(
    fake_mcp_universe: Path, workspace: Workspace, model: Model, tmp_path: Path
) -> None:
    checkout = shutil.copytree(CHECKOUT, tmp_path / "checkout")
    asked = plan_for("mcp-universe", "smoke", plan_profile(model), checkout=checkout)
    assert {name: len(tasks) for name, tasks in asked.wanted.items()} == {"echo": 2}
    run = harness_run.create(workspace, asked)
    (checkout / "echo" / "say_harbour.json").write_text("{}")
    document = harness_run.work(workspace, run)
    assert document["state"] == "not run"
    assert "are not those that this evaluation was begun with" in document["why"]


def test_bfcls_calls_are_not_evaluated_as_python(fake_bfcl: Path) -> None:
    python = venvs.require(harness("bfcl")).python
    calls = [
        "agent_files_instance.mkdir(name='x')",
        "agent_files_instance.mkdir('y')",
        "agent_files_instance._secret()",
        "open(file='z', mode='w')",
        "agent_files_instance.mkdir(name=open('z'))",
        "__import__('os').getcwd()",
    ]
    script = (
        "import json, sys\nsys.path.insert(0, sys.argv[1])\nimport launch_bfcl\n"
        "launch_bfcl._call_only_what_is_offered()\n"
        "from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils as utils\n"
        "for call in json.loads(sys.argv[2]):\n"
        "    try:\n        print(utils.execute(call))\n    except Exception as error:\n        print(type(error).__name__)\n"
    )
    said = subprocess.run(
        [str(python), "-c", script, str(launching.SCRIPTS), json.dumps(calls)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split("\n")[:6] == ["made x", "made y", "NameError", "NameError", "ValueError", "NameError"]
