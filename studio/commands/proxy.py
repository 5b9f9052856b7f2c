"""`awm-studio proxy`."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import rich_click as click

from studio.commands.options import Finite, json_option, open_workspace, print_json, say, window_of, workspace_option


@click.command("proxy")
@click.option("--upstream", metavar="URL", help="The model's OpenAI-compatible server [default: the profile's].")
@click.option("--model", metavar="M", help="The model's name, or a profile's [default: the settings' profiles].")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port on 127.0.0.1 [default: a free one].")
@click.option("--native", is_flag=True, help="Convert nothing: the server's own tool calling, sampled alike.")
@click.option("--window", default="10", show_default=True, metavar="W|all", help="Exchanges the model sees.")
@click.option("--parallel", type=click.Choice(["first", "all"]), default="first", show_default=True, help="Calls made.")
@click.option("--temperature", type=Finite(0), help="Of the model [default: 0.6].")
@click.option("--top-p", type=Finite(0, 1), help="Of the model [default: 0.95].")
@click.option("--top-k", type=click.IntRange(0), help="Of the model; 0: not sent [default: 20].")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="[default: proxy.jsonl in the logs]")
@json_option
@workspace_option
def proxy_command(
    *,
    upstream: str | None,
    model: str | None,
    port: int,
    native: bool,
    window: str,
    parallel: str,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None,
    log: Path | None,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Let a model that was trained on list_tools and call_tool work in harnesses that send native tools.

    An OpenAI-compatible server on 127.0.0.1 that converts both ways, until Ctrl-C. Harnesses take its address and any
    key: the real one is read from the environment and stays in here. Every call is in the log, one JSON line each.

    Examples:

        awm-studio proxy --upstream http://localhost:8000/v1 --model Snowflake/Arctic-AWM-4B --port 8100

        awm-studio proxy --model default --native
    """
    from pipeline.llm.profiles import choose
    from train.proxy import serving
    from train.proxy_log import summed
    from train.sampling import sampled

    turns = window_of(window)
    with open_workspace(workspace) as opened:
        usual = choose(opened.settings.profiles, None, model=model, base_url=upstream)
        place = log or opened.logs / "proxy.jsonl"
    given = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
    profile = sampled(usual, {name: value for name, value in given.items() if value is not None})
    with serving(
        profile,
        place,
        native=native,
        window=turns,
        parallel="all" if parallel == "all" else "first",
        port=port,
    ) as served:
        if as_json:
            print_json({"base_url": served.base_url, "model": profile.model, "log": str(place)})
        else:
            click.echo(served.base_url)
        say(f"{profile.model} is served until Ctrl-C; every call is in {place}.")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    totals = summed(place)
    say(f"In the log: {totals['requests']} requests, {totals['calls']} calls, {totals['errors']} errors.")
