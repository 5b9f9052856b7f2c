"""`awm-studio review`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from pipeline.words import number_of
from studio.commands.options import json_option, open_workspace, print_json, print_table, say, workspace_option

if TYPE_CHECKING:
    from curation.review import Entry


@click.command("review")
@click.argument("names", metavar="[ENV…]", nargs=-1)
@click.option("--decided", is_flag=True, help="Also what somebody has decided already.")
@click.option("--item", metavar="KEY", help="The item to decide about, by its key or the beginning of it.")
@click.option(
    "--decide",
    "decision",
    type=click.Choice(["accept", "waive", "fix", "drop", "reopen"]),
    help="accept: no fault; waive: a fault that does not matter, with --reason; fix: to be put right; drop: leave the "
    "environment out; reopen: take the decision back.",
)
@click.option("--reason", default="", metavar="TEXT", help="Why; a waiver needs one.")
@click.option("--reviewer", metavar="NAME", help="Who decides [default: your user name].")
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the queue and all decisions to a file: JSON where the name ends in .json, else CSV.",
)
@workspace_option
@json_option
def review_command(
    *,
    names: tuple[str, ...],
    decided: bool,
    item: str | None,
    decision: str | None,
    reason: str,
    reviewer: str | None,
    export: Path | None,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Show what checks and audits leave to a person, and keep what is decided.

    Items are errors and warnings of the last checks and verifiers that are not trusted. A finding that is accepted or
    waived does not count any more; an environment that is dropped is left out of subsets. A decision is about what
    was seen: if another check finds something else there, that is a new item.

    Examples:

        awm-studio review

        awm-studio review gofundme --item 14ef1d --decide waive --reason "only its read tasks are used"

        awm-studio review --export review.csv
    """
    from curation.review import Decision, decide, queue
    from curation.review_export import export_reviews
    from pipeline.errors import UserError
    from pipeline.sqlite_files import require_place
    from studio.person import person

    if (item is None) != (decision is None):
        raise UserError("Name what to decide about and how: --item KEY --decide accept, waive, fix, drop or reopen.")
    if export is not None:
        require_place(export)
    opened = open_workspace(workspace)
    catalog = opened.catalog
    wanted = list(dict.fromkeys(catalog.resolve(name) for name in names)) or None
    if item is not None:
        if wanted is None or len(wanted) != 1:
            raise UserError("Name the one environment that the item is of.")
        about = decide(catalog, wanted[0], item, Decision(decision), reviewer=reviewer or person().name, reason=reason)
        say(f"{about.environment}, {about.code} at {about.where}: {decision}")
    if export is not None:
        say(f"{number_of(export_reviews(catalog, export), 'row')} in {export}")
    found = queue(catalog, wanted)
    shown = [entry for entry in found if decided or entry.is_open]
    still_open = sum(entry.is_open for entry in found)
    if as_json:
        totals = {"open": still_open, "decided": len(found) - still_open}
        print_json({"items": [entry.document() for entry in shown], "summary": totals})
        return
    if export is None and item is None:
        print_queue(shown)
    say(f"{number_of(still_open, 'item')} to decide about, {len(found) - still_open} decided")


def print_queue(entries: list[Entry]) -> None:
    """Print items, a line each."""
    print_table(
        ["item", "environment", "", "what", "where", "message", "decision", "by"],
        [
            (e.item.key, e.item.environment, e.item.severity, e.item.code, e.item.where, e.item.message, e.decision,
             e.review and e.review.reviewer)
            for e in entries
        ],
    )  # fmt: skip
