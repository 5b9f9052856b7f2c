"""The tasks of MCP-Universe in a person's checkout: which domains they make, and what each needs to be run."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from train.harness.result_files import read_json

LOCAL = frozenset({"echo", "date", "calculator", "python-code-sandbox"})
"""Servers that ask nobody else."""

JUDGED_BY_OPENAI = frozenset({"google_search.llm_as_a_judge", "deepresearch.hle_llm_as_a_judge"})
"""Comparisons that ask a model of OpenAI's, at its own address."""

PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
"""How servers, questions and evaluators name environment variables."""

GIVEN = frozenset({"PORT"})
"""Placeholders that the harness fills by itself."""

REACHED_WITHIN_S = 2.0
A_HOST = ("github.com", 443)
"""Where a connection is tried, to tell whether there is a network."""


@dataclass(frozen=True, slots=True)
class TaskSet:
    """A domain: the tasks of one benchmark file, and the agent's settings in it that are kept."""

    name: str
    file: Path
    tasks: tuple[Path, ...]
    description: str = ""
    agent: dict[str, Any] = field(default_factory=dict)
    lost: tuple[str, ...] = ()  # task files that are not there

    def documents(self) -> Iterator[dict[str, Any]]:
        """What its task files say. Raises Damaged where one is not JSON."""
        for path in self.tasks:
            document = read_json(path)
            if isinstance(document, dict):
                yield document


def domains(folder: Path) -> list[TaskSet]:
    """The domains in a folder of a checkout: each YAML file below it that has a benchmark with tasks.

    Raises UserError where the folder is not there or has none.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name the one with MCP-Universe's tasks and their YAML files.")
    found = [task_set for path in sorted(folder.rglob("*.yaml")) if (task_set := _task_set(path, folder))]
    if not found:
        raise UserError(f"{folder} has no YAML file of a benchmark with tasks: name the folder with MCP-Universe's.")
    return found


def servers(packages: Path) -> dict[str, Any]:
    """The MCP servers that the installed harness knows. Raises Damaged where its list cannot be read."""
    return read_json(packages / "mcpuniverse" / "mcp" / "configs" / "server_list.json")


def online() -> bool:
    """Whether there is a network: one connection is tried, for two seconds at most."""
    try:
        socket.create_connection(A_HOST, timeout=REACHED_WITHIN_S).close()
    except OSError:
        return False
    return True


def missing(
    task_set: TaskSet, known: Mapping[str, Any], environ: Mapping[str, str], network: Callable[[], bool]
) -> tuple[str, ...]:
    """What a domain needs and this machine lacks, in words: variables, programs, Blender, Docker, a network, files."""
    documents = list(task_set.documents())
    names = _server_names(task_set, documents)
    lacking = [f"its task file {name}" for name in task_set.lost[:1]]
    lacking += [f"an MCP server named {name}, which this version does not know" for name in names if name not in known]
    lacking += [f"the variable {name}" for name in sorted(needs(task_set, known)) if not environ.get(name)]
    commands = {known[name].get("stdio", {}).get("command", "") for name in names if name in known}
    lacking += [_program(command) for command in sorted(commands) if not _is_there(command, environ)]
    if not lacking and (set(names) - LOCAL or _judged_by_openai(documents)) and not network():
        lacking.append("a network")
    return tuple(lacking)


def needs(task_set: TaskSet, known: Mapping[str, Any]) -> set[str]:
    """The environment variables that a domain's servers, questions and evaluators name."""
    documents = list(task_set.documents())
    texts = [json.dumps(known[name]) for name in _server_names(task_set, documents) if name in known]
    texts += [json.dumps([document.get("question"), document.get("evaluators")]) for document in documents]
    found = {name for text in texts for name in PLACEHOLDER.findall(text)} - GIVEN
    if _judged_by_openai(documents):
        found.add("OPENAI_API_KEY")
    if any("blender." in text for text in texts):
        found.add("BLENDER_APP_PATH")
    return found


def _task_set(path: Path, folder: Path) -> TaskSet | None:
    import yaml

    try:
        parts = [part for part in yaml.safe_load_all(path.read_text("utf-8")) if isinstance(part, dict)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read as YAML ({error}).") from None
    specs = {str(part.get("kind")).lower(): part.get("spec") or {} for part in parts}
    benchmark, agent = specs.get("benchmark", {}), (specs.get("agent") or {}).get("config") or {}
    named = [str(name) for name in benchmark.get("tasks") or ()]
    if not named:
        return None
    places = {name: _place(name, path, folder) for name in named}
    return TaskSet(
        name=path.stem,
        file=path,
        tasks=tuple(place for place in places.values() if place),
        description=str(benchmark.get("description") or path.stem),
        agent={key: agent[key] for key in ("instruction", "servers", "max_iterations") if key in agent},
        lost=tuple(name for name, place in places.items() if place is None),
    )


def _place(name: str, file: Path, folder: Path) -> Path | None:
    """Where a task file is: named from its YAML's folder, from the folder given, or from one above either."""
    for base in (file.parent, *list(file.parents)[1:3], folder, folder.parent):
        if (base / name).is_file():
            return (base / name).resolve()
    return None


def _server_names(task_set: TaskSet, documents: list[dict[str, Any]]) -> list[str]:
    named = list(task_set.agent.get("servers") or ())
    for document in documents:
        named += document.get("mcp_servers") or ()
    return sorted({str(server["name"]) for server in named if isinstance(server, dict) and "name" in server})


def _judged_by_openai(documents: list[dict[str, Any]]) -> bool:
    evaluators = [evaluator for document in documents for evaluator in document.get("evaluators") or ()]
    return any(evaluator.get("op") in JUDGED_BY_OPENAI for evaluator in evaluators if isinstance(evaluator, dict))


def _is_there(command: str, environ: Mapping[str, str]) -> bool:
    if command in ("", "python", "python3"):  # the harness's own, first on its PATH
        return True
    return shutil.which(command, path=environ.get("PATH")) is not None


def _program(command: str) -> str:
    of = {"docker": "Docker", "npx": "Node.js", "uvx": "uv"}.get(command)
    return f"{of} ({command} is not on the PATH)" if of else f"the program {command}"
