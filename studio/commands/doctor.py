"""`awm-studio doctor`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import rich_click as click

from studio.commands.options import chosen_workspace, json_option, print_json, print_table, workspace_option

if TYPE_CHECKING:
    from pipeline.runtime.sandbox import Layer


@dataclass(frozen=True)
class Feature:
    """What a feature imports: each module with the package that holds it.

    A feature that is `optional` may be missing from a sound installation.
    """

    modules: dict[str, str]
    optional: bool = False


FEATURES = {
    "import": Feature({"sqlalchemy": "sqlalchemy", "alembic": "alembic", "orjson": "orjson"}),
    "runtime": Feature({"fastapi": "fastapi", "pydantic": "pydantic", "sqlalchemy": "sqlalchemy"}),
    "mcp": Feature({"mcp": "mcp", "uvicorn": "uvicorn"}),
    "datasette": Feature({"datasette": "datasette"}),
    "studio": Feature({"textual": "textual", "tree_sitter": "tree-sitter"}),
    "models": Feature({"openai": "openai", "json_repair": "json-repair"}),
    "hf": Feature({"huggingface_hub": "huggingface_hub"}, optional=True),
    "concepts": Feature({"sentence_transformers": "sentence-transformers"}, optional=True),
    "train": Feature({"torch": "torch", "trl": "trl", "transformers": "transformers"}, optional=True),
}


@click.command("doctor")
@workspace_option
@json_option
def doctor_command(workspace: str | None, as_json: bool) -> None:
    """Say what works on this machine, what is missing for what, and where things are kept.

    Starts a worker and tries in it what the sandbox is there to prevent. Exits with 1 when a part of the plain
    installation does not work; what is optional, and layers of the sandbox that this system lacks, are only told.

    Examples:

        awm-studio doctor

        awm-studio doctor --json | jq .sandbox
    """
    import platform

    from pipeline.errors import UserError
    from pipeline.runtime.host import Host
    from pipeline.runtime.sandbox import LAYERS, Layer
    from pipeline.settings import load, settings_path
    from pipeline.workspace import is_workspace, locate

    features = {name: _state_of(feature) for name, feature in FEATURES.items()}
    place, settings, layers = (
        locate(chosen_workspace(workspace)),
        None,
        dict.fromkeys(LAYERS, Layer(False, "not tried")),
    )
    try:
        settings = load()
        with Host.from_settings(settings) as host:
            layers = host.sandbox()
    except UserError as error:
        features["runtime"] = {"ok": False, "missing": features["runtime"]["missing"], "hint": str(error)}
    features["sandbox"] = _sandbox_state(layers)
    document = {
        "ok": all(state["ok"] for name, state in features.items() if name in FEATURES and not FEATURES[name].optional),
        "python": platform.python_version(),
        "worker_python": (settings and settings.worker_python) or sys.executable,
        "workspace": str(place),
        "workspace_exists": settings is not None and is_workspace(place, settings),
        "settings": str(settings_path()),
        "features": features,
        "sandbox": {name: layer.active for name, layer in layers.items()},
        "sandbox_details": {name: layer.detail for name, layer in layers.items()},
    }
    if as_json:
        print_json(document)
    else:
        _print(document)
    if not document["ok"]:
        sys.exit(1)


def _state_of(feature: Feature) -> dict:
    missing = [package for module, package in feature.modules.items() if find_spec(module) is None]
    return {"ok": not missing, "missing": missing, "hint": f"pip install {' '.join(missing)}" if missing else ""}


def _sandbox_state(layers: Mapping[str, Layer]) -> dict:
    missing = [name for name, layer in layers.items() if not layer.active]
    hint = "Generated code is less confined here; on a Linux machine with these layers it would be." if missing else ""
    return {"ok": not missing, "missing": missing, "hint": hint}


def _print(document: dict) -> None:
    print_table(
        ["", ""],
        [
            ("Python", f"{document['python']} ({sys.executable})"),
            ("workers' Python", document["worker_python"]),
            ("workspace", document["workspace"] + ("" if document["workspace_exists"] else " (not made yet)")),
            ("settings", document["settings"]),
        ],
    )
    click.echo()
    print_table(
        ["feature", "", "missing", "what to do"],
        [
            (name, "✓" if state["ok"] else "✗", ", ".join(state["missing"]), state["hint"])
            for name, state in document["features"].items()
        ],
    )
    click.echo()
    print_table(
        ["sandbox layer", "", ""],
        [(name, "✓" if on else "✗", document["sandbox_details"][name]) for name, on in document["sandbox"].items()],
    )
