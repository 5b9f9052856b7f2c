"""The README of an export: the subset's card in words, with the front matter that the Hugging Face hub reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from curation.subset import TEST, TRAIN, Subset


def readme(subset: Subset, body: str, front_matter: Mapping[str, Any] | None = None) -> str:
    """A README: front matter where given, the card, and what is particular to a format (Markdown)."""
    card = subset.card
    lines = [
        f"# {subset.recipe.name}",
        "",
        f"{_counts(card)}. Every environment is a database, tools over it, tasks, and verifiers that judge them.",
        "",
        body.strip(),
        "",
        "## Card",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in _facts(card)),
        "",
        f"`subset.json` holds the recipe, all pairs, and the sha256 of every part; its digest is `{card['digest']}`.",
    ]
    head = [f"---\n{yaml.safe_dump(dict(front_matter), sort_keys=False)}---\n"] if front_matter else []
    return "\n".join([*head, *lines]) + "\n"


def licence_id(card: Mapping[str, Any]) -> str:
    """The licence as the hub spells it: the one that all environments state, else "other"."""
    licences = list(card["licences"])
    return licences[0].lower() if len(licences) == 1 and " " not in licences[0] else "other"


def _counts(card: Mapping[str, Any]) -> str:
    environments, tasks = card["environments"], card["tasks"]
    training = f"{environments[TRAIN]:,} environments with {tasks[TRAIN]:,} tasks to train on"
    return training + (f", {environments[TEST]:,} with {tasks[TEST]:,} tasks to test on" if environments[TEST] else "")


def _facts(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    recipe, concepts = card["recipe"], card["concepts"]
    where = f", where `{recipe['where']}`" if recipe["where"] else ""
    facts = [
        ("picked by", f"{recipe['method']}, seed {recipe['seed']}{where}"),
        ("licences", _shares(card["licences"])),
        ("made by", _shares(card["made_by"])),
        ("checks", _shares(card["checks"])),
        ("audit", _shares(card["audit"])),
        ("concepts", f"{concepts[TRAIN]} to train on, {concepts[TEST]} to test on"),
    ]
    if card.get("vendi"):
        vendi = card["vendi"]
        facts.append(("picked from", f"{card['environments']['of']:,} environments, {concepts['of']:,} concepts"))
        facts.append(("Vendi score", f"{vendi[TRAIN]:.1f} to train on, {vendi['of']:.1f} all (view {vendi['view']})"))
        facts.append(("coverage", f"{card['coverage']:.3f} mean similarity to the nearest picked"))
    return facts


def _shares(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
