"""`launch_bfcl.py SETTINGS.json generate|evaluate`: BFCL's own command line, for a model that is not on its list.

The settings are `name` (in BFCL's registry, without `/` and `_`, which it exchanges for each other), `model` and
`base_url` (what its requests go to), `key`, `timeout_s`, `threads` and `categories`.
"""

from __future__ import annotations

import ast
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    """Register the model, and let BFCL work."""
    settings = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    verb = sys.argv[2]
    _register(settings)
    _call_only_what_is_offered()
    if verb == "generate":
        arguments = ["--run-ids", "--exclude-state-log", "--num-threads", str(settings["threads"])]
    else:
        arguments = ["--test-category", ",".join(settings["categories"])]
        _judge_what_was_run()
    sys.argv = ["bfcl", verb, "--model", settings["name"], *arguments]
    import_module("bfcl_eval.__main__").cli()


def _register(settings: dict[str, Any]) -> None:
    """Put a handler into BFCL's registry that asks our endpoint, in function-calling mode."""
    openai = import_module("openai")
    handlers = import_module("bfcl_eval.model_handler.api_inference.openai_completion")
    config = import_module("bfcl_eval.constants.model_config")

    class Handler(handlers.OpenAICompletionsHandler):
        def __init__(self, model_name: str, temperature: float) -> None:
            super(handlers.OpenAICompletionsHandler, self).__init__(model_name, temperature)
            self.model_style = handlers.ModelStyle.OpenAI_Completions
            self.client = openai.OpenAI(
                api_key=settings["key"], base_url=settings["base_url"], timeout=settings["timeout_s"]
            )

        def generate_with_backoff(self, **fields: Any) -> Any:
            fields.pop("store", None)  # a field of OpenAI's own, which other servers reject
            return super().generate_with_backoff(**(fields | {"model": settings["model"]}))

    config.MODEL_CONFIG_MAPPING[settings["name"]] = config.ModelConfig(
        model_name=settings["name"],
        display_name=settings["name"],
        url="",
        org="",
        license="",
        model_handler=Handler,
        is_fc_model=True,
        underscore_to_dot=True,
    )


def _call_only_what_is_offered() -> None:
    """Take the place of `eval`, to which BFCL gives calls as models write them, names unquoted.

    What it accepts is a public method of one of the simulated services with constants as arguments; such a call does
    what it did. Everything else fails, as almost all of it did before.
    """
    module = import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils")

    def called(source: str) -> Any:
        match ast.parse(source.strip(), mode="eval").body:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=instance), attr=method), args=args, keywords=keywords
            ) if instance.endswith("_instance") and instance in vars(module) and not method.startswith("_"):
                named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords}
                return getattr(vars(module)[instance], method)(*map(ast.literal_eval, args), **named)
        raise NameError(f"{source.partition('(')[0]!r} is not one of the functions")

    vars(module)["eval"] = called


def _judge_what_was_run() -> None:
    """Let BFCL judge a part of a category: it compares results with all its prompts, and this version has no option.

    Its prompts and answers are read as if only those existed that the results just read are about.
    """
    runner = import_module("bfcl_eval.eval_checker.eval_runner")
    original, data = runner.load_file, Path(runner.PROMPT_PATH)
    ran: set[str] = set()

    def load(path: Any, sort_by_id: bool = False) -> list[dict[str, Any]]:
        rows = original(path, sort_by_id=sort_by_id)
        if not Path(path).is_relative_to(data):
            ran.clear()
            ran.update(row["id"] for row in rows)
            return rows
        return [row for row in rows if row["id"] in ran]

    vars(runner)["load_file"] = load


if __name__ == "__main__":
    main()
