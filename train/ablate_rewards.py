"""Does it matter who judges in training? The same training with each judge, tried on the same held-out tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from train.ablate import Answer, Table
from train.ablate_verification import METHODS
from train.evaluate_compare import compare
from train.evaluate_export import shown_score

if TYPE_CHECKING:
    from train.ablate_training import Parts
    from train.config import TrainConfig


def ablate_rewards(
    parts: Parts, config: TrainConfig, subset: str, *, judge: str, tries: int, preset: str = ""
) -> Answer:
    """Train with code, an LLM, and an LLM with the code's evidence as judges; code judges the held-out tries.

    `judge` is the profile of the settings whose model judges. Raises UserError where a training cannot be made or
    failed.
    """
    reports: dict[str, dict[str, Any]] = {}
    trainings = {}
    for by, title in METHODS.items():
        rewards = config.rewards.model_copy(update={"by": by})
        chosen = config.model_copy(update={"rewards": rewards, "judge": None if by == "code" else judge})
        trainings[by] = parts.trained(f"judged by {title}", chosen, subset, preset=preset)
    for by, number in trainings.items():
        reports[by] = parts.evaluated(f"tried, judged by {METHODS[by]}", number, subset, tries=tries)
    stopped = [document for document in reports.values() if document["state"] != "done"]
    rows = []
    for by, document in reports.items():
        found = None if stopped or by == "code" else compare(reports["code"], document)
        verdict = found and ": ".join(filter(None, [found["verdict"], found["why"]]))
        rows.append([METHODS[by], shown_score(document) or None, document["tasks"], document["n"], verdict])
    columns = ["judge in training", "score, 95 % interval", "tasks", "tries", "against code alone"]
    return Answer(
        question="Is a model better for the judge it was trained with?",
        n={"trainings": len(trainings), "tries a task": tries},
        tables=[Table("Held-out scores", columns, rows)],
        notes=[
            f"All trainings are by {preset or 'the same settings'} with the same seed; the profile {judge} judges. "
            "One training each: what seeds would change is not in the intervals.",
            "Code judges the held-out tries of all three.",
        ],
        state="stopped" if stopped else "done",
        why=stopped[0]["why"] if stopped else "",
        data={"trainings": trainings, "evaluations": {by: document.get("run") for by, document in reports.items()}},
    )
