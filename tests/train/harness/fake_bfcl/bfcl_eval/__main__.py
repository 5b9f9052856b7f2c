"""Its command line: generate appends a result for each task, evaluate writes what came of them."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING
from bfcl_eval.eval_checker import eval_runner

ROOT = Path(os.environ["BFCL_PROJECT_ROOT"])


def cli() -> None:
    name = sys.argv[sys.argv.index("--model") + 1]
    if sys.argv[1] == "generate":
        generate(name)
    else:
        evaluate(name, sys.argv[sys.argv.index("--test-category") + 1].split(","))


def generate(name: str) -> None:
    config = MODEL_CONFIG_MAPPING[name]
    handler = config.model_handler(name, 0.001)
    handler.is_fc_model = config.is_fc_model
    wanted = json.loads((ROOT / "test_case_ids_to_generate.json").read_text())
    for category, ids in wanted.items():
        path = ROOT / "result" / name / f"BFCL_v3_{category}_result.json"
        there = {json.loads(line)["id"] for line in path.read_text().splitlines()} if path.exists() else set()
        for task in ids:
            if task in there:
                continue
            with path.open("a") as file:
                file.write(json.dumps({"id": task, "result": answer(handler, task)}) + "\n")
    if os.environ.get("HOME") and (ROOT / "hang").exists():
        time.sleep(600)


def answer(handler: Any, task: str) -> Any:
    tools = [{"type": "function", "function": {"name": "answer", "description": "", "parameters": {}}}]
    messages = [{"role": "user", "content": task}]
    try:
        reply = handler.generate_with_backoff(messages=messages, model=handler.model_name, store=False, tools=tools)
        return reply.choices[0].message.content
    except Exception as error:
        return f"Error during inference: {error}"


def evaluate(name: str, categories: list[str]) -> None:
    for category in categories:
        results = eval_runner.load_file(ROOT / "result" / name / f"BFCL_v3_{category}_result.json")
        prompts = eval_runner.load_file(eval_runner.PROMPT_PATH / f"BFCL_v3_{category}.json")
        assert len(results) == len(prompts)
        failed = [{"id": row["id"], "valid": False} for row in results if row["result"] != "right"]
        right = len(results) - len(failed)
        lines = [{"accuracy": right / len(results), "correct_count": right, "total_count": len(results)}, *failed]
        path = ROOT / "score" / name / f"BFCL_v3_{category}_score.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map(json.dumps, lines)))
    raise SystemExit("the table of all scores needs two of them")
