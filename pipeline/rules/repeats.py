"""Rules about calling again: the same call in a new instance does the same, whatever other instances did before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from pipeline.findings import Finding
from pipeline.rules.called import Called, make
from pipeline.runtime.host import HostedProgram

FOLLOWED = 3
"""Tools whose differences are traced to their cause; each takes two newly loaded programs."""

Loading = Callable[[], AbstractContextManager[HostedProgram]]


def repeat_findings(program: HostedProgram, made: Iterable[Called], load: Loading) -> Iterator[Finding]:
    """Make the calls again in new instances of the same program, and look into what comes out differently.

    `program` and what `load` gives must keep no replies (`cache=False`), or nothing would be called again. A call that
    differs is made once each in two newly loaded programs: where those agree, what other instances did before has made
    the difference; where they do not, chance has.
    """
    differing: dict[str, tuple[Called, Called]] = {}
    for called in made:
        if called.state and called.tool.name not in differing:
            again = make(program, called.tool, dict(called.call.arguments))
            if _outcome(again) != _outcome(called):
                differing[called.tool.name] = called, again
    for first, again in list(differing.values())[:FOLLOWED]:
        alone = []
        for _ in range(2):
            with load() as fresh:
                alone.append(_outcome(make(fresh, first.tool, dict(first.call.arguments))))
        yield _leaking(first, again) if alone[0] == alone[1] else _by_chance(first, again)


def _outcome(called: Called) -> tuple[int, str, str]:
    return called.reply.status, called.reply.text, called.state


def _shown(first: Called, again: Called) -> str:
    if first.reply.text == again.reply.text:
        return f"{first.shown}; called again, it answers the same and leaves other rows"
    return f"{first.shown}; called again: {again.reply.text[:300]}"


def _leaking(first: Called, again: Called) -> Finding:
    return Finding(
        "state_leaks",
        "error",
        f"code: {first.tool.name}",
        f"{first.tool.name} comes out differently in a new instance after calls in other instances",
        evidence=_shown(first, again),
        remedy="keep nothing between calls except in the database: no counters, caches or defaults that change",
    )


def _by_chance(first: Called, again: Called) -> Finding:
    return Finding(
        "not_deterministic",
        "error",
        f"code: {first.tool.name}",
        f"{first.tool.name} comes out differently for the same call in the same state, with the clock pinned",
        evidence=_shown(first, again),
        remedy="take chance from the module random and time from datetime, which are pinned; order what is listed",
    )
