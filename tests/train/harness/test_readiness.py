"""What can be run here, and what is missing for the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.errors import UserError
from tests.train.harness.conftest import CHECKOUT, TASKS, program
from train.harness import mcp_tasks, mcp_universe, readiness, venvs
from train.harness.known import harness


def stands(name: str, **options: object) -> readiness.Readiness:
    return readiness.of(harness(name), **options)  # ty: ignore[invalid-argument-type]


def domain(folder: Path, name: str, *servers: str, question: str = "", op: str = "=") -> Path:
    """A checkout with a domain of one task."""
    folder.mkdir(exist_ok=True)
    task = {
        "question": question,
        "mcp_servers": [{"name": server} for server in servers],
        "evaluators": [{"func": "json", "op": op, "value": 1}],
    }
    (folder / f"{name}.json").write_text(json.dumps(task))
    (folder / f"{name}.yaml").write_text(f"kind: benchmark\nspec:\n  description: x\n  tasks:\n    - {name}.json\n")
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_tasks, "online", lambda: False)


def test_nothing_is_installed_at_first_and_how_to_is_told() -> None:
    found = readiness.readiness()
    assert [each.name for each in found] == ["bfcl", "tau2", "mcp-universe"]
    assert {each.state for each in found} <= {"not installed", "unavailable"}
    assert found[0].how == "awm-studio eval harnesses --install bfcl (about 460 MB)"


def test_a_machine_without_gcc_cannot_install_mcp_universe(bare_path: Path) -> None:
    found = stands("mcp-universe")
    assert found.state == "unavailable"
    assert "gcc" in found.summary


def test_an_installed_bfcl_is_ready_with_its_categories(fake_bfcl: Path) -> None:
    found = stands("bfcl")
    assert (found.state, found.summary) == ("ready", "ready")
    assert {each.name: each.tasks for each in found.domains if each.tasks} == {n: len(ids) for n, ids in TASKS.items()}


def test_an_installation_whose_data_is_gone_says_so(fake_bfcl: Path) -> None:
    (fake_bfcl / "bfcl_eval" / "data" / "BFCL_v3_java.json").unlink()
    found = stands("bfcl")
    assert found.state == "incomplete"
    assert "BFCL_v3_java.json cannot be read" in found.summary


def test_mcp_universe_needs_a_checkout(fake_mcp_universe: Path) -> None:
    assert stands("mcp-universe").state == "incomplete"
    assert "its package has no tasks" in stands("mcp-universe").summary
    found = stands("mcp-universe", checkout=CHECKOUT)
    assert (found.state, [(each.name, each.tasks, each.ready) for each in found.domains]) == (
        "ready",
        [("echo", 2, True)],
    )
    by_variable = stands("mcp-universe", environ={"AWM_MCP_UNIVERSE": str(CHECKOUT)})
    assert by_variable.domains == found.domains


@pytest.mark.parametrize(
    ("server", "question", "op", "missing"),
    [
        ("google-search", "", "=", "the variable SERP_API_KEY"),
        ("github", "", "=", "the variable GITHUB_PERSONAL_ACCESS_TOKEN"),
        ("blender", "Save it with blender.", "blender.check_file", "the variable BLENDER_APP_PATH"),
        ("echo", "In {{ GITHUB_PERSONAL_ACCOUNT_NAME }}'s account", "=", "the variable GITHUB_PERSONAL_ACCOUNT_NAME"),
        ("echo", "", "google_search.llm_as_a_judge", "the variable OPENAI_API_KEY"),
        ("unheard-of", "", "=", "an MCP server named unheard-of, which this version does not know"),
    ],
)
def test_what_a_domain_lacks_is_named(
    server: str, question: str, op: str, missing: str, fake_mcp_universe: Path, tmp_path: Path
) -> None:
    checkout = domain(tmp_path / "checkout", "some", server, question=question, op=op)
    (found,) = stands("mcp-universe", checkout=checkout, environ={"PATH": ""}).domains
    assert missing in found.missing


def test_docker_and_then_a_network_are_asked_for(fake_mcp_universe: Path, tmp_path: Path) -> None:
    checkout = domain(tmp_path / "checkout", "repositories", "github")
    environ = {"GITHUB_PERSONAL_ACCESS_TOKEN": "x", "PATH": str(tmp_path / "programs")}
    (found,) = stands("mcp-universe", checkout=checkout, environ=environ).domains
    assert found.missing == ("Docker (docker is not on the PATH)",)
    (tmp_path / "programs").mkdir()
    program(tmp_path / "programs", "docker", "")
    (found,) = stands("mcp-universe", checkout=checkout, environ=environ).domains
    assert found.missing == ("a network",)


def test_a_task_file_that_is_not_there_is_named(fake_mcp_universe: Path, tmp_path: Path) -> None:
    checkout = domain(tmp_path / "checkout", "some", "echo")
    (checkout / "some.json").unlink()
    (found,) = stands("mcp-universe", checkout=checkout).domains
    assert found.missing == ("its task file some.json",)


def test_one_domain_that_is_ready_makes_the_harness_ready_and_the_other_is_refused(
    fake_mcp_universe: Path, tmp_path: Path
) -> None:
    checkout = domain(tmp_path / "checkout", "local", "echo")
    domain(checkout, "search", "google-search")
    found = stands("mcp-universe", checkout=checkout, environ={})
    assert (found.state, found.summary) == ("ready", "ready but for search")
    with pytest.raises(
        UserError, match="domain search cannot be run yet, it would only fail: the variable SERP_API_KEY"
    ):
        readiness.require("mcp-universe", ["search"], checkout=checkout)
    with pytest.raises(UserError, match="has no domain 'sea': there are local, search"):
        readiness.require("mcp-universe", ["sea"], checkout=checkout)


@pytest.mark.parametrize("text", ["kind: [", "kind: llm\nspec: {}\n"])
def test_a_folder_that_is_no_checkout_is_told(text: str, fake_mcp_universe: Path, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "some.yaml").write_text(text)
    found = stands("mcp-universe", checkout=tmp_path / "odd")
    assert found.state == "incomplete"
    assert str(tmp_path / "odd") in found.summary


def test_what_is_not_installed_is_refused_with_the_command(place: Path) -> None:
    with pytest.raises(UserError, match="BFCLv3 is not installed: awm-studio eval harnesses --install bfcl does it"):
        readiness.require("bfcl", [])
    with pytest.raises(UserError, match="There is no harness 'bfcl4': there are bfcl, tau2, mcp-universe"):
        harness("bfcl4")
    assert not venvs.place().exists()


def test_a_domains_servers_get_what_they_need_and_no_other_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SERP_API_KEY", "GITHUB_PERSONAL_ACCESS_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "intranet")
    passed = mcp_universe._passed({"SERP_API_KEY"})
    assert passed["SERP_API_KEY"] == "secret"
    assert passed["HTTPS_PROXY"] == "http://proxy:3128"
    assert passed["NO_PROXY"] == passed["no_proxy"] == "intranet,127.0.0.1,localhost"
    assert not {"GITHUB_PERSONAL_ACCESS_TOKEN", "OPENAI_API_KEY"} & passed.keys()
