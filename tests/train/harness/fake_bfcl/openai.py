"""As much of the openai package as the pretended BFCL needs; the real one takes seconds to import."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any


class OpenAI:
    def __init__(self, *, api_key: str, base_url: str, timeout: float) -> None:
        self._key, self._url, self._timeout = api_key, base_url, timeout
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, **body: Any) -> Any:
        request = urllib.request.Request(
            f"{self._url}/chat/completions",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as reply:
                return json.load(reply, object_hook=lambda fields: SimpleNamespace(**fields))
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"Error code: {error.code} - {error.read().decode()}") from None
