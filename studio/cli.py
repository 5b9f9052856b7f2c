"""The `awm-studio` command: one verb a command, each imported only when it runs."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import rich_click as click

from pipeline.errors import UserError
from studio.commands.options import workspace_option

SECTIONS: dict[str, tuple[str, ...]] = {
    "Make and bring in": ("synth", "run", "blueprint", "import"),
    "Look": ("list", "show", "datasette", "diff"),
    "Run": ("tools", "call", "solution", "snapshot", "verify", "serve"),
    "Judge and pick": ("check", "audit", "review", "fix", "diversity", "subset", "export"),
    "Train": ("rollout", "trajectory", "train", "eval", "ablate", "proxy"),
    "This machine": ("doctor", "config", "bench"),
}
"""Every verb, by the section of `--help` it is shown in. Verb `x-y` is `x_y_command` in `studio/commands/x_y.py`
(`import` lives in `import_.py`). Those modules import nothing heavy at the top, which keeps `--help` quick."""

click.rich_click.COMMAND_GROUPS = {
    "awm-studio": [{"name": name, "commands": list(verbs)} for name, verbs in SECTIONS.items()]
}
click.rich_click.TEXT_MARKUP = "markdown"
click.rich_click.SHOW_ARGUMENTS = True
click.rich_click.MAX_WIDTH = 110


class LazyGroup(click.RichGroup):
    """A click group that finds its commands in `studio.commands` by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs in the order of `SECTIONS`."""
        return [verb for verbs in SECTIONS.values() for verb in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command for a verb, or None if there is no such verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        word = cmd_name.replace("-", "_")
        module = importlib.import_module(f"studio.commands.{'import_' if word == 'import' else word}")
        return getattr(module, f"{word}_command")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="awm-studio", prog_name="awm-studio")
@workspace_option
@click.option("--web", is_flag=True, help="Show the studio in a browser of this machine (it has no password).")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port of --web [default: a free one].")
@click.pass_context
def awm_studio(ctx: click.Context, workspace: str | None, web: bool, port: int) -> None:
    """Synthesize, inspect, audit and train on executable tool-use environments.

    Without a command this opens the studio on the workspace; without a terminal it prints what the workspace
    holds.
    """
    if ctx.invoked_subcommand is not None:
        return
    if web:
        from studio.web import serve_studio

        serve_studio(workspace, port)
    elif at_a_terminal():
        from studio.app import open_studio

        sys.exit(open_studio(workspace))
    else:
        from studio.commands.summary import print_summary

        print_summary(workspace)


def at_a_terminal() -> bool:
    """Whether a person can see and steer the studio: on a terminal, or through `--web`, which names a driver."""
    return "TEXTUAL_DRIVER" in os.environ or (sys.stdin.isatty() and sys.stdout.isatty())


def way_on(arguments: Sequence[str]) -> str:
    """What to type to go on with a command that was interrupted."""
    command: click.Command | None = awm_studio
    verbs: list[str] = []
    for word in arguments:
        if not isinstance(command, click.Group):
            break
        inside = command.get_command(click.Context(command), word)
        if inside is not None:
            command, verbs = inside, [*verbs, word]
    if command is not None and any("--resume" in option.opts for option in command.params):
        return f"awm-studio {' '.join(verbs)} --resume goes on (--help says with what)"
    return "run the same command to go on"


def main() -> None:
    """Run the command line.

    Exit codes: 0 done; 1 done, and what was asked about failed; 2 could not be done; 130 interrupted.
    """
    try:
        code = awm_studio.main(prog_name="awm-studio", standalone_mode=False)
    except UserError as error:
        click.echo(f"awm-studio: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__context__, EOFError):
            click.echo("awm-studio: this asks you something, and nobody answers: run it in a terminal.", err=True)
            sys.exit(2)
        click.echo(f"awm-studio: interrupted; what was done is kept, {way_on(sys.argv[1:])}.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader (head, less) has gone: nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.filename is None:  # of no file: a fault of the product, to be seen whole
            raise
        click.echo(f"awm-studio: {error.filename} cannot be used: {error.strerror}.", err=True)
        sys.exit(2)
    if isinstance(code, int):  # a command that ended by ctx.exit
        sys.exit(code)


if __name__ == "__main__":
    main()
