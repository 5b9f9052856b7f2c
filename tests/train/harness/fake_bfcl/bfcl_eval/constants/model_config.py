"""Its registry of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MODEL_CONFIG_MAPPING: dict[str, Any] = {}


@dataclass
class ModelConfig:
    model_name: str
    display_name: str
    url: str
    org: str
    license: str
    model_handler: Any
    is_fc_model: bool = True
    underscore_to_dot: bool = False
