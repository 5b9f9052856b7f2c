"""`awm-studio diversity`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import rich_click as click

from pipeline.words import number_of
from studio.commands.options import (
    Finite,
    counted,
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    watched,
    workspace_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from pathlib import Path

    from curation.diversity import Comparison, Diversity
    from curation.maps import Layout
    from curation.survey import Survey
    from pipeline.workspace import Workspace

SHOWN = 20
"""How many concepts and near-duplicates are printed; `--json` has more."""


@click.command()
@click.option(
    "--view",
    type=click.Choice(["scenario", "tasks", "schema", "tools", "all"]),
    default="all",
    show_default=True,
    help="What environments are compared by; all is the scenario, its tasks and the names of its tools.",
)
@click.option(
    "--threshold",
    type=Finite(0, 1),
    help="Environments at least this similar on average are one concept "
    "[default: what judged pairs say, else 0.5; 0.3 for ngrams].",
)
@click.option("--where", default="", metavar="EXPR", help="Only environments that a filter lets through.")
@click.option(
    "--against",
    metavar="PATH",
    type=click.Path(exists=True, file_okay=False),
    help="A second set to compare with: another workspace, or a folder in the AWM layout.",
)
@click.option("--model", metavar="NAME", help="A sentence model or a profile of the settings; ngrams: none.")
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint that has the model.")
@click.option("--threads", type=click.IntRange(1), help="Processor threads for the model [default: its own choice].")
@click.option(
    "--map",
    "map_file",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write a map: an interactive page (FILE.html) or a picture (FILE.png).",
)
@click.option(
    "--layout", type=click.Choice(["umap", "pca"]), default="umap", show_default=True, help="How the map is laid out."
)
@click.option(
    "--decide",
    "decisions",
    type=(click.Choice(["keep", "merge", "drop", "forget"]), str, str),
    multiple=True,
    metavar="WHAT A B",
    help="About two near-duplicates: keep both, merge B into A, drop B, or forget what was decided. Repeatable.",
)
@click.option("--judge", type=click.IntRange(1), metavar="N", help="Ask about N pairs, to calibrate the threshold.")
@click.option(
    "--name-by", metavar="MODEL", help="Let a profile of the settings name the concepts [default: their words]."
)
@click.option("--save", is_flag=True, help="Keep each environment's concept in the catalog.")
@click.option("--keep", is_flag=True, help="Keep the measurement for the studio's Concepts screen.")
@json_option
@workspace_option
def diversity_command(**options: Any) -> None:
    """Count concepts: how many different environments are there really?

    The number depends on how alike two environments must be to count as one, so there is a curve besides the number
    at the threshold. Names of services are masked: they hide duplicates. What is embedded once is kept.

    Examples:

        awm-studio diversity

        awm-studio diversity --view tasks --where "origin:import" --json

        awm-studio diversity --against ../release --map concepts.html

        awm-studio diversity --judge 50

        awm-studio diversity --decide merge uber lyft --decide drop biblio shelfmark
    """
    from pathlib import Path

    from curation.extras import require

    require("concepts", "Counting concepts")
    from curation.diversity import document, keep_concepts
    from curation.duplicates import Decision, decide
    from curation.embeddings import choose_model
    from curation.landscape import keep_landscape, make_landscape
    from curation.map_files import require_format
    from curation.maps import Layout
    from curation.survey import compare_with, survey
    from curation.views import View

    view = View(options["view"])
    map_file = Path(options["map_file"]) if options["map_file"] else None
    if map_file:
        require_format(map_file)
    asked = {"where": options["where"], "threshold": options["threshold"]}
    with open_workspace(options["workspace"]) as opened, _progress(opened, options) as progress:
        effort = {"threads": options["threads"], "progress": progress}
        layout = Layout(options["layout"])
        for what, stays, leaves in options["decisions"]:
            decide(opened.catalog, stays, leaves, None if what == "forget" else Decision(what), leaves=leaves)
        version = opened.catalog.newest_version()
        model = choose_model(opened.settings, options["model"], options["base_url"])
        found = survey(opened, view, model, **asked, **effort)
        for what, stays, leaves in options["decisions"]:
            if what != "forget":
                _say_how_alike(found, opened.catalog.resolve(stays), opened.catalog.resolve(leaves))
        if options["judge"]:
            _judge(opened.path, found, options["judge"])
            found = survey(opened, view, model, **asked, **effort)
        measured = found.measured()
        if options["name_by"]:
            measured = _named(opened, measured, options["name_by"])
        comparison = compare_with(opened, found, Path(options["against"]), **effort) if options["against"] else None
        if map_file:
            _write_map(opened.path, map_file, found, measured, layout)
        if options["save"]:
            keep_concepts(opened.catalog, measured.concept_of())
        if options["keep"]:
            landscape = make_landscape(opened, found, where=options["where"], version=version, layout=layout)
            keep_landscape(opened.path, landscape)
        decided = {(found.a, found.b): found.decision for found in opened.catalog.decisions()}
    if options["as_json"]:
        said = document(measured, view, model)
        for pair in said["near_duplicates"]:
            pair["decision"] = decided.get(tuple(sorted((pair["a"], pair["b"]))))
        print_json(said | {"missing": found.lacking, "calibration": found.calibration, "against": comparison})
    else:
        _print(measured, view.value, found.lacking, decided)
        if comparison:
            _print_comparison(comparison, options["against"])


def _say_how_alike(found: Survey, a: str, b: str) -> None:
    """Say it where two environments that somebody decided about are no near-duplicates: a name may be mistyped."""
    from curation.diversity import NEAR_DUPLICATE

    place = {item.name: number for number, item in enumerate(found.items)}
    if a in place and b in place:
        similarity = float(found.vectors[place[a]] @ found.vectors[place[b]])
        if similarity < NEAR_DUPLICATE:
            say(f"{a} and {b} are no near-duplicates (similarity {similarity:.2f}); the decision is kept all the same.")


@contextmanager
def _progress(opened: Workspace, options: Mapping[str, Any]) -> Generator[Callable[[int, int], None]]:
    """How to tell how far it is: on the terminal, and as a run where the studio is to see it."""
    if not options["keep"]:
        yield counted("embedded")
        return
    asked = {key: options[key] for key in ("view", "where", "model", "threshold", "layout") if options[key]}
    with watched(opened, "diversity", asked, "embedded") as (_, progress):
        yield progress


def _named(opened: Workspace, measured: Diversity, model: str) -> Diversity:
    from curation.naming import named_by_model
    from pipeline.llm.profiles import choose
    from pipeline.llm.replies import FILE_NAME, Replies

    profile = choose(opened.settings.profiles, None, model=model)
    return named_by_model(measured, profile, Replies(opened.path / FILE_NAME))


def _judge(workspace: Path, found: Survey, count: int) -> None:
    from curation.calibration import add_judgement, pairs_to_judge, read_judgements

    texts = {item.name: item.text for item in found.items}
    pairs = pairs_to_judge(found.vectors, list(texts), read_judgements(workspace), count)
    for number, (a, b, similarity) in enumerate(pairs, 1):
        say(f"\n{number} of {len(pairs)}, similarity {similarity:.2f}")
        for name in (a, b):
            say(f"  {name}: {' '.join(texts[name].split())[:300]}")
        answer = click.prompt("The same concept? y, n, s to skip, q to stop", type=click.Choice([*"ynsq"]), err=True)
        if answer == "q":
            break
        if answer in "yn":
            add_judgement(workspace, a, b, answer == "y")


def _write_map(workspace: Path, path: Path, found: Survey, measured: Diversity, layout: Layout) -> None:
    from curation.diversity import vector_cache
    from curation.map_files import write_map
    from curation.maps import coordinates

    with vector_cache(workspace) as cache:
        points = coordinates(found.vectors, layout, cache)
    write_map(
        path,
        points,
        [item.name for item in found.items],
        measured.labels,
        concepts=measured.names,
        title=f"{number_of(len(measured.items), 'environment')}, {number_of(measured.concepts, 'concept')} at "
        f"{measured.threshold:g}",
    )
    say(f"Map: {path}")


def _print(measured: Diversity, view: str, lacking: Sequence[str], decided: Mapping[tuple[str, str], str]) -> None:
    pairs = measured.duplicate_pairs
    print_table(
        ["", ""],
        [
            ("environments", len(measured.items)),
            (f"concepts at {measured.threshold:g}", measured.concepts),
            ("effective concepts (Hill 1, 2)", f"{measured.hill[1]:.1f}, {measured.hill[2]:.1f}"),
            ("at least, in the whole (Chao1, 95 %)", _interval(measured)),
            ("chance that the next is a new concept", f"{1 - measured.coverage:.0%}"),
            (f"Vendi score, view {view}", f"{measured.vendi:.1f}"),
            ("near-duplicate pairs", pairs),
            ("agreement with known domains (ARI)", _figure(measured.ari_vs_known)),
        ],
    )
    print_table(["threshold", "concepts"], [(f"{at:.2f}", count) for at, count in measured.curve])
    sizes = [measured.labels.count(concept) for concept in range(measured.concepts)]
    rows = list(zip(range(measured.concepts), sizes, measured.names, strict=True))
    print_table(["concept", "environments", "about"], rows[:SHOWN])
    if len(rows) > SHOWN:
        say(f"… and {number_of(len(rows) - SHOWN, 'more concept')}; --json has all.")
    for key in sorted({key for item in measured.items for key in item.groups}):
        groups = measured.groups(key)
        say(f"{len(groups)} by {key}: {number_of(sum(group.items for group in groups), 'environment')}")
        shown = [(group.value, group.items, group.concepts, group.own) for group in groups[:SHOWN]]
        print_table([key, "environments", "concepts", "only here"], shown)
    if pairs:
        names = [item.name for item in measured.items]
        alike = [(*sorted((names[p.a], names[p.b])), f"{p.similarity:.2f}") for p in measured.duplicates[:SHOWN]]
        shown = [(a, b, similarity, decided.get((a, b))) for a, b, similarity in alike]
        print_table(["near-duplicate", "of", "similarity", "decision"], shown)
    if lacking:
        have = "has" if len(lacking) == 1 else "have"
        names = ", ".join(lacking[:5]) + (" …" if len(lacking) > 5 else "")
        say(f"{number_of(len(lacking), 'environment')} {have} nothing to compare in this view: {names}")


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _interval(measured: Diversity) -> str:
    found = measured.chao1
    return f"{found.estimate:.0f} ({found.low:.0f}–{found.high:.0f})"


def _print_comparison(comparison: Comparison, other: str) -> None:
    print_table(
        ["concepts", f"here and in {other}"],
        [
            ("here", comparison.here),
            ("there", comparison.there),
            ("in both", comparison.shared),
            ("only here", comparison.only_here),
            ("only there", comparison.only_there),
            (
                "Vendi here, there, together",
                f"{comparison.vendi_here:.1f}, {comparison.vendi_there:.1f}, {comparison.vendi_union:.1f}",
            ),
        ],
    )
    print_table(["here", "nearest there", "similarity"], [(a, b, f"{s:.2f}") for a, b, s in comparison.nearest])
