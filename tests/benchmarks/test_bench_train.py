"""Does it learn? A warm start, then GRPO on blueprint tasks with three seeds, and a control that cannot learn.

`make bench-train`. What comes out is in docs/learning: figures.json, and each training's own events, from which
docs/pictures/learning.svg and the picture of the Train screen are drawn.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil
import pytest

from curation.estimates import rate
from curation.subset import TEST, TRAIN, Pick, Recipe, Subset, current_contents
from pipeline.blueprints.language.domain import Domain
from pipeline.blueprints.language.reading import read_domain
from pipeline.blueprints.make import blueprint, shipped_text
from pipeline.blueprints.synthesis import put
from pipeline.blueprints.tasks.planning import Task
from pipeline.catalog import Catalog
from pipeline.records import Run
from pipeline.workspace import Workspace
from train import training_run
from train.config import TrainConfig, load
from train.figure import Drawn, Panel, figure, save
from train.run_log import METRICS, read_metrics

pytestmark = pytest.mark.benchmark

DOCS = Path(__file__).resolve().parents[2] / "docs"
LEARNING = DOCS / "learning"
DOMAIN = Path(__file__).with_name("boat_yard.yaml")
"""A domain whose records have names of one word: a tiny model learns to copy those, and codes it does not."""
NAMES = ("bird", "tree", "metal")
"""The domain's words that records are named by."""
SEED = 1
TRAINED, HELD_OUT = 16, 6
"""Environments of the domain: other rows, other names of tools, and other records beside the boats in each."""
TASKS_ASKED = 40
"""Tasks asked of an environment; of those it finds, the simple ones are taken."""
SEEDS = (1, 2, 3)
CONTROL = "shuffled rewards"
WARM_UP, HABIT = 700, 250
"""Steps of the warm start: as many as the tiny model needs to copy names and ids, and as many in which half of what is
demonstrated claims to be done before the last call. Reinforcement repairs habits; it does not teach what is lacking."""
STEPS = int(os.environ.get("AWM_BENCH_TRAIN_STEPS", "30"))
EVALUATION = ("evaluation.tasks=64", "evaluation.tries=3", "evaluation.every=10")
"""All held-out tasks, three times each, before, in between and after."""
AT_ONCE = 4
"""Trainings at a time: two a processor, since each waits for its environments now and then."""


def is_simple(task: Task) -> bool:
    """Whether a task wants one record found by its name of one word, one action on it, and no answer."""
    if task.kind != "direct" or task.answer is not None or len(task.calls) != 2:
        return False
    find, act = task.calls
    return set(find.arguments) == {"search"} and find.arguments["search"].isalpha() and len(act.arguments) == 1


def read(path: Path) -> Domain:
    return read_domain(path.read_text("utf-8"), path.name, common=shipped_text("_common.yaml"))


def make_workspace(folder: Path) -> None:
    """Environments of one domain, and a subset of their simple tasks whose test split has environments of its own."""
    folder.mkdir(parents=True)
    domain = read(DOMAIN)
    picks = []
    with Catalog.open(folder / "catalog.db") as catalog:
        with catalog.bulk():
            for index in range(TRAINED + HELD_OUT):
                made = blueprint(domain, SEED, index, tasks=TASKS_ASKED)
                put(catalog, made.environment)
                split = TRAIN if index < TRAINED else TEST
                picks += [
                    Pick(made.environment.name, number, index, split, domain.name)
                    for number, task in enumerate(made.tasks)
                    if is_simple(task)
                ]
        contents = current_contents(catalog, {pick.environment for pick in picks})
        catalog.set_subset("simple", Subset(Recipe("simple"), tuple(picks), contents, {}).to_json(), {})


def trained(workspace: Workspace, config: TrainConfig) -> tuple[Run, Mapping[str, Any], float]:
    """A training from beginning to end in a process of its own, its figures, and the CPU seconds it took."""
    run = training_run.create(workspace, config, "simple", preset="cpu-tiny")
    process = training_run.start(workspace, run, detached=True)
    watched, spent = psutil.Process(process.pid), 0.0
    while process.poll() is None:
        try:
            times = watched.cpu_times()
            spent = times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            break
        time.sleep(0.5)
    return run, training_run.wait(workspace, run, process), spent


def curve(events: Sequence[Mapping[str, Any]], figure: str) -> list[tuple[float, float]]:
    return [(event["step"], round(event[figure], 4)) for event in events if event.get(figure) is not None]


def band(curves: Sequence[Sequence[tuple[float, float]]]) -> list[tuple[float, float, float, float]]:
    """Step, mean, smallest and largest value of curves, where all have a point."""
    by_step = [dict(points) for points in curves]
    steps = sorted(set(by_step[0]).intersection(*by_step[1:]))
    values = [(step, [points[step] for points in by_step]) for step in steps]
    return [(step, fmean(found), min(found), max(found)) for step, found in values]


def drawn(name: str, curves: Sequence[Sequence[tuple[float, float]]], look: int) -> Drawn:
    found = band(curves)
    edges = [(step, low, high) for step, _, low, high in found] if len(curves) > 1 else []
    return Drawn(name, [(step, mean) for step, mean, _, _ in found], look, edges)


def warmed_up(workspace: Workspace) -> tuple[Run, float]:
    """The model that all seeds begin with, and the CPU seconds it took: it can do the tasks, and has a bad habit."""
    domain = read(DOMAIN)
    words = f"warmup.vary_words={json.dumps([domain.words[kind] for kind in NAMES])}"
    nothing_more = ("grpo.steps=0", "evaluation.tasks=0")
    able, _, learning = trained(workspace, load("cpu-tiny", [words, f"warmup.steps={WARM_UP}", *nothing_more]))
    keep(workspace, able, "warm-start")
    model = f"model.name={workspace.runs / str(able.id) / 'model'}"
    spoilt = [model, words, f"warmup.steps={HABIT}", "warmup.spoilt=0.5", *nothing_more]
    habitual, _, spoiling = trained(workspace, load("cpu-tiny", spoilt))
    keep(workspace, habitual, "habit")
    return habitual, learning + spoiling


def reinforced(workspace: Workspace, model: Path, name: str) -> dict[str, Any]:
    """GRPO with a seed (or as a control, with rewards that are dealt out at random), and what came of it."""
    seed = SEEDS[0] if name == CONTROL else int(name)
    overrides = [f"model.name={model}", "warmup.steps=0", f"seed={seed}", f"grpo.steps={STEPS}", *EVALUATION]
    overrides += ["grpo.shuffle_rewards=true"] if name == CONTROL else []
    run, figures, cpu = trained(workspace, load("cpu-tiny", overrides))
    folder = workspace.runs / str(run.id)
    steps, tries = read_metrics(folder, "step"), read_metrics(folder, "try")
    keep(workspace, run, "control" if name == CONTROL else f"seed-{seed}")
    return {
        **{key: figures[key] for key in ("before", "after", "interval", "tried")},
        "held_out": curve(tries, "rate"),
        "reward": curve(steps, "reward"),
        "format_error": curve(steps, "end/format_error"),
        "complete_of": [(event["step"], event["complete"], event["judged"]) for event in tries],
        "cpu_s": round(cpu),
    }


def measured(workspace: Workspace, warm: Run, warm_cpu: float) -> dict[str, Any]:
    """All seeds and the control from one warm start, written down and drawn."""
    model = workspace.runs / str(warm.id) / "model"
    began, names = time.perf_counter(), [*map(str, SEEDS), CONTROL]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda name: reinforced(workspace, model, name), names)
        runs = dict(zip(names, found, strict=True))
    document = {
        "domain": DOMAIN.name,
        "environments": {"trained": TRAINED, "held out": HELD_OUT},
        "tasks": {"trained": warm.config["tasks"], "held out": warm.config["held_out"]},
        "warm_up": {"steps": [WARM_UP, HABIT], "cpu_s": round(warm_cpu)},
        "steps": STEPS,
        "runs": runs,
        "seconds": round(time.perf_counter() - began),
        "cpus": psutil.cpu_count(),
        "load_average": [round(value, 1) for value in os.getloadavg()],
    }
    (LEARNING / "figures.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    draw(runs)
    tell(document)
    return document


def test_it_learns_and_the_control_does_not(tmp_path: Path) -> None:
    make_workspace(tmp_path / "workspace")
    with Workspace.open(tmp_path / "workspace") as workspace:
        runs = measured(workspace, *warmed_up(workspace))["runs"]
    gain = fmean(runs[str(seed)]["after"] - runs[str(seed)]["before"] for seed in SEEDS)
    assert gain >= 0.25
    assert runs[CONTROL]["after"] - runs[CONTROL]["before"] < gain / 2


def keep(workspace: Workspace, run: Run, name: str) -> None:
    """Keep what a training wrote of itself: its configuration and its events."""
    folder, place = workspace.runs / str(run.id), LEARNING / name
    place.mkdir(parents=True, exist_ok=True)
    config = (folder / training_run.CONFIG).read_text("utf-8").replace(str(workspace.path), "workspace")
    (place / training_run.CONFIG).write_text(config, "utf-8")
    shutil.copyfile(folder / METRICS, place / METRICS)


def draw(results: Mapping[str, Mapping[str, Any]]) -> None:
    """The figure: mean and range of the seeds beside the control."""
    seeds = [results[str(seed)] for seed in SEEDS]
    panels = [
        Panel(
            title,
            [
                drawn("mean and range of 3 seeds", [run[key] for run in seeds], 0),
                drawn("control", [results[CONTROL][key]], 1),
            ],
            is_share=key != "reward",
        )
        for key, title in (
            ("held_out", "held-out tasks complete"),
            ("reward", "reward of a step's rollouts"),
            ("format_error", "format errors"),
        )
    ]
    save(DOCS / "pictures" / "learning.svg", figure(panels, "Learning on blueprint tasks, three seeds and a control"))


def tell(document: Mapping[str, Any]) -> None:
    tasks, environments = document["tasks"], document["environments"]
    print(
        f"\n{DOMAIN.stem}: {tasks['trained']} tasks of {environments['trained']} environments trained on, "
        f"{tasks['held out']} of {environments['held out']} others held out; {STEPS} steps of 64 rollouts"
    )
    for name, run in document["runs"].items():
        complete, judged = run["complete_of"][0][1:]
        before = rate(complete, judged)
        assert before is not None
        print(
            f"{name:>18}: {run['before']:.3f} ({before.low:.3f} to {before.high:.3f}) → {run['after']:.3f} "
            f"({run['interval'][0]:.3f} to {run['interval'][1]:.3f}), {run['tried']} tries, {run['cpu_s']} s of CPU"
        )
    print(
        f"{document['seconds']} s after the warm start on {document['cpus']} processors, load {document['load_average']}"
    )
