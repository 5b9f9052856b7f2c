"""`launch_mcp_universe.py SETTINGS.json`: MCP-Universe's own runner on some tasks, with what came of each in a line.

The settings are `llm` (its configuration), `agent` (that of a function-calling agent), `description`, `tasks` (paths),
`config` (where the benchmark file goes), `traces` and `results` (where those go). Exits with 3 where the model gave no
answer: the runner would take that for a failed task.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

NO_ANSWER = 3


def main() -> None:
    """Write the benchmark file, and let MCP-Universe work."""
    settings = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    if not settings["tasks"]:
        return
    llm = {"name": "model", "type": "openai", "config": settings["llm"]}
    agent = {"name": "agent", "type": "function_call", "config": {"llm": "model", **settings["agent"]}}
    benchmark = {"description": settings["description"], "agent": "agent", "tasks": settings["tasks"]}
    parts = [("llm", llm), ("agent", agent), ("benchmark", benchmark)]
    yaml = import_module("yaml")
    Path(settings["config"]).write_text(yaml.safe_dump_all([{"kind": k, "spec": s} for k, s in parts]), "utf-8")
    _stop_where_there_is_no_answer()
    runner = import_module("mcpuniverse.benchmark.runner")
    _write_down(runner.BenchmarkResultStore, Path(settings["results"]))
    traces = import_module("mcpuniverse.tracer.collectors").FileCollector(log_file=settings["traces"])
    asyncio.run(runner.BenchmarkRunner(settings["config"]).run(trace_collector=traces))


def _stop_where_there_is_no_answer() -> None:
    """End where the client has given up: it returns None, with which the agent would go on to a wrong answer."""
    model = import_module("mcpuniverse.llm.openai").OpenAIModel
    original = model._generate

    def generate(self: Any, *args: Any, **fields: Any) -> Any:
        reply = original(self, *args, **fields)
        if reply is None:
            raise SystemExit(NO_ANSWER)
        return reply

    model._generate = generate


def _write_down(store: Any, results: Path) -> None:
    """Append each task's evaluations to our file: the store's own key leaves out the model."""

    told = {"passed", "reason", "error"}

    def dump_task_result(*_: Any, task_config_path: str, evaluation_results: list[Any], **__: Any) -> None:
        rows = [result.model_dump(mode="json", include=told) for result in evaluation_results]
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"task": task_config_path, "evaluations": rows}) + "\n")

    store.dump_task_result = dump_task_result


if __name__ == "__main__":
    main()
