"""Does it matter that a model is trained on the history it will see? Two trainings, each tried both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from train.ablate import Answer, Table
from train.evaluate_compare import compare
from train.evaluate_export import shown_score

if TYPE_CHECKING:
    from train.ablate_training import Parts
    from train.config import TrainConfig

ALL = "all"


def ablate_history(
    parts: Parts, config: TrainConfig, subset: str, *, window: int, tries: int, preset: str = ""
) -> Answer:
    """Train with the last `window` exchanges and with all of them, and try each model with both.

    Aligned is what is tried as it was trained (arXiv 2602.10090, section 4, history-aware training). Raises UserError
    where a training cannot be made or failed.
    """
    windows = {str(window): window, ALL: None}
    reports: dict[tuple[str, str], Mapping[str, Any]] = {}
    trainings = {}
    for name, exchanges in windows.items():
        rules = config.rules.model_copy(update={"window": exchanges})
        aligned = config.model_copy(update={"rules": rules})
        trainings[name] = parts.trained(f"trained with {name}", aligned, subset, preset=preset)
    for trained, number in trainings.items():
        for tried, exchanges in windows.items():
            reports[trained, tried] = parts.evaluated(
                f"trained with {trained}, tried with {tried}", number, subset, tries=tries, rules={"window": exchanges}
            )
    stopped = [document for document in reports.values() if document["state"] != "done"]
    return Answer(
        question="Is a model better where it was trained on the history that it sees when it is used?",
        n={"tasks": max(d["tasks"] for d in reports.values()), "tries a task": tries, "trainings": len(trainings)},
        tables=[_scores(reports), *([] if stopped else [_comparisons(reports, [*windows])])],
        notes=[
            f"Both trainings are by {preset or 'the same settings'} with the same seed, on the same tasks; only the "
            "exchanges that are kept differ. One training each: what seeds would change is not in the intervals.",
            "Scores are means over held-out tasks, with 95 % intervals over tasks.",
        ],
        state="stopped" if stopped else "done",
        why=stopped[0]["why"] if stopped else "",
        data={"trainings": trainings, "evaluations": {"/".join(key): d.get("run") for key, d in reports.items()}},
    )


def _scores(reports: Mapping[tuple[str, str], Mapping[str, Any]]) -> Table:
    rows = [
        [trained, tried, "aligned" if trained == tried else "misaligned", shown_score(d) or None, d["tasks"], d["n"]]
        for (trained, tried), d in reports.items()
    ]
    return Table("Scores", ["trained with", "tried with", "", "score, 95 % interval", "tasks", "tries"], rows)


def _comparisons(reports: Mapping[tuple[str, str], Mapping[str, Any]], windows: list[str]) -> Table:
    rows = []
    for tried in windows:
        (other,) = (name for name in windows if name != tried)
        found = compare(reports[other, tried], reports[tried, tried])
        verdict = ": ".join(filter(None, [found["verdict"], found["why"]]))
        rows.append([tried, found["tasks"], found["difference"], verdict])
    return Table("Aligned against misaligned", ["tried with", "tasks", "difference", "aligned is"], rows)
