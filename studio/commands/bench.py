"""`awm-studio bench`."""

from __future__ import annotations

import rich_click as click

from pipeline.words import number_of
from studio.commands.options import (
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    workspace_option,
)

ROWS = (
    ("load a program", "load_ms", "ms, wall"),
    ("build its database", "build_ms", "ms, wall"),
    ("new instance", "new_instance_us", "µs, CPU"),
    ("reset", "reset_us", "µs, CPU"),
    ("call, one instance", "call_us", "µs, CPU"),
    ("call, 256 instances in turn", "interleaved_call_us", "µs, CPU"),
    ("call made before (cache)", "cached_call_us", "µs, wall"),
    ("memory an instance", "memory_kb_per_instance", "KB"),
    ("instances alive at once", "instances_alive", ""),
    ("memory of all workers then", "workers_mb", "MB"),
)
RATIOS = (
    ("new instance, cheaper by", "new_instance"),
    ("reset, cheaper by", "reset"),
    ("call over MCP in a session of its own, cheaper by", "call"),
    ("call over MCP in an open session, cheaper by", "call_open_session"),
    ("call over plain HTTP, cheaper by", "call_plain_http"),
    ("memory, smaller by", "memory"),
)


@click.group()
def bench_command() -> None:
    """Measure on this machine what the product claims."""


@bench_command.command("runtime")
@click.argument("names", metavar="[ENV…]", nargs=-1)
@json_option
@workspace_option
def runtime_command(names: tuple[str, ...], as_json: bool, workspace: str | None) -> None:
    """Measure the runtime against one server process an instance, in one run.

    Takes the first five environments of the workspace unless you name some. The ratios are what to compare between
    machines; CPU times are of both sides, host and worker here, client and server there.

    Examples:

        awm-studio bench runtime

        awm-studio bench runtime gofundme --json
    """
    from pipeline.runtime.benchmark import measure

    catalog = open_workspace(workspace).catalog
    chosen = list(names) or catalog.names()[:5]
    figures = measure([catalog.environment(name) for name in chosen], say=say)
    if as_json:
        print_json(figures)
        return
    server, ratios = figures["server"], figures["ratios"]
    print_table(["measured here", "", ""], [(label, figures[key], unit) for label, key, unit in ROWS])
    click.echo()
    print_table(
        ["one server process an instance", "", ""],
        [
            ("start", server["start_cpu_ms"], "ms, CPU"),
            ("call over MCP in a session of its own", server["mcp_session_call_us"], "µs, CPU"),
            ("call over MCP in an open session", server["mcp_call_us"], "µs, CPU"),
            ("call over plain HTTP", server["http_call_us"], "µs, CPU"),
            ("memory", server["memory_kb"], "KB"),
            ("the SQL of a call by itself", figures["floor"]["sql_us"], "µs, CPU"),
        ],
    )
    click.echo()
    print_table(["ours against that", ""], [(label, f"{ratios[key]:,}×") for label, key in RATIOS])
    say(f"over {figures['calls']} calls of {number_of(len(figures['environments']), 'environment')}")
