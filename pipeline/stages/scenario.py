"""Stage 1: new scenarios from known ones, scored, and admitted where they are unlike all that is there."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import orjson

from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.llm.text import Unreadable
from pipeline.model import Part, normalise
from pipeline.nearness import Nearness, unnamed
from pipeline.stages.json_reply import TEXT, array, content_of, read_document, record
from pipeline.stages.prompts import render
from pipeline.stages.step import Step

BATCH = 10
"""Scenarios asked for at once, as in AWM (arXiv 2602.10090, section 3.1)."""

SHOWN = 8
"""Known scenarios shown as examples in a request, drawn anew for each."""

MOST_REQUESTS = 8
"""Requests in one round at most; what is admitted from it steers the next."""

LEAST_SCORE = 6
"""From here on a scenario's core can be rebuilt over a database (see the scale in `prompts/score.md`)."""

DRY_ROUNDS = 10
"""Rounds in a row with nothing new after which no more is asked for."""

CAP_FACTOR = 1.5
"""How much fuller than the average a category may become with scenarios that have a near neighbour."""

LONGEST_NAME = 120

SHAPE = record(scenarios=array(record(name=TEXT, category=TEXT, description=TEXT)))
SCORES = record(scores=array(record(name=TEXT, score={"type": "number"}, reason=TEXT)))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A seed, or a scenario that a model has invented; `score` is None where nobody has judged it."""

    name: str
    category: str
    description: str
    score: float | None = None

    @property
    def text(self) -> str:
        """What it is compared by."""
        return unnamed(self.name, self.description)


@dataclass(frozen=True, slots=True)
class Refused:
    """A scenario that was not admitted, and why."""

    name: str
    why: str


def read_seeds(path: str | Path | None = None) -> tuple[Scenario, ...]:
    """The seeds in a JSONL file with `name`, `description` and perhaps `category`; None: those that come with us.

    Raises UserError where a line is not of that form, or there are none.
    """
    if path is None:
        text, where = files("data").joinpath("seeds.jsonl").read_text("utf-8"), "the seeds"
    else:
        try:
            text, where = Path(path).read_text("utf-8-sig"), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"The seeds {path} cannot be read: {error}.") from None
    seeds = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            name, description = row["name"].strip(), row["description"].strip()
            seeds.append(Scenario(name, str(row.get("category") or "other").strip().lower(), description))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise UserError(
                f'{where}:{number} is not a seed: each line is a JSON object with "name" and "description".'
            ) from None
        if not normalise(name) or not description:
            raise UserError(f"{where}:{number}: the name or the description is empty.")
    if not seeds:
        raise UserError(f"{where} holds no seeds.")
    return tuple(seeds)


def requests_in_round(missing: int) -> int:
    """How many requests to make at once for scenarios that are still missing: a third of them is usually refused."""
    return max(1, min(MOST_REQUESTS, math.ceil(missing * 1.5 / BATCH)))


def category_cap(count: int, categories: int) -> int:
    """How many of `count` scenarios one category may hold before near neighbours are refused in it."""
    return max(2, math.ceil(CAP_FACTOR * count / max(1, categories)))


def rare_categories(categories: Sequence[str], admitted: Sequence[Scenario], limit: int = 6) -> list[str]:
    """The categories with the fewest admitted scenarios, rarest first."""
    counts = Counter(scenario.category for scenario in admitted)
    return sorted(dict.fromkeys(categories), key=lambda category: counts[category])[:limit]


def invent_step(
    known: Sequence[Scenario], admitted: Sequence[Scenario], slot: str, rng: random.Random, *, hint: str = ""
) -> Step:
    """A request for a batch of new scenarios, with some of the known ones as examples, and what a person wants."""
    categories = [scenario.category for scenario in known]
    shown = rng.sample(list(known), min(SHOWN, len(known)))
    examples = "\n\n".join(f"{each.name} [{each.category}]: {each.description}" for each in shown)
    taken = sorted({scenario.name for scenario in (*known, *admitted)} - {scenario.name for scenario in shown})
    others = f"\n\nAlso known, by name: {'; '.join(taken)}." if taken else ""
    return Step(
        stage="scenario",
        part=Part.scenario,
        slot=slot,
        what="JSON document with the scenarios",
        prompt=render(
            "scenario",
            known=examples + others,
            wanted=", ".join(rare_categories(categories, admitted)),
            categories=", ".join(sorted(set(categories))),
            hint=f"\n\nThe person who asks for them says: {hint}" if hint else "",
            count=BATCH,
        ),
        schema=SHAPE,
        read=read_batch,
        check=lambda content, _: check_batch(content),
    )


def score_step(candidates: Sequence[Scenario], slot: str) -> Step:
    """A request to score a batch."""
    listed = "\n\n".join(f"{candidate.name}: {candidate.description}" for candidate in candidates)
    return Step(
        stage="scenario",
        part=Part.scenario,
        slot=slot,
        what="JSON document with the scores",
        prompt=render("score", scenarios=listed),
        schema=SCORES,
        read=lambda text: content_of(read_document(text, SCORES)),
        check=lambda content, _: check_scores(content, len(candidates)),
    )


def read_batch(text: str) -> str:
    """The batch as JSON. Raises Unreadable where there is no scenario in it."""
    document = read_document(text, SHAPE)
    if not document["scenarios"]:
        raise Unreadable("The list of scenarios is empty.")
    return content_of(document)


def candidates_in(content: str) -> list[Scenario]:
    """The scenarios of a batch."""
    return [
        Scenario(" ".join(row["name"].split()), row["category"].strip().lower(), row["description"].strip())
        for row in orjson.loads(content)["scenarios"]
    ]


def check_batch(content: str) -> Sequence[Finding]:
    """Scenarios that cannot be named or say too little to be built from."""
    return [
        Finding(
            "scenario_too_short",
            "warn",
            f"scenarios: {candidate.name or '(no name)'}",
            "the description says too little to design a database and an API from it",
            remedy="write 90 to 160 words as asked",
        )
        for candidate in candidates_in(content)
        if len(candidate.description.split()) < 25
    ]


def check_scores(content: str, count: int) -> Sequence[Finding]:
    """Scores that cannot be matched to the scenarios."""
    given = len(orjson.loads(content)["scores"])
    if given == count:
        return []
    return [
        Finding(
            "score_count", "error", "scores", f"there are {given} scores for {count} scenarios", remedy="score each"
        )
    ]


def scored(candidates: Sequence[Scenario], content: str) -> list[Scenario]:
    """The candidates with their scores, matched by place."""
    rows = orjson.loads(content)["scores"]
    return [
        Scenario(each.name, each.category, each.description, float(row["score"]))
        for each, row in zip(candidates, rows, strict=True)
    ]


async def admit(
    candidates: Sequence[Scenario],
    known: Sequence[Scenario],
    admitted: Sequence[Scenario],
    *,
    taken: frozenset[str],
    nearness: Nearness,
    cap: int,
    room: int,
) -> tuple[list[Scenario], list[Refused]]:
    """Which candidates to take, in their order, and why the others are refused.

    `known` and `admitted` are what they may not repeat, `taken` the normalised names in use, `cap` the most a
    category may hold of neighbours, `room` how many are still wanted.
    """
    accepted: list[Scenario] = []
    refused: list[Refused] = []
    counts = Counter(scenario.category for scenario in admitted)
    names = {normalise(scenario.name) for scenario in (*known, *admitted)} | taken
    there = [*known, *admitted]
    rows = await nearness.compare([each.text for each in candidates], [each.text for each in (*there, *candidates)])
    for number, (candidate, row) in enumerate(zip(candidates, rows, strict=True)):
        if len(accepted) >= room:
            break
        others = [*range(len(there)), *(len(there) + n for n in range(number) if candidates[n] in accepted)]
        nearest = max(others, key=row.__getitem__, default=None)
        why = _unusable(candidate, names)
        if not why and nearest is not None:
            other = (*there, *candidates)[nearest]
            full = counts[candidate.category] >= cap
            why = _too_near(candidate, other, row[nearest], nearness, full=full)
        if why:
            refused.append(Refused(candidate.name, why))
            continue
        accepted.append(candidate)
        names.add(normalise(candidate.name))
        counts[candidate.category] += 1
    return accepted, refused


def _unusable(candidate: Scenario, names: set[str]) -> str:
    name = normalise(candidate.name)
    if not name or len(name) > LONGEST_NAME:
        return "it has no usable name"
    if name in names:
        return "there is one of that name"
    if candidate.score is not None and candidate.score < LEAST_SCORE:
        return f"its suitability is {candidate.score:g} of 10"
    return ""


def _too_near(candidate: Scenario, other: Scenario, cosine: float, nearness: Nearness, *, full: bool) -> str:
    if cosine > nearness.same:
        return f"it is {other.name} again ({cosine:.2f})"
    if cosine > nearness.near and full:
        return f"it is near {other.name} ({cosine:.2f}) and there is enough of {candidate.category}"
    return ""
