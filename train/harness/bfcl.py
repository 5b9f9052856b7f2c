"""BFCLv3: which tasks there are, how its command line is started, and what its files say."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.llm.faults import says_overflow
from pipeline.snapshots import replace_file
from train.evaluate_report import Item
from train.harness import launching
from train.harness.plan import LOG, MODEL, Job, Standing
from train.harness.presets import Preset
from train.harness.result_files import Damaged, read_lines
from train.json_lines import drop_cut_line, json_line
from train.proxy import DUMMY_KEY

NAME = "awm-studio"
"""The model's name in BFCL's registry and its folders."""

CATEGORIES = (
    "simple",
    "multiple",
    "parallel",
    "parallel_multiple",
    "java",
    "javascript",
    "irrelevance",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_relevance",
    "live_irrelevance",
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
"""All that this version evaluates (its `TEST_COLLECTION_MAPPING["all"]`)."""

POISON = "Error during inference"
"""How the result of a task begins that got no answer: it counts as failed if it is left in, and is not run again."""

LOST_TASKS = "lost.jsonl"
"""The file in BFCL's root with the results of such tasks, taken out."""

LOST, TOO_LONG = "the model's server gave no answer", "it does not fit into the model's context"
"""Why such a task is excluded."""


def ids(packages: Path) -> dict[str, list[str]]:
    """The ids of all tasks, by category, in their order. Raises UserError where the installation lacks them."""
    found = {}
    for category in CATEGORIES:
        path = packages / "bfcl_eval" / "data" / f"BFCL_v3_{category}.json"
        try:
            lines = path.read_text("utf-8").splitlines()
        except OSError as error:
            raise UserError(f"{path} cannot be read ({error.strerror}): install BFCLv3 again.") from None
        found[category] = [json.loads(line)["id"] for line in lines if line.strip()]
    return found


def chosen(packages: Path, preset: Preset, categories: Collection[str] = ()) -> dict[str, list[str]]:
    """The ids that a preset means, by category; of `categories` only, where some are named.

    Raises UserError for a category that there is not, or none of which the preset has.
    """
    if preset.ids and not categories:
        return {category: list(named) for category, named in preset.ids.items()}
    there = ids(packages)
    wanted = list(categories) or list(preset.domains) or list(CATEGORIES)
    if unknown := [category for category in wanted if category not in there]:
        raise UserError(f"BFCLv3 has no category {unknown[0]!r}: there are {', '.join(there)}.")
    return {category: there[category][: preset.first] for category in wanted}


def work(job: Job) -> None:
    """Generate what is missing, then judge all there is, also where generating broke off for want of answers.

    Raises UserError where it did, or BFCL failed.
    """
    settings, broke_off = _prepare(job), None
    root = {"BFCL_PROJECT_ROOT": str(job.root)}
    try:
        if job.run("launch_bfcl.py", [str(settings), "generate"], root):
            broke_off = UserError(f"BFCL broke off: {launching.last_words(job.folder / LOG)}")
    except UserError as error:
        broke_off = error
    lost = _take_out_poisoned(job.root, job.plan.wanted)
    replace_file(job.root / LOST_TASKS, b"".join(map(json_line, lost)))
    _judge(job, settings, root)
    if broke_off is not None:
        raise broke_off


def _judge(job: Job, settings: Path, root: Mapping[str, str]) -> None:
    """Let BFCL judge what there is. It may fail after the last score, over a table that is not used: scores count."""
    replace(job, look=lambda: None).run("launch_bfcl.py", [str(settings), "evaluate"], root)


def _prepare(job: Job) -> Path:
    """Write what the launcher reads; returns the settings' path. Clears poisoned results, and scores, which are old."""
    wanted = job.plan.wanted
    (job.root / "result" / NAME).mkdir(parents=True, exist_ok=True)
    replace_file(job.root / "test_case_ids_to_generate.json", json_line(wanted))
    settings = {
        "name": NAME,
        "model": MODEL,
        "base_url": job.base_url,
        "key": DUMMY_KEY,
        "timeout_s": job.plan.model.timeout_s,
        "threads": job.plan.at_once,
        "categories": list(wanted),
    }
    replace_file(job.root / "settings.json", json_line(settings))
    _take_out_poisoned(job.root, wanted)
    (job.root / LOST_TASKS).unlink(missing_ok=True)
    shutil.rmtree(job.root / "score", ignore_errors=True)
    return job.root / "settings.json"


def progress(root: Path, wanted: Mapping[str, list[str]]) -> Standing:
    """How many tasks have a result or got no answer. None is judged before all are done."""
    rows = [row for category in wanted for row in read_lines(_results(root, category))]
    lost = sum(map(_is_poisoned, rows))
    return Standing(done=len(rows), excluded=lost)


def items(root: Path, wanted: Mapping[str, list[str]]) -> list[Item]:
    """What came of each task that was reached. A task without an answer is excluded; one not judged yet is left out.

    Raises Damaged where a file holds a NaN, or a score file does not fit its results.
    """
    lost = list(read_lines(root / LOST_TASKS))
    return [item for category in wanted for item in _of_category(root, category, lost)]


def overall(root: Path, wanted: Iterable[str]) -> float | None:
    """BFCL's own overall score, the mean of non-live, live and multi-turn; only for all tasks of all categories.

    None for fewer categories: BFCL's table counts those that were not run as 0. Raises Damaged where there is no table.
    """
    if set(wanted) != set(CATEGORIES):
        return None
    path = root / "score" / "data_overall.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            share = float(next(csv.DictReader(file))["Overall Acc"].removesuffix("%")) / 100
    except (OSError, StopIteration, KeyError, ValueError) as error:
        raise Damaged(f"{path} has no overall score ({error}): resume to judge again.") from None
    if not math.isfinite(share):
        raise Damaged(f"{path}: the overall score is {share}, which is not a result.")
    return round(share, 4)


def _of_category(root: Path, category: str, lost_before: list[dict[str, Any]]) -> list[Item]:
    labels = {"category": category}
    rows = list(read_lines(_results(root, category)))
    lost = [row for row in [*rows, *lost_before] if _is_poisoned(row) and _category(row) == category]
    excluded = [Item(row["id"], (), {_why_lost(row): 1}, labels) for row in lost]
    ran = [row["id"] for row in rows if not _is_poisoned(row)]
    path = root / "score" / NAME / f"BFCL_v3_{category}_score.json"
    scores = list(read_lines(path, finished=True))
    if not scores:
        return excluded
    summary, failed = scores[0], {row["id"] for row in scores[1:]}
    if summary.get("total_count") != len(ran) or summary.get("correct_count") != len(ran) - len(failed):
        raise Damaged(
            f"{path} judges {summary.get('total_count')} tasks, {summary.get('correct_count')} of them right, and "
            f"there are {len(ran)} results of which it lists {len(failed)} as failed: resume to judge them again."
        )
    return [*(Item(name, (name not in failed,), {}, labels) for name in ran), *excluded]


def _take_out_poisoned(root: Path, wanted: Iterable[str]) -> list[dict[str, Any]]:
    """Delete the results of tasks that got no answer, so that they are run again and never judged; returns them."""
    taken: list[dict[str, Any]] = []
    for category in wanted:
        path = _results(root, category)
        drop_cut_line(path)
        rows = list(read_lines(path))
        sound = [row for row in rows if not _is_poisoned(row)]
        if len(sound) < len(rows):
            taken += [row for row in rows if _is_poisoned(row)]
            replace_file(path, b"".join(json.dumps(row).encode() + b"\n" for row in sound))
    return taken


def _results(root: Path, category: str) -> Path:
    return root / "result" / NAME / f"BFCL_v3_{category}_result.json"


def _category(row: Mapping[str, Any]) -> str:
    return str(row["id"]).rpartition("_")[0]


def _why_lost(row: Mapping[str, Any]) -> str:
    return TOO_LONG if says_overflow(row["result"]) else LOST


def _is_poisoned(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("result"), str) and row["result"].startswith(POISON)
