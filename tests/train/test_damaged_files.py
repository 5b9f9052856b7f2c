"""What a full disk, a killed process or another version has left of a run's files is left out, or said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import UserError
from train.config import load
from train.curves import curves_of
from train.evaluate import PROGRESS, keep_progress, read_progress
from train.evaluate_report import FILE, Item, keep_report, read_report, report
from train.record_index import RecordIndex
from train.run_log import METRICS, STATUS, Follower, read_metrics, read_status
from train.training_run import CONFIG, config_of

STEP = b'{"t": 1.0, "kind": "step", "step": 1, "reward": 0.5}\n'
DAMAGED = [
    b'{"t": 1.0, "kind": "st{"t": 2.0, "kind": "end"}\n',
    b"[1]\n",
    b"\xff\xfe\n",
    b'{"t": 1.0}\n',
    b'{"t": 1.0, "kind": ["step"]}\n',
    b'{"kind": "step", "step": 1}\n',
    b'{"t": 1e300, "kind": "end"}\n',
    b'{"t": null, "kind": "begin"}\n',
    b'{"t": 1.0, "kind": "step"}\n',
    b'{"t": 1.0, "kind": "step", "step": NaN}\n',
    b'{"t": 1.0, "kind": "warmup", "loss": 1}\n',
    b'{"t": 1.0, "kind": "try", "step": 0}\n',
    b"[" * 100_000 + b"\n",
]


@pytest.mark.parametrize("line", DAMAGED)
def test_what_is_no_whole_event_is_left_out(tmp_path: Path, line: bytes) -> None:
    (tmp_path / METRICS).write_bytes(STEP + line + STEP)
    assert [event["step"] for event in read_metrics(tmp_path)] == [1, 1]
    events, _ = Follower(tmp_path).news()
    assert [event["step"] for event in events] == [1, 1]


def test_figures_that_are_no_numbers_are_in_no_curve() -> None:
    events = [
        {"t": 1.0, "kind": "step", "step": n, "reward": value} for n, value in enumerate((0.5, float("nan"), "x"))
    ]
    assert curves_of(events).points == {("reward", "mean"): [(0.0, 0.5)]}


@pytest.mark.parametrize("status", [b"", b'{"pha', b"[]", b"null", b"\xff"])
def test_a_damaged_status_says_nothing(tmp_path: Path, status: bytes) -> None:
    (tmp_path / STATUS).write_bytes(status)
    assert read_status(tmp_path) == {}


@pytest.mark.parametrize("line", [b"garbage\n", b"{}\n", b"[]\n", b'{"environment": "a", "task": 0, "reward": 5}\n'])
def test_what_is_no_record_is_not_listed(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "trajectories.jsonl").write_bytes(line)
    index = RecordIndex(tmp_path)
    assert index.catch_up()
    assert (index.steps, index.of_step(None)) == ([], [])


@pytest.mark.parametrize("change", [{"new_field": 1}, {"grpo": {}}, {"about": 5}])
def test_a_configuration_of_another_version_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    document = {**load("cpu-tiny").model_dump(mode="json"), **change}
    (tmp_path / CONFIG).write_text(json.dumps(document))
    with pytest.raises(UserError, match=r"config\.json is damaged, or of another version"):
        config_of(tmp_path)


@pytest.mark.parametrize("change", [{"t": None}, {"done": "x"}, {"why": 5}])
def test_damaged_progress_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    keep_progress(tmp_path, done=1, total=2, judged=1, passed=1, excluded=0)
    whole = read_progress(tmp_path)
    assert whole is not None
    (tmp_path / PROGRESS).write_text(json.dumps({**whole, **change}))
    assert read_progress(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        {"n": None},
        {"state": 5},
        {"interval": "wide"},
        {"pass": [{"k": 1}]},
        {"by": {"concept": [{"value": "a"}]}},
        {"by": {"concept": [5]}},
        {"items": 5},
    ],
)
def test_a_report_in_which_something_is_missing_is_damaged(tmp_path: Path, change: dict[str, Any]) -> None:
    whole = report("heldout", "1", [Item("a/0", (True,), labels={"concept": "a"})], total=1, state="done")
    keep_report(tmp_path, whole)
    assert read_report(tmp_path) == json.loads(json.dumps(whole))
    (tmp_path / FILE).write_text(json.dumps({**whole, **change}))
    with pytest.raises(UserError, match="is damaged"):
        read_report(tmp_path)


@pytest.mark.parametrize(
    "field",
    ["num_generations=x", "per_device_train_batch_size=0", "gradient_accumulation_steps=0.5", "num_iterations=-1"],
)
def test_counts_that_are_none_are_refused_with_their_field(field: str) -> None:
    with pytest.raises(UserError, match=f"{field.partition('=')[0]} is .* not a whole number"):
        load("cpu-tiny", [f"grpo.options.{field}"])


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(UserError, match=r"grpo\.steps"):
        load("cpu-tiny", [f"grpo.steps={'9' * 5000}"])
