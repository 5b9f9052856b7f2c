"""`awm-studio datasette`."""

from __future__ import annotations

import sys
from contextlib import suppress

import rich_click as click

from studio.commands.options import json_option, open_workspace, print_json, say, workspace_option


@click.command("datasette")
@click.argument("environments", nargs=-1, metavar="[ENV]...")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1 [default: a free one]."
)
@click.option(
    "--open/--no-open",
    "open_page",
    default=None,
    help="Open the page in a browser [default: if there is a terminal and a desktop].",
)
@click.option("--download", is_flag=True, help="Let people download whole database files.")
@workspace_option
@json_option
def datasette_command(
    *,
    environments: tuple[str, ...],
    port: int,
    open_page: bool | None,
    download: bool,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Browse the environments' initial databases in Datasette, read only, until Ctrl-C.

    Without ENV all environments of the workspace are listed; each database is built when its page is first opened.
    It listens on 127.0.0.1 only and has no password.

    Examples:

        awm-studio datasette

        awm-studio datasette gofundme --port 8001 --no-open
    """
    from pipeline.runtime.host import Host
    from pipeline.snapshots import snapshot_file
    from studio.browser import has_browser, tunnel_command
    from studio.datasette import DatasetteServer
    from studio.environment_pages import EnvironmentPages

    with open_workspace(workspace) as opened, Host.from_settings(opened.settings) as host:
        names = [opened.catalog.resolve(name) for name in environments]
        pages = EnvironmentPages(opened.catalog, lambda env: snapshot_file(opened, env, host), names)
        with DatasetteServer(pages, port=port, downloads=download, log=opened.logs / "datasette.log") as server:
            if as_json:
                print_json({"url": server.url(), "environments": {name: server.url(name) for name in names}})
            else:
                for name in names or [None]:
                    click.echo(server.url(name))
            if tunnel := tunnel_command(server.port):
                say(f"From your own machine: {tunnel}")
            if open_page if open_page is not None else sys.stdout.isatty() and has_browser():
                click.launch(server.url(names[0] if len(names) == 1 else None))
            with suppress(KeyboardInterrupt):
                server.wait()
