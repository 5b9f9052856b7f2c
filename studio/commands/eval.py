"""`awm-studio eval`: suites are its subcommands, each imported only when it runs."""

from __future__ import annotations

import importlib

import rich_click as click

SUBCOMMANDS: dict[str, str] = {
    "heldout": "eval_heldout",
    "bfcl": "eval_harness",
    "tau2": "eval_harness",
    "mcp-universe": "eval_harness",
    "harnesses": "eval_harness",
    "published": "eval_harness",
    "compare": "eval_report",
    "report": "eval_report",
}
"""Every subcommand and its module in `studio.commands`, where `x-y` is `x_y_command`."""


class Suites(click.RichGroup):
    """A group that finds its subcommands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All subcommands, in their order here."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a subcommand, or None if there is none of that name."""
        if cmd_name not in SUBCOMMANDS:
            return None
        module = importlib.import_module(f"studio.commands.{SUBCOMMANDS[cmd_name]}")
        return getattr(module, f"{cmd_name.replace('-', '_')}_command")


@click.group("eval", cls=Suites)
def eval_command() -> None:
    """Find out how good a model is, and whether training helped.

    Every figure says on how many tasks it rests. What the environment or the model's server failed is counted apart
    and never as the model's failure; an evaluation that could not run has no score.

    Examples:

        awm-studio eval heldout --subset mix-v1 --model Qwen/Qwen3-4B --base-url http://localhost:8000/v1 --tries 4

        awm-studio eval compare 12 15

        awm-studio eval report 12 --out report.html
    """
