"""The held-out suite: what is measured, what is left out, and what a failing server does to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curation.subset import TEST, Pick, Recipe, Subset, current_contents
from pipeline.blueprints.make import environment
from pipeline.errors import UserError
from pipeline.workspace import Workspace
from tests.llm_server import KEY, PAGE, Answer, Say, Server, Status
from tests.train.held_out import NAMES, SUBSET, profile, workspace_with_held_out
from tests.train.pantry import fill, pantry
from train import evaluate, evaluate_heldout
from train.evaluate_compare import compare, mcnemar
from train.evaluate_export import comma_separated, export, headline, markdown, page
from train.evaluate_heldout import task_labels
from train.evaluate_report import FILE, Item, read_report, report
from train.protocol import call_text, list_text
from train.records import Records

pytestmark = pytest.mark.usefixtures("one_host")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(workspace_with_held_out(tmp_path / "workspace")) as opened:
        yield opened


def good(body: dict[str, Any]) -> Answer:
    """An agent that completes both tasks."""
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    task = body["messages"][1]["content"]
    if not said:
        return Say(list_text(), tokens=(10, 5))
    if task.startswith("How many"):
        return Say(call_text("list_items", {}), tokens=(10, 5)) if len(said) == 1 else Say("2")
    return Say(call_text("set_amount", {"item_id": 1, "amount": 5})) if len(said) == 1 else Say("Done.")


def half(body: dict[str, Any]) -> Answer:
    """An agent that answers every question with 3."""
    answer = good(body)
    return Say("3") if isinstance(answer, Say) and answer.text == "2" else answer


def evaluated(workspace: Workspace, server: Server, *, tries: int = 2, **fields: Any) -> dict[str, Any]:
    run = begun(workspace, server, tries=tries, **fields)
    return evaluate_heldout.work(workspace, run)


def begun(workspace: Workspace, server: Server, *, tries: int = 2, **fields: Any) -> Any:
    tasks = evaluate_heldout.held_out_tasks(workspace, SUBSET)
    model = profile(server, **fields)
    plan = evaluate_heldout.plan_for(tasks, subset=SUBSET, model=model, tries=tries, concurrency=2)
    return evaluate_heldout.create(workspace, plan)


def test_only_what_the_subset_holds_out_is_tried(workspace: Workspace) -> None:
    with Server(good) as server:
        found = evaluated(workspace, server)
    assert {item["id"] for item in found["items"]} == {f"{name}/{task}" for name in NAMES for task in (0, 1)}
    assert (found["state"], found["n"], found["total"], found["excluded"]) == ("done", 8, 8, 0)
    assert (found["score"], found["tasks"]) == (1.0, 4)
    assert found["interval"][0] < 0.6


def test_the_agent_sees_ten_exchanges_and_is_sampled_as_in_the_paper(workspace: Workspace) -> None:
    with Server(good) as server:
        found = evaluated(workspace, server)
        sent = server.requests[0]
    assert (sent["temperature"], sent["top_p"], sent["top_k"]) == (0.6, 0.95, 20)
    assert found["settings"]["window"] == 10


def test_success_is_told_by_concept_and_difficulty(workspace: Workspace) -> None:
    with Server(half) as server:
        found = evaluated(workspace, server)
    assert found["score"] == 0.5
    assert {row["value"]: row["n"] for row in found["by"]["concept"]} == {"concept 0": 4, "concept 1": 4}
    assert {row["value"]: row["score"] for row in found["by"]["difficulty"]} == {"2 calls": 1.0, "1 call": 0.0}
    assert [(row["k"], row["at"], row["hat"]) for row in found["pass"]] == [(1, 0.5, 0.5), (2, 0.5, 0.5)]


def test_the_kind_of_a_task_is_what_its_solution_does() -> None:
    made = environment("library", 0, 0)
    labels = [task_labels(made, number) for number in range(len(made.tasks))]
    assert {label["domain"] for label in labels} == {"library"}
    assert {label["kind"] for label in labels} >= {"change", "answer"}
    assert "kind" not in task_labels(pantry(), 0)  # nothing says which of its tools write


def test_tokens_turns_and_slips_are_counted(workspace: Workspace) -> None:
    def sloppy(body: dict[str, Any]) -> Answer:
        said = sum(message["role"] == "assistant" for message in body["messages"])
        return Say(call_text("no_such_tool", {}), tokens=(7, 3)) if said == 1 else good(body)

    with Server(sloppy) as server:
        found = evaluated(workspace, server)
    assert found["format_errors"] == {"rollouts": 8, "slips": {"unknown_tool": 8}}
    assert found["score"] == 0.5  # who answers what was asked passes, slip or not
    assert found["means"]["turns"] == 3
    assert found["means"]["tokens_out"] > 3


def test_what_the_environment_failed_is_left_out_and_counted(workspace: Workspace) -> None:
    def unlucky(body: dict[str, Any]) -> Answer:
        said = sum(message["role"] == "assistant" for message in body["messages"])
        about_rice = "rice" in body["messages"][1]["content"]
        return Say(call_text("break_down", {})) if said == 1 and about_rice else good(body)

    with Server(unlucky) as server:
        found = evaluated(workspace, server)
    assert (found["n"], found["excluded"], found["score"]) == (4, 4, 1.0)
    assert found["excluded_why"] == {"environment_error": 4}
    assert found["tasks"] == 2


def test_what_no_verifier_can_judge_is_left_out_and_why(workspace: Workspace) -> None:
    silent = replace(pantry("silent"), verifiers=())
    fill(workspace.path, silent)
    picks = tuple(Pick(name, task, 0, TEST, "") for name, task in (("silent", 0), (NAMES[0], 2), (NAMES[0], 1)))
    contents = current_contents(workspace.catalog, {"silent", NAMES[0]})
    workspace.catalog.set_subset("odd", Subset(Recipe("odd"), picks, contents, {}).to_json(), {})
    tasks = evaluate_heldout.held_out_tasks(workspace, "odd")
    with Server([Say(list_text()), Say("2")]) as server:
        plan = evaluate_heldout.plan_for(tasks, subset="odd", model=profile(server), concurrency=1)
        found = evaluate_heldout.work(workspace, evaluate_heldout.create(workspace, plan))
    assert (found["n"], found["excluded_why"]) == (1, {"no verifier": 1, "verifier failed": 1})


@pytest.mark.parametrize(
    ("answer", "fields", "said"),
    [
        (Status(404, "The model `agent` does not exist"), {}, "knows no model 'agent'"),
        (Status(401, f"Incorrect API key provided: {KEY}."), {}, "refuses the key"),
        (Status(500, "out of memory"), {}, "8 rollouts in a row got no answer"),
        (PAGE, {}, "web page"),
        (None, {"base_url": "http://127.0.0.1:9/v1"}, "no connection"),
    ],
)
def test_a_server_that_cannot_answer_is_not_run_and_no_score(
    workspace: Workspace, answer: Any, fields: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with Server([answer]) as server:
        found = evaluated(workspace, server, api_key_env="SOME_KEY", **fields)
    assert (found["state"], found["score"], found["interval"], found["n"]) == ("not run", None, None, 0)
    assert said in found["why"]
    (run,) = evaluate.evaluations(workspace)
    assert (run.state, run.result["score"]) == ("stopped", None)
    kept = "".join(path.read_text("utf-8", "replace") for path in (workspace.runs / "1").iterdir() if path.is_file())
    assert KEY not in kept


def test_a_server_that_dies_in_between_leaves_what_was_done_and_can_be_gone_on_with(workspace: Workspace) -> None:
    lock, asked, alive = threading.Lock(), [], [False]

    def dying(body: dict[str, Any]) -> Answer:
        with lock:
            asked.append(1)
            return good(body) if alive[0] or len(asked) <= 9 else Status(404, "gone")

    with Server(dying) as server:
        run = begun(workspace, server)
        stopped = evaluate_heldout.work(workspace, run)
        assert (stopped["state"], stopped["total"]) == ("stopped", 8)
        assert 0 < stopped["n"] < 8
        assert stopped["score"] == 1.0  # of what was judged; never a zero for what was not
        alive[0] = True
        found = evaluate_heldout.work(workspace, evaluate.find(workspace, None, suite="heldout"))
    assert (found["state"], found["n"], found["score"]) == ("done", 8, 1.0)


def test_single_rollouts_without_an_answer_are_tried_again(workspace: Workspace) -> None:
    broken = [True]

    def hiccup(body: dict[str, Any]) -> Answer:
        return Status(400, "no") if broken[0] and "rice" in body["messages"][1]["content"] else good(body)

    with Server(hiccup) as server:
        run = begun(workspace, server)
        first = evaluate_heldout.work(workspace, run)
        assert (first["state"], first["n"], first["excluded_why"]) == ("stopped", 4, {"model_error": 4})
        assert "4 rollouts got no answer" in first["why"]
        broken[0] = False
        again = evaluate_heldout.work(workspace, run)
    assert (again["state"], again["n"], again["excluded"]) == ("done", 8, 0)


def test_a_full_disk_stops_it_and_what_was_written_stays(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    add, room = Records.add, [3]

    def until_full(self: Records, trajectory: Any) -> None:
        if not room[0]:
            raise UserError("trajectories.jsonl cannot be written (No space left on device): free some space.")
        room[0] -= 1
        add(self, trajectory)

    monkeypatch.setattr(Records, "add", until_full)
    with Server(good) as server:
        run = begun(workspace, server)
        stopped = evaluate_heldout.work(workspace, run)
        assert (stopped["state"], stopped["n"], "No space left" in stopped["why"]) == ("stopped", 3, True)
        room[0] = 100
        assert evaluate_heldout.work(workspace, run)["n"] == 8


def test_how_it_stands_can_be_followed(workspace: Workspace) -> None:
    with Server(half) as server:
        evaluated(workspace, server)
    standing = evaluate.read_progress(workspace.runs / "1")
    assert standing is not None
    assert {name: standing[name] for name in ("done", "total", "judged", "passed", "excluded")} == {
        "done": 8, "total": 8, "judged": 8, "passed": 4, "excluded": 0,
    }  # fmt: skip
    assert [event.data["done"] for event in workspace.catalog.events(run=1)] == list(range(1, 9))


def test_a_subset_that_holds_nothing_out_is_a_sentence(workspace: Workspace) -> None:
    plan = evaluate_heldout.plan_for([], subset=SUBSET, model=None, actor="noop")
    with pytest.raises(UserError, match="holds nothing out"):
        evaluate_heldout.create(workspace, plan)


def test_several_tries_are_told_for_powers_of_two_and_for_all_of_them() -> None:
    document = report("s", "1", [Item("a", (True,) * 6), Item("b", (False,) * 3)], total=9, state="done")
    assert [(row["k"], row["tasks"]) for row in document["pass"]] == [(1, 2), (2, 2), (4, 1), (6, 1)]
    assert report("s", "1", [Item("a", ())], total=1, state="done")["pass"] == []


def test_a_report_with_nan_is_damaged_and_not_a_number(tmp_path: Path) -> None:
    document = report("heldout", "1", [Item("a/0", (True,))], total=1, state="done")
    (tmp_path / FILE).write_text(json.dumps(document | {"score": float("nan")}))
    with pytest.raises(UserError, match="NaN is not a result"):
        read_report(tmp_path)
    (tmp_path / FILE).write_text(json.dumps(document | {"items": [{**document["items"][0], "passes": [0.5]}]}))
    with pytest.raises(UserError, match="neither passed nor failed"):
        read_report(tmp_path)


def suite(passes: list[tuple[bool, ...]], **about: Any) -> dict[str, Any]:
    items = [Item(f"e/{number}", tries) for number, tries in enumerate(passes)]
    return report("heldout", "1", items, total=len(items), state="done", **about)


def test_a_change_is_called_better_only_where_a_test_decides_it() -> None:
    before, after = suite([(False,)] * 12), suite([(True,)] * 9 + [(False,)] * 3)
    found = compare(before, after)
    assert (found["verdict"], found["test"], found["difference"]) == ("better", "McNemar, exact", 0.75)
    assert found["p"] == pytest.approx(2 * 0.5**9, abs=1e-4)
    assert [row["id"] for row in found["gained"]] == [f"e/{number}" for number in range(9)]
    assert compare(after, before)["verdict"] == "worse"
    assert compare(before, suite([(True,)] * 5 + [(False,)] * 7))["verdict"] == "not decided"
    assert compare(before, before)["verdict"] == "not decided"
    assert compare(before, before)["interval"] is None


def test_with_several_tries_tasks_are_resampled_and_few_differences_decide_nothing() -> None:
    before, after = suite([(False, False, True)] * 10), suite([(True, True, True)] * 8 + [(False, True, False)] * 2)
    found = compare(before, after)
    assert (found["verdict"], found["test"], found["p"]) == ("better", "paired bootstrap over tasks", None)
    assert found["interval"][0] > 0
    assert compare(suite([(False, False)] * 3), suite([(True, True)] * 3))["verdict"] == "not decided"


def test_the_exact_p_value_is_the_binomials() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 0) == pytest.approx(0.0625)
    assert mcnemar(8, 2) == pytest.approx(0.109375)
    assert mcnemar(2, 8) == mcnemar(8, 2)


def test_settings_that_differ_are_named_and_other_tasks_are_refused() -> None:
    found = compare(suite([(True,)], settings={"window": 3}), suite([(True,)], settings={"window": 10}))
    assert found["settings"] == {"window": [3, 10]}
    with pytest.raises(UserError, match="the version is 1 in one and 2 in the other"):
        compare(suite([(True,)]), suite([(True,)]) | {"version": "2"})
    with pytest.raises(UserError, match="no task that was judged in both"):
        compare(suite([(True,), ()]), suite([(), (True,)]))


def test_reports_are_exported_with_what_they_rest_on(tmp_path: Path) -> None:
    items = [Item("a/0", (True, False), {}, {"concept": "<b>|x"}), Item("a/1", (), {"model_error": 2})]
    document = report("heldout", "1", items, total=4, state="stopped", why="It was interrupted.", model="m")
    assert headline(document) == (
        "heldout, m: 0.500 (0.055 to 0.945) on 1 task, 2 of 4 tries, 2 left out. Stopped: It was interrupted."
    )
    assert "| a/1 | 0/0 | model error: 2 |" in markdown(document)
    assert "<b>\\|x" in markdown(document)
    assert comma_separated(document).splitlines()[1] == "heldout,1,m,a/0,<b>|x,2,1,"
    assert "&lt;b&gt;|x" in page(document)
    assert "<b>" not in page(document).replace("<body>", "")
    with pytest.raises(UserError, match=r"must end in .md, .csv, .html"):
        export(document, tmp_path / "report.txt")


def test_a_report_without_results_shows_no_number() -> None:
    document = report("heldout", "1", [Item("a/0", ())], total=1, state="done", why="There is no connection.")
    assert headline(document) == "heldout, the model: not run. There is no connection."
    assert "0.0" not in markdown(document)
    assert "0.0" not in page(document)
