"""The optional parts of an installation that curation needs, and what to say where one is missing."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping

from pipeline.errors import UserError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "concepts": ("numpy", "scipy", "sklearn", "sentence_transformers", "umap", "plotly"),
    "pictures": ("PIL",),
    "hf": ("pyarrow", "datasets", "huggingface_hub"),
    "train": ("torch", "transformers", "trl", "accelerate", "peft", "datasets"),
}
"""The modules that each extra of this package brings."""

BUNDLED = "all-MiniLM-L6-v2"
"""The default model: sentence-transformers/all-MiniLM-L6-v2, from a package that carries its weights."""


def missing(extra: str) -> tuple[str, ...]:
    """The modules of an extra that are not installed. Nothing is imported to find out."""
    return tuple(module for module in EXTRAS[extra] if importlib.util.find_spec(module) is None)


def require(extra: str, purpose: str) -> None:
    """Raise UserError, with the command that puts it right, unless an extra is installed."""
    if absent := missing(extra):
        raise UserError(
            f"{purpose} needs {', '.join(absent)}, which is not installed: make install-all in the checkout, "
            f"or {sys.executable} -m pip install -c constraints.txt '.[{extra}]'."
        )
