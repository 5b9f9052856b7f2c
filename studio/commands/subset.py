"""`awm-studio subset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from pipeline.words import number_of, whole_number
from studio.commands.options import (
    Finite,
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    watched,
    workspace_option,
)

if TYPE_CHECKING:
    from pipeline.records import StoredSubset
    from pipeline.workspace import Workspace


@click.command()
@click.argument("name", required=False)
@click.option("--budget", type=click.IntRange(1), metavar="N", help="How many environments, the test split included.")
@click.option("--all", "take_all", is_flag=True, help="All environments instead of a budget.")
@click.option("--where", default="", metavar="EXPR", help='What may be picked, like "check:pass tools>5".')
@click.option(
    "--cover",
    type=click.Choice(["scenario", "tasks", "schema", "tools", "all"]),
    default="all",
    show_default=True,
    help="The view in which the picked should stand for the rest.",
)
@click.option(
    "--method",
    type=click.Choice(["facility", "centre", "stratified", "random", "all"]),
    default="facility",
    show_default=True,
    help="facility: every environment has one like it; centre: none is far from one; stratified: by concept.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="What chance decides, it decides by this.")
@click.option("--tasks-each", type=click.IntRange(1), metavar="N", help="At most N tasks an environment.")
@click.option("--distinct", type=Finite(0, 1), metavar="SIMILARITY", help="Of any two this similar take only one.")
@click.option(
    "--held-out",
    type=Finite(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Keep whole concepts with this share of the environments for a test split.",
)
@click.option("--series", metavar="N,N,…", default="", help="Sizes of nested training subsets to describe.")
@click.option(
    "--rates", type=click.Path(dir_okay=False), help="Solve rates as JSON lines (environment, task, rate), to balance."
)
@click.option("--threshold", type=Finite(0, 1), help="As for diversity.")
@click.option("--model", metavar="NAME", help="As for diversity.")
@click.option("--replace", is_flag=True, help="Make it again where the name is taken.")
@json_option
@workspace_option
@click.pass_context
def subset_command(context: click.Context, name: str | None, **options: Any) -> None:
    """Pick the environments worth training on, and keep them under a name.

    With a budget (or --all) a subset is made; with a name alone its card is shown; with nothing all subsets are
    listed. Tasks without a verifier, and those that a check found blocked, are left out. Environments are picked in
    an order whose every prefix is a good subset, so smaller sizes nest in larger ones.

    Examples:

        awm-studio subset mix-v1 --budget 526 --where "check:pass" --seed 3

        awm-studio subset mix-v2 --budget 1000 --held-out 0.1 --series 10,100,526

        awm-studio subset mix-v1 --json
    """
    making = options["budget"] is not None or options["take_all"]
    if making and name is None:
        raise click.UsageError("Give the subset a name.")
    if options["budget"] is not None and options["take_all"]:
        raise click.UsageError("Give a budget or --all, not both.")
    if not making and (given := _given(context) - {"name", "workspace", "as_json"}):
        names = ", ".join("--" + option.replace("_", "-") for option in sorted(given))
        raise click.UsageError(f"To make a subset ({names}), say how many environments: --budget N, or --all.")
    with open_workspace(options["workspace"]) as opened:
        if making and name is not None:
            card = _make(opened, name, options)
        elif name is not None:
            card = opened.catalog.subset(name)["card"]
        else:
            _list(opened.catalog.subsets(), as_json=options["as_json"])
            return
    if options["as_json"]:
        print_json(card)
    else:
        _print(card)


def _make(opened: Workspace, name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    from dataclasses import asdict
    from pathlib import Path

    from curation.extras import require

    require("concepts", "Picking a subset")
    from curation.extras import BUNDLED
    from curation.making import make_subset, require_possible
    from curation.picking import read_rates
    from curation.subset import Method, Recipe
    from curation.views import View

    recipe = Recipe(
        name=name,
        budget=options["budget"],
        where=options["where"],
        method=Method(options["method"]),
        cover=View(options["cover"]),
        model=options["model"] or BUNDLED,
        threshold=options["threshold"],
        tasks_each=options["tasks_each"],
        distinct=options["distinct"],
        held_out=options["held_out"],
        series=_sizes(options["series"]),
        seed=options["seed"],
    )
    rates = read_rates(Path(options["rates"])) if options["rates"] else {}
    require_possible(opened, recipe, replace=options["replace"])
    asked = {key: value for key, value in asdict(recipe).items() if value}
    with watched(opened, "subset", asked, "embedded") as (record, progress):
        subset = make_subset(opened, recipe, rates, replace=options["replace"], progress=progress)
        record.result = {key: subset.card[key] for key in ("environments", "tasks", "concepts", "coverage")}
    there = subset.card["environments"]["of"]
    if (recipe.budget or 0) > there:
        say(f"The budget is {recipe.budget:,}, and only {number_of(there, 'environment')} can be picked: all are.")
    training = subset.card["environments"]["train"]
    if over := [size for size in recipe.series if size > training]:
        sizes = ", ".join(f"{size:,}" for size in over)
        say(f"Only {number_of(training, 'environment')} are trained on: of the series, {sizes} cannot be had.")
    return subset.card


def _given(context: click.Context) -> set[str]:
    """The parameters that stand on the command line, rather than being left at their defaults."""
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _sizes(text: str) -> tuple[int, ...]:
    sizes = [whole_number(size.strip()) for size in text.split(",") if size.strip()]
    if not all(sizes):
        raise click.BadParameter(f"{text!r} is not a list of sizes like 10,100,526.", param_hint="--series")
    return tuple(sorted({size for size in sizes if size}))


def _list(stored: Sequence[StoredSubset], *, as_json: bool) -> None:
    if as_json:
        print_json({"subsets": [subset.card for subset in stored]})
        return
    print_table(
        ["subset", "environments", "tasks", "concepts", "test", "made"],
        [
            (
                subset.name,
                subset.card["environments"]["train"],
                subset.card["tasks"]["train"],
                subset.card["concepts"]["train"],
                subset.card["environments"]["test"],
                f"{subset.created_at:%Y-%m-%d %H:%M}",
            )
            for subset in stored
        ],
    )


def _print(card: Mapping[str, Any]) -> None:
    # A subset that was cut from another, as ablations do, was not measured against what it was picked from.
    counts = [(key, card[key]) for key in ("environments", "tasks", "concepts")]
    print_table(
        [card["name"], "train", "test", "of"],
        [(key, found["train"], found["test"], found.get("of")) for key, found in counts],
    )
    measured = []
    if vendi := card.get("vendi"):
        measured = [
            ("coverage", f"{card['coverage']:.3f}"),
            ("Vendi score", f"{vendi['train']:.1f} of {vendi['of']:.1f}, view {vendi['view']}"),
        ]
    shares = ("checks", "audit", "difficulty", "licences", "made_by", "left_out_tasks")
    print_table(
        ["", ""],
        [
            *measured,
            *(
                (key.replace("_", " "), ", ".join(f"{k} {n}" for k, n in card[key].items()) or "–")
                for key in shares
                if key in card
            ),
            ("digest", card["digest"]),
        ],
    )
    if card.get("series"):
        keys = ("size", "environments", "tasks", "concepts", "coverage")
        print_table(keys, [[row[key] for key in keys[:4]] + [f"{row['coverage']:.3f}"] for row in card["series"]])
