"""τ²-bench: which tasks there are, how its command line is started, and what its files say."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.evaluate_report import Item
from train.harness import launching
from train.harness.plan import LOG, MODEL, Job, Standing
from train.harness.presets import Preset
from train.harness.result_files import Damaged, read_json
from train.json_lines import json_line

DOMAINS = ("airline", "retail", "telecom", "mock")

SEED = 300
"""Its own default, from which the seeds of the tries follow."""

TEMPERATURE = 0.0
"""Its own default. The profiles' sampling wins over it in the proxy."""

SKIPPED = "the simulation broke off, for example because a model gave no answer"
"""Why a simulation is excluded that the harness skipped: it writes a reward of 0 for it."""

USER_BROKE_OFF = "the simulated user broke the rules"

PASSES = 1.0
"""The reward that counts as passed, as in τ²-bench's own pass^k (within 1e-6)."""


def ids(packages: Path, domain: str, split: str = "base") -> list[str]:
    """The ids of a domain's tasks in one of its splits. Raises UserError for a split that there is not."""
    folder = packages / "tau2" / "data" / "tau2" / "domains" / domain
    splits = read_json(folder / "split_tasks.json")
    if split not in splits:
        raise UserError(f"τ²-bench's domain {domain} has no split {split!r}: there are {', '.join(splits)}.")
    return [str(name) for name in splits[split]]


def chosen(packages: Path, preset: Preset, domains: Collection[str] = ()) -> dict[str, list[str]]:
    """The ids that a preset means, by domain; of `domains` instead of its own, where some are named.

    Raises UserError for a domain that there is not, or that lacks the preset's split.
    """
    if preset.ids and not domains:
        return {domain: list(named) for domain, named in preset.ids.items()}
    wanted = list(domains) or list(preset.domains)
    if unknown := [domain for domain in wanted if domain not in DOMAINS]:
        raise UserError(f"τ²-bench has no domain {unknown[0]!r}: there are {', '.join(DOMAINS)}.")
    return {domain: ids(packages, domain, preset.split)[: preset.first] for domain in wanted}


def work(job: Job) -> None:
    """Simulate what is missing, one domain after the other. Raises UserError where the harness breaks off."""
    for domain, names in job.plan.wanted.items():
        settings = _prepare(job, domain, names)
        if job.run("launch_tau2.py", [str(settings)], {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}):
            raise UserError(f"τ²-bench broke off: {launching.last_words(job.folder / LOG)}")


def _prepare(job: Job, domain: str, names: list[str]) -> Path:
    """Write what the launcher reads for one domain; returns its path. What was skipped before is run again."""
    results = job.root / "results"
    results.mkdir(parents=True, exist_ok=True)
    _drop_skipped(results / f"{domain}.json")
    document = {
        "domain": domain,
        "split": job.plan.split,
        "ids": names,
        "tries": job.plan.tries,
        "seed": SEED,
        "at_once": job.plan.at_once,
        "results": str(results),
        "agent": {"model": MODEL, "base_url": job.base_url, "temperature": TEMPERATURE},
        "user": {"model": MODEL, "base_url": job.user_url, "temperature": TEMPERATURE},
    }
    path = job.root / f"settings-{domain}.json"
    replace_file(path, json_line(document))
    return path


def progress(root: Path, wanted: Mapping[str, list[str]]) -> Standing:
    """What came of the simulations so far."""
    return Standing.of(items(root, wanted))


def items(root: Path, wanted: Mapping[str, list[str]]) -> list[Item]:
    """What came of the simulations of each task that was reached, in the order of their tries.

    Raises Damaged where a file is damaged, or a reward is not a number.
    """
    return [item for domain, names in wanted.items() for item in _of_domain(root, domain, names)]


def _of_domain(root: Path, domain: str, names: list[str]) -> list[Item]:
    path = root / "results" / f"{domain}.json"
    if not path.exists():
        return []
    passes: dict[str, dict[int, bool]] = defaultdict(dict)
    excluded: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for simulation in _simulations(path):
        task = str(simulation["task_id"])
        if why := _why_not_judged(simulation):
            excluded[task][why] += 1
        else:
            passes[task][int(simulation.get("trial") or 0)] = _passed(simulation, path)
    labels = {"domain": domain}
    return [
        Item(
            f"{domain}/{task}",
            tuple(passed for _, passed in sorted(passes[task].items())),
            dict(excluded[task]),
            labels,
        )
        for task in names
        if task in passes or task in excluded
    ]


def _why_not_judged(simulation: Mapping[str, Any]) -> str:
    if simulation.get("skipped"):
        return SKIPPED
    return USER_BROKE_OFF if simulation.get("termination_reason") == "user_error" else ""


def _passed(simulation: Mapping[str, Any], path: Path) -> bool:
    reward = (simulation.get("reward_info") or {}).get("reward")
    if not isinstance(reward, int | float) or not math.isfinite(reward):
        raise Damaged(f"{path}: the reward of task {simulation['task_id']} is {reward!r}, which is not a result.")
    return abs(reward - PASSES) <= 1e-6


def _simulations(path: Path) -> list[dict[str, Any]]:
    document = read_json(path)
    found = document.get("simulations") if isinstance(document, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) and "task_id" in one for one in found):
        raise Damaged(f"{path} holds no simulations of τ²-bench.")
    return found


def _drop_skipped(path: Path) -> None:
    if not path.exists():
        return
    found = _simulations(path)
    sound = [one for one in found if not one.get("skipped")]
    if len(sound) < len(found):
        replace_file(path, json_line(read_json(path) | {"simulations": sound}))
