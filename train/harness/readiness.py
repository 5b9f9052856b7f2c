"""What can be run on this machine: each harness with what it is missing, by domain where that differs."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pipeline.errors import UserError
from pipeline.places import named_place
from train.harness import venvs
from train.harness.known import HARNESSES, Harness, harness

State = Literal["ready", "incomplete", "not installed", "unavailable"]
"""`incomplete`: installed, and no domain can be run (yet); `unavailable`: it cannot be installed here."""

CHECKOUT = "AWM_MCP_UNIVERSE"
"""The environment variable that names the task folder in a checkout of MCP-Universe, where no option does."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A part of a benchmark that can be run by itself: how many tasks it has and what it is missing, as words.

    `tasks` is None before the harness is installed: only its own data says so.
    """

    name: str
    tasks: int | None = None
    missing: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether it can be run now."""
        return not self.missing


@dataclass(frozen=True, slots=True)
class Readiness:
    """A harness as this machine has it. `missing` are sentences, `how` is the command or step that comes next."""

    name: str
    title: str
    package: str
    version: str
    state: State
    missing: tuple[str, ...] = ()
    how: str = ""
    domains: tuple[Domain, ...] = ()
    folder: str = ""
    megabytes: int | None = None

    @property
    def summary(self) -> str:
        """The state in one line, for example "needs SERP_API_KEY, Blender"."""
        if self.state != "ready":
            return self.missing[0] if self.missing else self.state
        lacking = [domain for domain in self.domains if not domain.ready]
        if not lacking:
            return "ready"
        return f"ready but for {', '.join(domain.name for domain in lacking)}"

    def document(self) -> dict[str, Any]:
        """As `awm-studio eval harnesses --json` prints it."""
        domains = [asdict(domain) | {"ready": domain.ready} for domain in self.domains]
        return asdict(self) | {"domains": domains, "summary": self.summary}


def readiness(*, checkout: Path | None = None, environ: Mapping[str, str] = os.environ) -> list[Readiness]:
    """How every harness stands. Reads files and looks for programs; asks no server and installs nothing.

    `checkout` is the task folder of MCP-Universe [default: `$AWM_MCP_UNIVERSE`].
    """
    return [of(known, checkout=checkout, environ=environ) for known in HARNESSES]


def of(known: Harness, *, checkout: Path | None = None, environ: Mapping[str, str] = os.environ) -> Readiness:
    """How one harness stands (see `readiness`)."""
    stands = Readiness(known.name, known.title, known.package, known.version, "ready")
    found = venvs.installed(known)
    if found is None:
        return _not_installed(known, stands)
    stands = replace(stands, folder=str(venvs.folder_of(known)), megabytes=found.facts.get("megabytes"))
    try:
        domains = _domains(known, found.python, checkout, environ)
    except UserError as error:
        return replace(stands, state="incomplete", missing=(str(error),), how=_next_step(known))
    if domains and not any(domain.ready for domain in domains):
        missing = tuple(dict.fromkeys(words for domain in domains for words in domain.missing))
        return replace(stands, state="incomplete", missing=missing, how=_next_step(known), domains=domains)
    return replace(stands, domains=domains)


def checkout_of(named: Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The task folder of MCP-Universe: the named one, else `$AWM_MCP_UNIVERSE`'s; None where neither says."""
    if named is None and environ.get(CHECKOUT):
        named = Path(environ[CHECKOUT])
    return named_place(named) if named else None


def require(name: str, domains: list[str], *, checkout: Path | None = None) -> Readiness:
    """A harness that can run these domains now (all that are ready where none are named).

    Raises UserError where it is not installed or a domain is missing something.
    """
    known = harness(name)
    venvs.require(known)
    found = of(known, checkout=checkout)
    if found.state != "ready":
        raise UserError(f"{known.title} cannot be run yet: {'; '.join(found.missing)}. {found.how}".strip())
    there = {domain.name: domain for domain in found.domains}
    for wanted in domains:
        if wanted not in there:
            raise UserError(f"{known.title} has no domain {wanted!r}: there are {', '.join(there)}.")
        if not there[wanted].ready:
            lacking = "; ".join(there[wanted].missing)
            raise UserError(f"{known.title}'s domain {wanted} cannot be run yet, it would only fail: {lacking}.")
    return found


def _not_installed(known: Harness, stands: Readiness) -> Readiness:
    lacking = tuple(venvs.lacks(known))
    try:
        venvs.interpreter(known)
    except UserError as error:
        lacking = (str(error), *lacking)
    if lacking:
        return replace(stands, state="unavailable", missing=lacking)
    how = f"awm-studio eval harnesses --install {known.name}"
    return replace(stands, state="not installed", how=f"{how} (about {known.megabytes} MB)")


def _domains(known: Harness, python: Path, checkout: Path | None, environ: Mapping[str, str]) -> tuple[Domain, ...]:
    packages = venvs.site_packages(python)
    if known.name == "bfcl":
        from train.harness import bfcl

        return tuple(Domain(category, len(ids)) for category, ids in bfcl.ids(packages).items())
    if known.name == "tau2":
        from train.harness import tau2

        return tuple(Domain(name, len(tau2.ids(packages, name))) for name in tau2.DOMAINS)
    from train.harness import mcp_tasks

    folder = checkout_of(checkout, environ)
    if folder is None:
        raise UserError(
            "its package has no tasks: clone SalesforceAIResearch/MCP-Universe and name the folder with its tasks "
            f"(--tasks DIR, or {CHECKOUT})"
        )
    servers, network = mcp_tasks.servers(packages), functools.cache(mcp_tasks.online)
    return tuple(
        Domain(found.name, len(found.tasks), mcp_tasks.missing(found, servers, environ, network))
        for found in mcp_tasks.domains(folder)
    )


def _next_step(known: Harness) -> str:
    if known.name != "mcp-universe":
        return f"Delete {venvs.folder_of(known)} and install it again."
    return f"Set what is missing, or name another folder with --tasks DIR or {CHECKOUT}."
