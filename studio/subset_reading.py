"""What the Subsets screens show: cards and recipes in words, members, comparisons, and what a recipe would pick."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.model import Part
from pipeline.words import number_of
from studio.widgets.lines import Piece

if TYPE_CHECKING:
    from curation.preview import Pool, Preview
    from curation.subset import Recipe, Subset
    from pipeline.catalog import Catalog
    from pipeline.workspace import Workspace

METHODS = {
    "facility": "facility location: every environment has one like it",
    "centre": "k-centre: no environment is far from one",
    "stratified": "stratified: concept by concept",
    "random": "random",
    "all": "in the order of names",
}
"""How environments are picked, as it is said."""
FORMATS = {
    "hf": "hf: parquet with a dataset card, for datasets.load_dataset",
    "verl": "verl: parquet for its agent loop",
    "trl": "trl: prompts with environment references, for awm-studio train",
    "awm": "awm: upstream's JSON lines",
    "mcp": "mcp: a client configuration",
}
"""What exports come in, as it is said."""


SHARES = 5
"""How many kinds of a thing (makers, licences) a card names; the exported card has all."""


def recipe_lines(recipe: Mapping[str, Any]) -> Iterator[list[Piece]]:
    """How a subset was made, a line for each thing that was asked for."""
    budget = "all" if recipe["budget"] is None else f"{recipe['budget']:,} environments"
    yield [("budget     ", "muted"), (budget, "")]
    yield [("filter     ", "muted"), (recipe["where"] or "none", "" if recipe["where"] else "muted")]
    yield [("picked by  ", "muted"), (METHODS[recipe["method"]], "")]
    yield [("covers     ", "muted"), (f"view {recipe['cover']}, model {recipe['model']}", "")]
    yield [("threshold  ", "muted"), (f"{recipe['threshold']:g}", "")]
    if recipe["held_out"]:
        yield [("held out   ", "muted"), (f"concepts with {recipe['held_out']:.0%} of the environments", "")]
    if recipe["tasks_each"]:
        yield [("tasks each ", "muted"), (f"at most {recipe['tasks_each']}", "")]
    if recipe["distinct"] is not None:
        yield [("distinct   ", "muted"), (f"no two {recipe['distinct']:g} alike", "")]
    yield [("seed       ", "muted"), (str(recipe["seed"]), "")]


def coverage_of(card: Mapping[str, Any]) -> str:
    """A subset's coverage; nothing for one that was cut from another, as ablations do, and so never measured."""
    return f"{card['coverage']:.3f}" if "coverage" in card else ""


def _vendi_of(card: Mapping[str, Any]) -> str:
    return f"{card['vendi']['train']:.1f} of {card['vendi']['of']:.1f}" if card.get("vendi") else ""


def card_lines(card: Mapping[str, Any]) -> Iterator[list[Piece]]:
    """A subset's card: what it holds, what is known of it, where it comes from."""
    yield [(f"{'':<13}{'train':>7}{'test':>7}{'of':>7}", "muted")]
    for key in ("environments", "tasks", "concepts"):
        counts = card[key]
        of = f"{counts['of']:>7,}" if "of" in counts else ""
        yield [(f"{key:<13}", "muted"), (f"{counts['train']:>7,}{counts['test']:>7,}{of}", "")]
    if vendi := card.get("vendi"):
        yield [
            ("coverage   ", "muted"),
            (coverage_of(card), "strong"),
            (" mean similarity to the nearest picked", "muted"),
        ]
        yield [("Vendi      ", "muted"), (f"{_vendi_of(card)}, view {vendi['view']}", "")]
    if held := card["concepts"].get("held_out"):
        yield [("held out   ", "muted"), (f"{number_of(len(held), 'concept')}: {'; '.join(held)}", "")]
    for row in card.get("series", ()):
        said = f"{row['environments']:,} environments, {row['concepts']:,} concepts, coverage {row['coverage']:.3f}"
        yield [(f"first {row['size']:<5}", "muted"), (said, "")]
    yield []
    for key in ("checks", "audit", "difficulty", "licences", "origins", "made_by", "left_out_tasks"):
        if shares := card.get(key):
            ranked = sorted(shares.items(), key=lambda share: (-share[1], share[0]))
            said = ", ".join(f"{word} {count:,}" for word, count in ranked[:SHARES])
            rest = f" and {len(ranked) - SHARES} more" if len(ranked) > SHARES else ""
            yield [(f"{key.replace('_', ' '):<15}", "muted"), (said, ""), (rest, "muted")]
    yield [("digest         ", "muted"), (card["digest"][:16], "")]


@dataclass(frozen=True, slots=True)
class Member:
    """An environment of a subset: its place in its split, its concept, and the tasks that were picked."""

    rank: int
    split: str
    name: str
    concept: str
    tasks: tuple[int, ...]


def read_subset(catalog: Catalog, name: str) -> tuple[Subset, list[Member]]:
    """A subset and its environments, training split first. Raises UserError where there is none of this name."""
    from curation.subset import TEST, TRAIN, Subset

    subset = Subset.from_json(catalog.subset(name))
    members = [
        Member(picks[0].rank + 1, split, environment, picks[0].concept, tuple(pick.task for pick in picks))
        for split in (TRAIN, TEST)
        for environment, picks in subset.pairs(split).items()
    ]
    return subset, members


def member_lines(catalog: Catalog, subset: Subset, member: Member) -> list[list[Piece]]:
    """The tasks that were picked of an environment, as they were when the subset was made."""
    sha = subset.contents[member.name].get(f"{Part.tasks}/")
    content = json.loads(catalog.content(sha)) if sha else []
    tasks = content["tasks"] if isinstance(content, dict) else content
    lines: list[list[Piece]] = [[(member.name, "strong"), (f"  {member.concept}", "accent")], []]
    lines += [[(f"{task:>3}  ", "muted"), (str(tasks[task]), "")] for task in member.tasks if task < len(tasks)]
    return lines


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two subsets share or do not: how many only the first has, both have, only the second has."""

    what: str
    counts: tuple[str, str, str]
    lines: list[list[Piece]]


def differences(catalog: Catalog, left: str, right: str) -> list[Difference]:
    """Two subsets side by side."""
    from curation.subset import overlap

    one, _ = read_subset(catalog, left)
    other, _ = read_subset(catalog, right)
    found = overlap(one, other)
    concepts = [{pick.concept for pick in subset.picks} for subset in (one, other)]
    names = [set(subset.environments()) for subset in (one, other)]
    crossing: list[list[Piece]] = [[(name, "warn")] for name in found.test_in_training]
    leaks = len(found.test_in_training)
    rows = [
        Difference("environments", _words(found.environments), _groups(left, right, *names)),
        Difference("tasks", _words(found.pairs), [[("(environment, task) pairs", "muted")]]),
        Difference("concepts", _words(found.concepts), _groups(left, right, *concepts)),
        Difference(
            "tested in one, trained on in the other",
            ("", f"! {leaks:,}" if leaks else "none", ""),
            crossing or [[("Results on the test splits can be compared.", "ok")]],
        ),
    ]
    sides = [list(recipe_lines(subset.card["recipe"])) for subset in (one, other)]
    coverage = [coverage_of(subset.card) for subset in (one, other)]
    vendi = [_vendi_of(subset.card) for subset in (one, other)]
    for what, (first, second) in (("coverage", coverage), ("Vendi score of the training split", vendi)):
        rows.append(Difference(what, (first, "", second), [*sides[0], [], *sides[1]]))
    return rows


def _words(counts: tuple[int, int, int]) -> tuple[str, str, str]:
    first, both, second = (f"{count:,}" for count in counts)
    return first, both, second


def _groups(left: str, right: str, one: set[str], other: set[str]) -> list[list[Piece]]:
    lines: list[list[Piece]] = []
    for title, names in ((f"only {left}", one - other), (f"only {right}", other - one), ("both", one & other)):
        lines.append([(f"{title}: {len(names):,}", "strong")])
        lines += [[(f"  {name}", "")] for name in sorted(names)]
    return lines


def read_recipe_pool(workspace: Workspace) -> Pool | None:
    """What recipes choose from, or None where nothing was measured yet."""
    from curation.preview import read_pool
    from studio.concept_reading import read

    reading = read(workspace)
    return read_pool(workspace.catalog, reading.landscape, reading.usual) if reading.landscape is not None else None


def preview_lines(pool: Pool, recipe: Recipe, found: Preview) -> list[list[Piece]]:
    """What a recipe would pick, in a few lines."""
    of = len(pool.summaries)
    lines: list[list[Piece]] = [
        [
            (f"{found.matching:,} of {number_of(of, 'environment')}", "strong"),
            (" pass the filter, ", ""),
            (f"{found.candidates:,}", "strong"),
            (" can be picked: measured, with tasks to train on, not set aside", ""),
        ]
    ]
    if found.unmeasured:
        lines.append([(f"~ {found.unmeasured:,} are not measured yet; picking measures them.", "warn")])
    if found.figures is None:
        view = pool.landscape.survey.view
        if recipe.cover != view:
            said = f"The last measurement is of view {view}; by view {recipe.cover} it cannot be counted live."
            lines.append([(said, "muted")])
        return lines
    counts = {key: found.figures[key] for key in ("environments", "tasks", "concepts")}
    said = ", ".join(number_of(counts[key]["train"], key[:-1]) for key in counts)
    lines.append([("train  ", "muted"), (said, "strong"), (f" (of {counts['concepts']['of']:,} concepts)", "muted")])
    if counts["environments"]["test"]:
        said = ", ".join(number_of(counts[key]["test"], key[:-1]) for key in counts)
        lines.append([("test   ", "muted"), (said, "strong"), (" never trained on", "muted")])
    lines.append([("coverage ", "muted"), (f"{found.figures['coverage']:.3f}", "strong")])
    if recipe.budget and recipe.budget > found.candidates:
        lines.append([(f"! The budget is {recipe.budget:,}: all that can be picked are.", "warn")])
    return lines
