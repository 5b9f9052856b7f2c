"""MCP-Universe: how its runner is started on a person's tasks, and what was written down of them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.evaluate_report import Item
from train.harness import launching
from train.harness.mcp_tasks import TaskSet, domains, needs, servers
from train.harness.plan import LOG, MODEL, Job, Standing
from train.harness.presets import Preset
from train.harness.result_files import Damaged, read_lines
from train.harness.venvs import site_packages
from train.json_lines import drop_cut_line, json_line
from train.proxy import DUMMY_KEY

MAX_ITERATIONS = 20
"""Turns of the agent where a domain's file sets none (the benchmark's own files set 15 to 50)."""

BROKEN = "its evaluator broke off"
"""Why a task is excluded of which an evaluator could not say whether it passed."""

REACHED_BY = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "DOCKER_HOST", "PLAYWRIGHT_BROWSERS_PATH"}
)
"""Variables (also in small letters) that say how this machine reaches the network, Docker and a browser."""

NETWORK_FAULT = re.compile(
    r"\b(ConnectionError|ConnectError|\w*Timeout(Error|Exception)?|HTTPError|HTTPStatusError|SSLError|gaierror"
    r"|APIConnectionError|APIStatusError|AuthenticationError|PermissionDeniedError|RateLimitError)\b"
)
"""Exceptions in an evaluator's traceback that say that a service could not be asked."""

NO_ANSWER = 3
"""The launcher's exit code where the model gave no answer."""


def chosen(sets: Iterable[TaskSet], preset: Preset) -> dict[str, list[str]]:
    """The task files that a preset means, by domain."""
    return {found.name: [str(path) for path in found.tasks[: preset.most]] for found in sets}


def work(job: Job) -> None:
    """Run what is missing, one domain after the other. Raises UserError where the harness breaks off.

    A domain's servers get the environment variables that it needs (see `mcp_tasks.needs`) and no other secrets.
    """
    assert job.plan.tasks is not None
    if job.plan.digest != digest(job.plan.wanted):
        raise UserError(f"The task files in {job.plan.tasks} are not those that this evaluation was begun with.")
    known = servers(site_packages(job.python))
    sets = {found.name: found for found in domains(job.plan.tasks)}
    for domain, tasks in job.plan.wanted.items():
        settings = _prepare(job, sets[domain], tasks)
        code = job.run("launch_mcp_universe.py", [str(settings)], _passed(needs(sets[domain], known)))
        if code == NO_ANSWER:
            raise UserError("The model's server gave MCP-Universe no answer.")
        if code:
            raise UserError(f"MCP-Universe broke off: {launching.last_words(job.folder / LOG)}")


def _passed(needed: set[str]) -> dict[str, str]:
    """What a domain's servers get of our environment; our own proxy is not reached through another one."""
    passed = {n: value for n, value in os.environ.items() if n in needed or n.upper() in REACHED_BY}
    direct = ",".join(filter(None, [passed.get("NO_PROXY") or passed.get("no_proxy"), "127.0.0.1", "localhost"]))
    return passed | {"NO_PROXY": direct, "no_proxy": direct}


def _prepare(job: Job, found: TaskSet, tasks: list[str]) -> Path:
    """Write what the launcher reads for what is left of a domain; returns its path."""
    results = _results(job.root, found.name)
    results.parent.mkdir(parents=True, exist_ok=True)
    drop_cut_line(results)
    done = {row["task"] for row in read_lines(results)}
    settings = {
        "llm": {
            "model_name": MODEL,
            "base_url": job.base_url,
            "api_key": DUMMY_KEY,  # its default is the environment's, which may be the judge's
            "timeout": round(job.plan.model.timeout_s),
        },
        "agent": {"max_iterations": MAX_ITERATIONS, **found.agent},
        "description": found.description,
        "tasks": [task for task in tasks if task not in done],
        "config": str(job.root / f"{found.name}.yaml"),
        "traces": str(job.root / f"{found.name}-traces.log"),
        "results": str(results),
    }
    path = job.root / f"settings-{found.name}.json"
    replace_file(path, json_line(settings))
    return path


def progress(root: Path, wanted: Mapping[str, list[str]]) -> Standing:
    """What came of the tasks so far."""
    return Standing.of(items(root, wanted))


def items(root: Path, wanted: Mapping[str, list[str]]) -> list[Item]:
    """What came of each task that was reached. A task passed where each of its evaluators says so.

    Raises Damaged where a file is damaged.
    """
    found = []
    for domain in wanted:
        path = _results(root, domain)
        rows = {str(row.get("task")): row for row in read_lines(path)}
        found += [_item(domain, row, path) for row in rows.values()]
    return found


def digest(wanted: Mapping[str, list[str]]) -> str:
    """What the contents of the task files come to, so that equal digests mean the same tasks.

    Raises UserError where one cannot be read.
    """
    hashed = hashlib.sha256()
    for task in sorted(task for tasks in wanted.values() for task in tasks):
        try:
            hashed.update(Path(task).read_bytes())
        except OSError as error:
            raise UserError(f"{task} cannot be read: {error.strerror}.") from None
    return hashed.hexdigest()[:12]


def _item(domain: str, row: Mapping[str, Any], path: Path) -> Item:
    name, labels = f"{domain}/{Path(str(row.get('task'))).stem}", {"domain": domain}
    evaluations = row.get("evaluations")
    if not isinstance(evaluations, list) or not evaluations:
        raise Damaged(f"{path} has no evaluations of {row.get('task')}.")
    passes = [evaluation.get("passed") for evaluation in evaluations]
    if not all(isinstance(passed, bool) for passed in passes):
        raise Damaged(f"{path}: an evaluation of {row.get('task')} says neither passed nor failed.")
    if not all(passes) and _broke_off(evaluations):
        return Item(name, (), {BROKEN: 1}, labels)
    return Item(name, (all(passes),), {}, labels)


def _broke_off(evaluations: list[Mapping[str, Any]]) -> bool:
    """Whether each evaluation that did not pass met a fault of the network or a service on the way.

    Other errors are the agent's: an answer without the field that is looked for is one to the harness, too.
    """
    failed = [evaluation for evaluation in evaluations if not evaluation["passed"]]
    return all(NETWORK_FAULT.search(str(evaluation.get("error") or "")) for evaluation in failed)


def _results(root: Path, domain: str) -> Path:
    return root / "results" / f"{domain}.jsonl"
