"""What several commands share: options, the workspace of an invocation, and how facts are printed."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from pipeline.words import number_of, whole_number

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from pipeline.model import Environment
    from pipeline.run_record import RunRecord
    from pipeline.workspace import Workspace

F = TypeVar("F", bound=Callable[..., Any])


def workspace_option(command: F) -> F:
    """`--workspace DIR`, accepted before and after the verb."""
    return click.option(
        "--workspace",
        "-w",
        metavar="DIR",  # $AWM_WORKSPACE is read where the workspace is looked for, so that an option beats it
        help="The workspace folder [default: $AWM_WORKSPACE, ./awm-workspace, or the user's data folder].",
    )(command)


def json_option(command: F) -> F:
    """`--json`, passed to the command as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")(
        command
    )


class Finite(click.FloatRange):
    """A number in a range. `nan`, which every range lets through, and `inf` are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def window_of(text: str | None) -> int | None:
    """The turns that stay in view, of `--window N|all`; None for all. Raises BadParameter for anything else."""
    number = whole_number(text or "")
    if number is None and text != "all":
        raise click.BadParameter(f"{text!r} is neither a number nor all.", param_hint="--window")
    return number


class Moment(click.ParamType):
    """A time in ISO 8601; UTC where it does not say."""

    name = "ISO"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time, with its zone."""
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time in ISO 8601, such as 2026-01-01T12:00:00Z.", param, ctx)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def now_option(command: F) -> F:
    """`--now ISO`, passed to the command as a time with a zone, or None."""
    return click.option("--now", type=Moment(), help="The time inside [default: the environment's own].")(command)


def open_workspace(workspace: str | None, *, create: bool = False) -> Workspace:
    """Open the workspace of this invocation: the verb's `--workspace`, else the group's, else the default place.

    Raises UserError where there is none (unless `create`), it is not one, or it cannot be opened.
    """
    from pipeline.workspace import Workspace

    return Workspace.open(chosen_workspace(workspace), create=create)


def chosen_workspace(workspace: str | None) -> str | None:
    """What this invocation says of the workspace: the verb's `--workspace`, else the group's, else nothing."""
    context = click.get_current_context(silent=True)
    while workspace is None and context is not None:
        workspace = context.params.get("workspace")
        context = context.parent
    return workspace


def print_json(document: Any) -> None:
    """Print one JSON document on stdout (UTF-8, indented, keys in the order given)."""
    import json

    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_APPEND_NEWLINE
    try:
        text = orjson.dumps(document, default=str, option=options)
    except TypeError:  # an integer of more than 64 bits or a lone surrogate: JSON, but not orjson's
        text = json.dumps(document, default=str, indent=2).encode() + b"\n"
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]], *, title: str | None = None) -> None:
    """Print a plain table on stdout, cells as text without markup; None is blank.

    A terminal's width folds long cells; elsewhere a row is a line, however long, for grep and the like.
    """
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    headers = (Column(name, overflow="fold") for name in columns)
    table = Table(*headers, box=None, header_style="bold", pad_edge=False)
    terminal = sys.stdout.isatty()
    for row in rows:
        cells = ("" if cell is None else visible(str(cell)) for cell in row)
        table.add_row(*(Text(cell if terminal else " ".join(cell.split("\n"))) for cell in cells))
    console = Console(width=None if terminal else 100_000)
    with console.capture() as printed:
        if title:
            console.print(Text(visible(title), style="bold"))
        console.print(table)
    text = printed.get()
    click.echo(text if terminal else "\n".join(line.rstrip() for line in text.splitlines()), nl=not terminal)


def visible(text: str) -> str:
    """Text from elsewhere, safe for a terminal: control characters other than newline and tab become pictures."""
    return text.translate(_PICTURES)


_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"} | dict.fromkeys(
    range(0x7F, 0xA0), "\N{REPLACEMENT CHARACTER}"
)


def require_task(env: Environment, task: int) -> None:
    """Raises UserError where an environment that has tasks has none of this number."""
    from pipeline.errors import UserError

    if env.tasks and task >= len(env.tasks):
        raise UserError(f"{env.name} has no task {task}; it has tasks 0 to {len(env.tasks) - 1}.")


def chosen_environments(catalog: Catalog, names: Sequence[str], *, everything: bool, verb: str) -> list[str]:
    """The environments that a command was given by name, or all of the workspace.

    Raises UserError where both or neither are asked for, one is not there, or there are none.
    """
    from pipeline.errors import UserError

    if everything == bool(names):
        raise UserError(f"name the environments to {verb}, or pass --all")
    found = list(dict.fromkeys(catalog.resolve(name) for name in names)) if names else catalog.names()
    if not found:
        raise UserError("the workspace holds no environments: import some first (awm-studio import DIR)")
    return found


def say_stopping(begun: int) -> None:
    """Say that work on environments stops after those that are begun."""
    say(f"Stopping: what was begun ({number_of(begun, 'environment')}) is finished; Ctrl-C again stops at once.")


def say(message: str) -> None:
    """Print progress or a remark on stderr."""
    click.echo(message, err=True)


@contextmanager
def watched(
    opened: Workspace, kind: str, asked: Mapping[str, Any], what: str
) -> Generator[tuple[RunRecord, Callable[[int, int], None]]]:
    """Record what happens within the block as a run; gives the record, and a progress callback that tells both the
    terminal (as `counted` does) and whoever watches the run."""
    from pipeline.run_record import recorded

    with recorded(opened.catalog, kind, asked) as record:
        show = counted(what)

        def progress(done: int, total: int) -> None:
            show(done, total)
            record.progress(done, total)

        yield record, progress


def counted(what: str) -> Callable[[int, int], None]:
    """A progress callback that shows "WHAT 3 of 10" in one line on stderr, where that is a terminal."""

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"{what} {done:,} of {total:,}", err=True, nl=False)
            click.echo("\n" if done == total else "\r", err=True, nl=False)

    return show
