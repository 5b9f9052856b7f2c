"""Exports, each read back by the library it is for; whole or not at all; nothing private in them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow.parquet")
pytest.importorskip("datasets")

import datasets
import pyarrow.parquet as pq

from curation.diversity import NGRAMS_ONLY
from curation.exports.folder import Privacy, new_folder
from curation.exports.formats import Format, export
from curation.exports.hf import write_hf
from curation.importers import import_awm
from curation.making import make_subset
from curation.subset import Recipe, Subset
from curation.whole import everything
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part, Solution
from pipeline.runtime.tools import Tool
from pipeline.workspace import Workspace
from tests.curation.sets import new_workspace

PERSON = Author(AuthorKind.person, "ada")
SCHEMA = {"type": "object", "properties": {"q": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    with new_workspace(tmp_path / "ws") as opened:
        solution = {"calls": [{"tool": "record_harvest", "arguments": {"tons": 3.5, "field": None}}], "answer": "done"}
        opened.catalog.put("furrow", Part.solution, json.dumps(solution), slot="0", author=PERSON)
        yield opened


@pytest.fixture
def subset(workspace: Workspace) -> Subset:
    return make_subset(workspace, Recipe("mix", budget=6, model=NGRAMS_ONLY, threshold=0.4, held_out=0.3, seed=1))


def tools(environment: object) -> list[Tool]:
    return [Tool("search", "Find things.", SCHEMA, "GET", "/search", "search", (), 1)]


def test_hf_is_loaded_by_datasets_from_the_folder(workspace: Workspace, subset: Subset, tmp_path: Path) -> None:
    export(workspace, tmp_path / "out", Format.hf, subset)
    loaded = datasets.load_dataset(str(tmp_path / "out"))
    tasks = subset.card["tasks"]
    assert {split: loaded[split].num_rows for split in loaded} == {"train": tasks["train"], "test": tasks["test"]}
    assert set(loaded["train"]["environment"]) == set(subset.environments("train"))
    environments = datasets.load_dataset(str(tmp_path / "out"), "environments", split="train")
    assert sorted(environments["name"]) == sorted(subset.environments())


def test_hf_rows_hold_what_the_catalog_holds(workspace: Workspace, tmp_path: Path) -> None:
    export(workspace, tmp_path / "out", Format.hf, everything(workspace.catalog))
    rows = {(row["environment"], row["task"]): row for row in datasets.load_dataset(str(tmp_path / "out"))["train"]}
    furrow = workspace.catalog.environment("furrow")
    row = rows["furrow", 0]
    assert row["instruction"] == furrow.tasks[0]
    assert row["verifier_code"] == furrow.verifiers[0].code
    assert row["verifier_sql"] is None
    solution = json.loads(row["solution_json"])
    assert furrow.solutions == (Solution(0, furrow.solutions[0].calls, "done"),)
    assert solution["calls"] == [{"tool": "record_harvest", "arguments": {"tons": 3.5, "field": None}}]
    assert rows["furrow", 1]["solution_json"] is None


def test_tool_schemas_survive_a_round_trip_through_datasets(
    workspace: Workspace, subset: Subset, tmp_path: Path
) -> None:
    with new_folder(tmp_path / "out") as draft:
        told: list[tuple[int, int]] = []
        privacy = Privacy(workspace.path)
        write_hf(
            workspace.catalog, draft, subset, privacy, tools=tools, progress=lambda done, of: told.append((done, of))
        )
    assert told == [(number, 6) for number in range(1, 7)]
    for row in datasets.load_dataset(str(tmp_path / "out"), "environments", split="train"):
        assert json.loads(row["tools_json"]) == [
            {"name": "search", "description": "Find things.", "input_schema": SCHEMA}
        ]


def test_hf_lists_the_tools_of_programs_that_load(awm_real: Path, tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "real", create=True) as real:
        import_awm(real.catalog, awm_real)
        real.catalog.put("etsy_digital_downloads", Part.code, "import nowhere", author=PERSON)
        chosen = everything(real.catalog, ["gofundme", "etsy_digital_downloads"])
        export(real, tmp_path / "out", Format.hf, chosen)
    rows = {row["name"]: row for row in pq.read_table(tmp_path / "out/environments/environments.parquet").to_pylist()}
    listed = json.loads(rows["gofundme"]["tools_json"])
    assert "create_campaign" in {tool["name"] for tool in listed}
    assert all(tool["input_schema"]["type"] == "object" for tool in listed)
    assert rows["etsy_digital_downloads"]["tools_json"] is None


def test_the_dataset_card_says_where_it_comes_from(workspace: Workspace, subset: Subset, tmp_path: Path) -> None:
    from huggingface_hub import DatasetCard

    export(workspace, tmp_path / "out", Format.hf, subset)
    card = DatasetCard.load(tmp_path / "out" / "README.md")
    assert card.data.license == "apache-2.0"
    assert [config["config_name"] for config in card.data.configs] == ["tasks", "environments"]
    assert "blueprint: tests" in card.text
    assert subset.digest in card.text


def test_verl_has_the_columns_its_dataset_and_agent_loop_read(
    workspace: Workspace, subset: Subset, tmp_path: Path
) -> None:
    export(workspace, tmp_path / "out", Format.verl, subset)
    loaded = datasets.load_dataset("parquet", data_files=str(tmp_path / "out" / "train.parquet"))["train"]
    assert len(loaded) == subset.card["tasks"]["train"]
    for index, row in enumerate(loaded):
        extra = row["extra_info"]
        assert row["prompt"][0]["role"] == "user"
        assert row["agent_name"] == "tool_agent"
        assert row["data_source"] == "awm-studio/mix"
        assert extra["index"] == index
        reference = {"environment": extra["environment"], "task": extra["task"]}
        environment = workspace.catalog.environment(extra["environment"])
        assert row["prompt"][0]["content"] == environment.tasks[extra["task"]]
        assert extra["need_tools_kwargs"]
        assert extra["tools_kwargs"] == {
            "list_tools": {"create_kwargs": reference},
            "call_tool": {"create_kwargs": reference},
        }
        truth = json.loads(row["reward_model"]["ground_truth"])
        assert truth["environment"] == extra["environment"]
        assert [workspace.catalog.content(sha) for sha in truth["verifiers"].values()] == [
            environment.verifiers[extra["task"]].code
        ]


def test_trl_rows_are_prompts_with_references(workspace: Workspace, subset: Subset, tmp_path: Path) -> None:
    export(workspace, tmp_path / "out", Format.trl, subset)
    files = {split: str(tmp_path / "out" / f"{split}.jsonl") for split in ("train", "test")}
    loaded = datasets.load_dataset("json", data_files=files)
    assert loaded["test"].num_rows == subset.card["tasks"]["test"]
    for row in loaded["train"]:
        instruction = workspace.catalog.environment(row["environment"]).tasks[row["task"]]
        assert row["prompt"] == [{"role": "user", "content": instruction}]


def test_mcp_names_a_server_for_each_environment(workspace: Workspace, subset: Subset, tmp_path: Path) -> None:
    export(workspace, tmp_path / "out", Format.mcp, subset)
    servers = json.loads((tmp_path / "out" / "mcp.json").read_text())["mcpServers"]
    assert set(servers) == set(subset.environments())
    for name, server in servers.items():
        assert server["args"] == ["serve", name]
        assert (tmp_path / "out" / server["env"]["AWM_WORKSPACE"]).resolve() == workspace.path.resolve()


async def test_an_mcp_client_started_in_the_folder_sees_the_tools(
    awm_real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    with Workspace.open(tmp_path / "real", create=True) as real:
        import_awm(real.catalog, awm_real)
        export(real, tmp_path / "out", Format.mcp, everything(real.catalog, ["gofundme"]))
    server = json.loads((tmp_path / "out" / "mcp.json").read_text())["mcpServers"]["gofundme"]
    parameters = StdioServerParameters(**server, cwd=tmp_path / "out")
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        assert "create_campaign" in {tool.name for tool in (await session.list_tools()).tools}


def test_awm_is_imported_to_the_same_contents(workspace: Workspace, subset: Subset, tmp_path: Path) -> None:
    export(workspace, tmp_path / "out", Format.awm, subset)
    with Catalog.open(tmp_path / "copy.db") as copy:
        import_awm(copy, tmp_path / "out")
        for name in subset.environments():
            assert copy.environment(name) == workspace.catalog.environment(name)


@pytest.mark.parametrize("layout", list(Format))
def test_every_export_carries_its_recipe_and_reports_its_files(
    workspace: Workspace, subset: Subset, tmp_path: Path, layout: Format
) -> None:
    import hashlib

    files = export(workspace, tmp_path / "out", layout, subset)
    there = {str(path.relative_to(tmp_path / "out")): path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert set(files) == set(there)
    for name, file in files.items():
        assert hashlib.sha256(there[name].read_bytes()).hexdigest() == file.sha256
    assert Subset.from_json(json.loads(there["subset.json"].read_text())).digest == subset.digest


@pytest.mark.parametrize("layout", list(Format))
def test_the_same_export_twice_is_the_same_bytes(
    workspace: Workspace, subset: Subset, tmp_path: Path, layout: Format
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = export(workspace, tmp_path / "a" / "out", layout, subset)
    assert export(workspace, tmp_path / "b" / "out", layout, subset) == first


@pytest.mark.parametrize("layout", [layout for layout in Format if layout is not Format.mcp])
def test_secrets_and_paths_stay_here(
    workspace: Workspace, tmp_path: Path, layout: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    code = "KEY = 'sk-very-secret'\n"
    workspace.catalog.put("uber", Part.tasks, json.dumps([f"Use {code}", "Two."]), author=PERSON)
    with pytest.raises(UserError, match="uber holds the value of SOME_API_KEY"):
        export(workspace, tmp_path / "out", layout, everything(workspace.catalog))
    assert not (tmp_path / "out").exists()
    workspace.catalog.put("uber", Part.tasks, json.dumps([f"See {workspace.path}/x.db"]), author=PERSON)
    with pytest.raises(UserError, match="uber holds the path of the workspace"):
        export(workspace, tmp_path / "out", layout, everything(workspace.catalog))
    assert sorted(entry.name for entry in tmp_path.iterdir() if "out" in entry.name) == []


@pytest.mark.parametrize("layout", list(Format))
def test_a_folder_that_is_not_empty_is_refused(
    workspace: Workspace, subset: Subset, tmp_path: Path, layout: Format
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep")
    with pytest.raises(UserError, match="not an empty folder"):
        export(workspace, tmp_path / "out", layout, subset)
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No space left"), new_folder(tmp_path / "out") as draft:
        (draft / "half").write_text("x")
        Path("/dev/full").write_text("x" * 10_000)
    assert list(tmp_path.iterdir()) == []


def test_formats_that_give_what_is_there_now_refuse_what_has_changed(
    workspace: Workspace, subset: Subset, tmp_path: Path
) -> None:
    edited = subset.environments("train")[0]
    workspace.catalog.put(edited, Part.tasks, json.dumps(["Edited.", "Two."]), author=PERSON)
    for layout in (Format.awm, Format.mcp):
        with pytest.raises(UserError, match=f"{edited} changed after"):
            export(workspace, tmp_path / "out", layout, subset)
    export(workspace, tmp_path / "out", Format.trl, subset)
    rows = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_text().splitlines()]
    assert "Edited." not in {row["prompt"][0]["content"] for row in rows}


def test_a_subset_without_concepts_is_exported_too(workspace: Workspace, subset: Subset, tmp_path: Path) -> None:
    bare = replace(subset, picks=tuple(replace(pick, concept="") for pick in subset.picks))
    export(workspace, tmp_path / "out", Format.verl, bare)
    rows = pq.read_table(tmp_path / "out" / "train.parquet").to_pylist()
    assert {row["extra_info"]["concept"] for row in rows} == {None}
