"""`launch_tau2.py SETTINGS.json`: τ²-bench's own command line on one domain, made safe to stop and to go on with.

The settings are `domain`, `split`, `ids`, `tries`, `seed`, `at_once`, `results` (a folder), and `agent` and `user`,
each with `model`, `base_url` and `temperature`.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any


def main() -> None:
    """Put right what hinders stopping and resuming, and let τ²-bench work."""
    settings = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    run = import_module("tau2.run")
    vars(run)["open"] = _open_whole
    # It asks whether to go on with a file that exists. That it may is decided before this is started.
    run.ConsoleDisplay.console.input = lambda *_: "y"
    sys.argv = ["tau2", "run", *_arguments(settings)]
    import_module("tau2.cli").main()


def _arguments(settings: dict[str, Any]) -> list[str]:
    options = {
        "--domain": settings["domain"],
        "--task-split-name": settings["split"],
        "--num-trials": settings["tries"],
        "--seed": settings["seed"],
        "--max-concurrency": settings["at_once"],
        "--results-dir": settings["results"],
        "--save-to": settings["domain"],
        "--agent-llm": f"openai/{settings['agent']['model']}",
        "--agent-llm-args": _model_arguments(settings["agent"]),
        "--user-llm": f"openai/{settings['user']['model']}",
        "--user-llm-args": _model_arguments(settings["user"]),
    }
    pairs = [str(word) for option in options.items() for word in option]
    return [*pairs, "--skip-failed-samples", "--task-ids", *settings["ids"]]


def _model_arguments(endpoint: dict[str, Any]) -> str:
    return json.dumps({"base_url": endpoint["base_url"], "temperature": endpoint["temperature"]})


class _Whole(StringIO):
    """Text that becomes a file at its block's end: a killed run leaves the file as before or after, never a part."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        if exc_type is None:
            draft = self._path.with_name(f".{self._path.name}.new")
            draft.write_text(self.getvalue(), "utf-8")
            draft.replace(self._path)
        super().__exit__(exc_type, exc_val, exc_tb)


def _open_whole(path: Any, mode: str = "r") -> Any:
    """What `open` does, but files are replaced whole where they are written."""
    return _Whole(Path(path)) if mode == "w" else Path(path).open(mode, encoding="utf-8")


if __name__ == "__main__":
    main()
