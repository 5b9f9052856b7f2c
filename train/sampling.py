"""How models are sampled when they are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile

SAMPLING: Mapping[str, Any] = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}
"""In evaluation (arXiv 2602.10090, table 8)."""


def sampled(profile: Profile, asked: Mapping[str, Any] = {}) -> Profile:
    """A profile that is sampled as in the paper, unless it or `asked` says otherwise.

    A `top_k` of 0 is not sent, and neither is any to OpenAI's own servers, which refuse it.
    """
    params = {**SAMPLING, **profile.params, **asked}
    if is_openai(profile) or not params["top_k"]:
        del params["top_k"]
    return profile.model_copy(update={"params": params})


def is_openai(profile: Profile) -> bool:
    """Whether a model is behind OpenAI's own API, or Azure's."""
    host = urlsplit(profile.base_url).hostname or ""
    return host.endswith("openai.com") or profile.api == "azure"
