"""A synthesis with a model from the command line: set up, confirmed, worked on or handed over, shown as it goes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rich_click as click

from pipeline.errors import UserError
from pipeline.model import STAGES
from studio.commands.options import print_json, print_table, say

if TYPE_CHECKING:
    from pipeline.engine.board import Board
    from pipeline.engine.config import Config
    from pipeline.engine.engine import Engine
    from pipeline.llm.client import Client
    from pipeline.llm.profiles import Profile
    from pipeline.nearness import Nearness
    from pipeline.records import Run
    from pipeline.workspace import Workspace

TOKENS_A_STAGE = {
    "scenario": (400, 250),
    "tasks": (600, 600),
    "database": (8_000, 14_000),
    "interface": (25_000, 26_000),
    "verification": (260_000, 24_000),
}
"""Tokens (in, out) that an environment of the paper's size takes by stage, with one correction in two: what five real
environments' artifacts come to with these prompts, at 4 characters a token. For the estimate before a run only."""

SHOWN = 24
"""How many scenarios are shown at once; `--json` and `run show` have all."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for on the command line."""

    count: int
    seed: int = 0
    seeds: str | None = None
    model: str | None = None
    base_url: str | None = None
    gates: tuple[str, ...] = ()
    budget: float | None = None
    nearness: str = "auto"
    hint: str = ""
    replay: bool = False


def set_up(opened: Workspace, wanted: Wanted) -> Run:
    """Record the run that is wanted. Raises UserError where no model is set up or something is unknown."""
    from pipeline.engine.config import Config
    from pipeline.engine.start import create
    from pipeline.llm.profiles import choose
    from pipeline.stages.scenario import read_seeds

    settings = opened.settings
    profiles = {
        stage: choose(
            settings.profiles,
            None if wanted.model else settings.stages.get(stage),
            model=wanted.model,
            base_url=wanted.base_url,
        )
        for stage in STAGES
    }
    nearness = chosen_nearness(wanted.nearness, embeds="embedding" in settings.stages)
    asked = [*profiles.values(), *([_embedding_profile(opened)] if nearness == "endpoint" else [])]
    if wanted.budget and (unpriced := {profile.model for profile in asked if profile.prices is None}):
        raise UserError(
            f"A budget needs prices, and {', '.join(sorted(unpriced))} has none: add prices = {{ input = …, output = … "
            "} (US dollars a million tokens) to its profile in the settings (awm-studio config locate), or leave "
            "--budget out."
        )
    config = Config.model_validate(
        {
            "count": wanted.count,
            "models": profiles,
            "gates": read_gates(wanted.gates),
            "budget": wanted.budget,
            "seed": wanted.seed,
            "nearness": nearness,
            "hint": wanted.hint,
            "replay": wanted.replay,
        }
    )
    return create(opened, config, read_seeds(wanted.seeds))


def read_gates(texts: Sequence[str]) -> dict[str, str]:
    """Gates as written: STAGE, or STAGE:warn to hold only what has warnings. Raises UserError for other words."""
    gates = {}
    for text in texts:
        stage, _, kind = text.partition(":")
        if stage not in STAGES or kind not in ("", "all", "warn"):
            raise UserError(f"{text!r} is no gate: write STAGE or STAGE:warn, with a stage of {', '.join(STAGES)}.")
        gates[stage] = kind or "all"
    return gates


def estimated_usd(config: Config, count: int) -> float | None:
    """About what `count` environments cost, or None where a price is not known."""
    total = 0.0
    for stage, profile in config.models.items():
        if profile.prices is None:
            return None
        total += profile.prices.usd(*TOKENS_A_STAGE[stage]) * count
    return total


def confirm(run: Run) -> None:
    """Ask before money is spent. Raises click's Abort where the person does not want it."""
    from pipeline.engine.config import Config

    config = Config.model_validate(run.config)
    models = ", ".join(sorted({f"{p.model} at {p.base_url}" for p in config.models.values()}))
    usd = estimated_usd(config, config.count)
    cost = "their prices are not known" if usd is None else f"about ${usd:.2f}"
    limit = "" if config.budget is None else f", at most ${config.budget:g}"
    click.confirm(
        f"Make {config.count} environments with {models} ({cost}{limit})?", default=True, abort=True, err=True
    )


def work_in_foreground(opened: Workspace, run: Run, *, as_json: bool) -> int:
    """Work on a run here, showing how it stands, and print the summary. Returns the exit code."""
    from pipeline.engine.report import summary
    from pipeline.engine.start import work

    nearness = nearness_of(opened, run)
    with shown(live=not as_json and sys.stderr.isatty(), quiet=as_json) as watch:
        board = work(opened, run, nearness, watch=watch)
    document = summary(board, opened.catalog, run.id)
    if as_json:
        print_json(document)
    else:
        print_summary(document)
        say_what_waits(board, run.id)
    return 0 if board.state == "done" else 1


@contextmanager
def shown(*, live: bool, quiet: bool) -> Generator[Callable[[Engine], None]]:
    """Shows a board while an engine works: a live table on a terminal, a line a finished stage elsewhere."""
    if live:
        from rich.console import Console
        from rich.live import Live

        boards: list[Board] = []
        with Live(
            get_renderable=lambda: board_table(boards[0]) if boards else "",
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
        ):
            yield lambda engine: boards.append(engine.board)
        return

    def watch(engine: Engine) -> None:
        say(f"run {engine.run.id}: {engine.board.count} environments; {engine.nearness.notice or engine.nearness.name}")
        engine.listeners.append(lambda event: _say_event(engine.board, event))

    yield (lambda engine: None) if quiet else watch


def _say_event(board: Board, event: Any) -> None:
    if event.kind == "stage" and event.data["state"] in ("done", "failed", "waiting"):
        row = board.rows.get(event.scenario or "")
        who = f"{row.number:>4} {row.title}" if row else "     scenarios"
        why = f": {event.data['why']}" if event.data["why"] else ""
        say(f"{who} · {event.data['stage']} {event.data['state']}{why}")


def board_table(board: Board) -> Any:
    """The board as a table: scenarios × stages, those that move first, and the totals."""
    from rich.table import Table
    from rich.text import Text

    from pipeline.engine.board import GLYPHS, State

    counts = board.counts()
    done, priced = counts[State.done], any(profile.get("prices") for profile in board.models.values())
    limit = f" of ${board.budget:g}" if board.budget is not None else ""
    money = f"${board.spent:.2f}{limit}" if priced else "price not known"
    title = f"{done}/{board.count} done, {counts[State.failed]} failed, {counts[State.waiting]} waiting · {money}"
    table = Table("", "scenario", *STAGES, "tokens", "now", title=title, title_justify="left", box=None)
    order = {State.done: 2, State.failed: 1}
    rows = sorted(board.wanted, key=lambda row: (order.get(row.state, 0), row.number))[:SHOWN]
    for row in sorted(rows, key=lambda row: row.number):
        cells = []
        for cell in row.cells.values():
            again = f"·{cell.tries - len(cell.steps) + 1}" if cell.tries > len(cell.steps) else ""
            cells.append(f"{GLYPHS[cell.state]}{again}")
        now = "" if row.state is State.done else "paused" if row.paused else row.state.value
        table.add_row(str(row.number), Text(row.title[:40]), *cells, f"{row.tokens:,}", now)
    return table


def print_summary(document: dict[str, Any]) -> None:
    """The figures of a run: by environment, by stage, and the means that the paper reports."""
    keys = ("name", "state", "tables", "rows", "tools", "tasks", "lines", "tokens", "usd")
    print_table(("environment", *keys[1:]), ([each[key] for key in keys] for each in document["environments"][:SHOWN]))
    if len(document["environments"]) > SHOWN:
        say(f"… and {len(document['environments']) - SHOWN:,} more; awm-studio run show {document['run']} has all.")
    print_table(
        ["stage", "attempts", "first try", "final", "tokens", "usd", "seconds"],
        (
            [stage, f["attempts"], _percent(f["first_try"]), _percent(f["final"]), f["tokens"], f["usd"], f["seconds"]]
            for stage, f in document["stages"].items()
        ),
    )
    print_table(["on average", ""], document["means"].items())


def say_what_waits(board: Board, run: int) -> None:
    """Say what did not come to its end, why, and how to go on."""
    from pipeline.engine.board import State

    if board.source.state in (State.waiting, State.failed):
        say(f"scenarios: {board.source.why}")
    for row in board.wanted:
        cell = row.cells[row.stage]
        if cell.state in (State.waiting, State.failed):
            say(f"{row.title} · {row.stage} {cell.state}: {cell.why}")
    if board.state != "done":
        say(f"Go on with: awm-studio synth --resume --run {run} (what failed: awm-studio run retry {run}).")


def chosen_nearness(choice: str, *, embeds: bool) -> str:
    """The way to compare scenarios; "auto" is the best that is installed or set up. Raises UserError."""
    from curation import extras

    if choice == "auto":
        return "ngrams" if extras.missing("concepts") and not embeds else "endpoint" if embeds else "model"
    if choice == "model":
        extras.require("concepts", "Comparing scenarios by a sentence embedding model")
    if choice == "endpoint" and not embeds:
        raise UserError("No embedding model is named: set embedding = PROFILE under [stages] in the settings.")
    return choice


def nearness_of(opened: Workspace, run: Run) -> Callable[[Client], Nearness]:
    """How a run compares scenarios, made when its client exists."""
    from pipeline.engine.config import Config
    from pipeline.nearness import by_ngrams, by_vectors

    match Config.model_validate(run.config).nearness:
        case "model":
            return lambda _: by_vectors(
                "sentence embeddings", lambda texts: asyncio.to_thread(_embedded, opened, texts)
            )
        case "endpoint":
            profile = _embedding_profile(opened)
            return lambda client: by_vectors(profile.model, lambda texts: client.embed(texts, profile))
        case _:
            return lambda _: by_ngrams()


def _embedding_profile(opened: Workspace) -> Profile:
    from pipeline.llm.profiles import choose

    return choose(opened.settings.profiles, opened.settings.stages.get("embedding"))


def _embedded(opened: Workspace, texts: list[str]) -> list[list[float]]:
    from curation.diversity import vector_cache
    from curation.embeddings import embed

    cache = vector_cache(opened.path)
    try:
        return embed(texts, cache=cache).tolist()
    finally:
        cache.close()


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"
