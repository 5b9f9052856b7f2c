"""`awm-studio call`."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import rich_click as click

from studio.commands.options import (
    json_option,
    now_option,
    open_workspace,
    print_json,
    say,
    visible,
    workspace_option,
)

AROUND = 20
"""Characters of malformed JSON shown on each side of the place where it goes wrong."""


@click.command("call")
@click.argument("environment", metavar="ENV")
@click.argument("tool", metavar="TOOL")
@click.option(
    "--args",
    "arguments",
    metavar="JSON",
    default="{}",
    show_default=True,
    help="The arguments: a JSON object, `@FILE` to read it from a file, or `-` from stdin.",
)
@click.option(
    "--from",
    "start",
    metavar="FILE.db",
    type=click.Path(path_type=Path),
    help="Start from this database, for example one saved before [default: a fresh one].",
)
@click.option("--save", metavar="FILE.db", type=click.Path(path_type=Path), help="Keep the database after the call.")
@now_option
@workspace_option
@json_option
def call_command(
    *,
    environment: str,
    tool: str,
    arguments: str,
    start: Path | None,
    save: Path | None,
    now: datetime | None,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Call one tool of an environment and show what it returned and what it changed.

    Each time on a fresh instance at the same moment, so the same call gives the same result. Exits with 1 when the
    call was not ok.

    Examples:

        awm-studio call gofundme fetch_my_donation_history

        awm-studio call gofundme create_campaign --args @campaign.json --save after.db

        awm-studio call gofundme create_campaign_payout_to_default --args '{"campaign_id": 101, "amount_usd": 50}'
    """
    from pipeline.runtime.diff import diff
    from pipeline.runtime.host import Host
    from pipeline.sqlite_files import read_database, require_database_place, write_database
    from studio.commands.diff import print_changes

    given = read_arguments(arguments)
    begin = read_database(start) if start is not None else None
    if save is not None:
        require_database_place(save)
    with open_workspace(workspace) as opened:
        env = opened.catalog.environment(environment)
        with Host.from_settings(opened.settings) as host, host.program(env, now=now) as program:
            _require(tool, [known.name for known in program.tools], program.name)
            with program.instance() as instance:
                if begin is not None:
                    instance.restore(begin)
                before = instance.snapshot()
                reply = instance.call(tool, given)
                after = instance.snapshot()
    if save is not None:
        write_database(save, after)
    changes = diff(before, after)
    error = reply.error
    if as_json:
        print_json(
            {
                "ok": reply.ok,
                "status": reply.status,
                "body": reply.body,
                "error": error and {"kind": error.kind, "message": error.message, "detail": error.detail},
                "ms": round(reply.ms, 3),
                "diff": changes,
            }
        )
    else:
        click.echo(visible(reply.text))
        if error:
            say(visible(f"{error.kind}: {error.message}"))
        print_changes(changes)
        if not changes:
            say("Nothing changed in the database.")
    if not reply.ok:
        sys.exit(1)


def read_arguments(text: str) -> dict[str, Any]:
    """The JSON object that `--args` gives, names (`@FILE`) or leaves to stdin (`-`).

    Raises UserError that says where it goes wrong.
    """
    from pipeline.errors import UserError

    source = "--args"
    try:
        if text == "-":
            source, text = "stdin", sys.stdin.read()
        elif text.startswith("@"):
            source = text[1:]
            text = Path(source).read_text("utf-8-sig")
        arguments = json.loads(text)
    except OSError as error:
        raise UserError(f"{source} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise UserError(f"{source} is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - AROUND) : error.pos] + "⟨here⟩" + text[error.pos : error.pos + AROUND]
        raise UserError(
            f"{source} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}: {near}"
        ) from None
    except RecursionError:
        raise UserError(f"{source} is nested too deeply.") from None
    if not isinstance(arguments, dict):
        raise UserError(f'{source} is not a JSON object; arguments are given by name, such as {{"id": 3}}.')
    return arguments


def _require(tool: str, known: list[str], environment: str) -> None:
    import difflib

    from pipeline.errors import UserError

    if tool in known:
        return
    close = difflib.get_close_matches(tool, known, n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"awm-studio tools {environment} lists them."
    raise UserError(f"{environment} has no tool {tool!r}. {hint}")
