"""Plans from what a person chose, and the presets that can be chosen, each with what it would take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from train.harness import mcp_universe, venvs
from train.harness.estimates import Estimate, estimate
from train.harness.harness_run import wanted
from train.harness.known import harness
from train.harness.plan import Plan
from train.harness.presets import preset, presets
from train.harness.readiness import checkout_of
from train.proxy import WINDOW


def plan_for(
    suite: Literal["bfcl", "tau2", "mcp-universe"],
    preset_name: str,
    model: Profile,
    *,
    user: Profile | None = None,
    domains: Sequence[str] = (),
    protocol: Literal["awm", "native"] = "awm",
    window: int | None = WINDOW,
    parallel: Literal["first", "all"] = "first",
    tries: int = 1,
    checkpoint: Path | None = None,
    checkout: Path | None = None,
) -> Plan:
    """The plan of a preset on this machine.

    Raises UserError where the harness is not installed, a domain is missing something, or there is no such preset.
    """
    chosen = preset(suite, preset_name)
    checkout = checkout_of(checkout) if suite == "mcp-universe" else None
    tasks = wanted(chosen, list(domains), checkout=checkout)
    return Plan(
        suite=suite,
        version=harness(suite).version,
        preset=preset_name,
        wanted=tasks,
        model=model,
        user=user,
        protocol=protocol,
        window=window,
        parallel=parallel,
        tries=tries,
        split=chosen.split,
        at_once=model.concurrency,
        checkpoint=checkpoint,
        tasks=checkout,
        digest=mcp_universe.digest(tasks) if suite == "mcp-universe" else "",
    )


def estimate_of(plan: Plan) -> Estimate:
    """What a plan takes (see `estimates`). Raises UserError where its harness is not installed."""
    return estimate(plan, venvs.site_packages(venvs.require(harness(plan.suite)).python))


def offers(
    suite: Literal["bfcl", "tau2", "mcp-universe"],
    model: Profile,
    *,
    user: Profile | None = None,
    checkout: Path | None = None,
) -> list[dict[str, Any]]:
    """Each preset of a suite with its estimate for a model; one that cannot be run says why instead."""
    found = []
    for each in presets(suite):
        try:
            told = {"estimate": estimate_of(plan_for(suite, each.name, model, user=user, checkout=checkout)).document()}
        except UserError as error:
            told = {"estimate": None, "why": str(error)}
        found.append({"preset": each.name, "about": each.about, **told})
    return found
