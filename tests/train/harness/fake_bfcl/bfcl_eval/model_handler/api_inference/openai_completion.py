"""Its handler for OpenAI-compatible servers."""

from __future__ import annotations

from enum import Enum
from typing import Any


class ModelStyle(Enum):
    OpenAI_Completions = "openai"


class BaseHandler:
    def __init__(self, model_name: str, temperature: float) -> None:
        self.model_name, self.temperature = model_name, temperature


class OpenAICompletionsHandler(BaseHandler):
    client: Any

    def __init__(self, model_name: str, temperature: float) -> None:
        raise AssertionError("this would ask OpenAI's own server")

    def generate_with_backoff(self, **fields: Any) -> Any:
        assert "store" not in fields
        return self.client.chat.completions.create(**fields)
