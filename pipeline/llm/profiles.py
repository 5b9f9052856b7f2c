"""Which model answers: server, model name, parameters, prices. Keys are named, never held."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pipeline.errors import UserError
from pipeline.llm.faults import FaultKind, ModelFault

DEFAULT = "default"
"""The profile that is used where no other is named."""

RESERVED_PARAMS = frozenset({"messages", "model", "stream", "stream_options", "response_format", "n", "api_key"})
"""Request fields that the client sets itself, so a profile may not."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that are this machine."""


class Prices(BaseModel):
    """US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    """Of prompt tokens the server had cached; None: the same as `input`."""

    def usd(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
        """What a call cost, in US dollars."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((tokens_in - cached) * self.input + cached * cached_price + tokens_out * self.output) / 1e6


class Profile(BaseModel):
    """A model behind an OpenAI-compatible server, as one section `[profiles.NAME]` of the settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    """The model's name as the server knows it; with `api = "azure"` the deployment's name."""
    base_url: str = "https://api.openai.com/v1"
    """Where the server is; with `api = "azure"` the resource, for example `https://NAME.openai.azure.com`."""
    api: Literal["openai", "azure"] = "openai"
    api_version: str = "2024-10-21"
    """Azure only: the version of its API (the newest generally available one at the time of writing)."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key; empty for a server that wants none."""
    params: dict[str, Any] = {}
    """Sent with every request as they are, for example `temperature` or `reasoning_effort`."""
    prices: Prices | None = None
    """None: what this model costs is not known, and is shown as such."""
    max_tokens: int = Field(default=16_384, ge=1)
    """The most tokens one reply may have, thinking included."""
    max_tokens_ceiling: int = Field(default=65_536, ge=1)
    """How far `max_tokens` may be raised for a reply that was cut."""
    structured: Literal["auto", "schema", "object", "text"] = "auto"
    """How JSON is asked for: by schema, as any JSON object, in words only; `auto` tries them in this order."""
    concurrency: int = Field(default=8, ge=1, le=1024)
    """Requests in flight at once."""
    timeout_s: float = Field(default=180.0, gt=0)
    """Seconds of silence after which a request counts as lost."""
    retries: int = Field(default=6, ge=0, le=50)
    """Further tries after an answer that may go away by itself (408, 409, 429, 5xx, a dropped stream)."""

    @field_validator("base_url")
    @classmethod
    def _without_credentials(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an http(s) address, for example http://localhost:8000/v1")
        if parts.username or parts.password:
            raise ValueError("a base_url holds no user or password: name an environment variable in api_key_env")
        return url.rstrip("/")

    @field_validator("params")
    @classmethod
    def _only_parameters(cls, params: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(RESERVED_PARAMS & set(params)):
            raise ValueError(f"params may not set {', '.join(taken)}: the client sets it for each request")
        return params

    def key(self) -> str:
        """The API key from the environment; an empty string where none is wanted.

        A server on this machine is asked without a key where there is none. Raises ModelFault elsewhere.
        """
        if not self.api_key_env:
            return ""
        key = os.environ.get(self.api_key_env, "").strip()
        if not key and urlsplit(self.base_url).hostname not in LOOPBACK:
            raise ModelFault(
                FaultKind.no_key,
                f"there is no key for {self.model}: the environment variable {self.api_key_env} is not set.",
                f"Set {self.api_key_env}, or set api_key_env to an empty text for a server that wants none.",
            )
        return key


def from_environment(environ: Mapping[str, str] = os.environ) -> Profile | None:
    """The profile that environment variables describe, or None where they name no model.

    `AWM_MODEL` names the model; `AWM_BASE_URL` (else `OPENAI_BASE_URL`) the server; the key is `AWM_API_KEY`, else
    `OPENAI_API_KEY`.
    """
    model = environ.get("AWM_MODEL")
    if not model:
        return None
    fields = {"model": model}
    if url := environ.get("AWM_BASE_URL") or environ.get("OPENAI_BASE_URL"):
        fields["base_url"] = url
    if environ.get("AWM_API_KEY"):
        fields["api_key_env"] = "AWM_API_KEY"
    return Profile.model_validate(fields)


def choose(
    profiles: Mapping[str, Profile], name: str | None, *, model: str | None = None, base_url: str | None = None
) -> Profile:
    """The profile of that name, or the usual one: "default", else the environment's, else the only one there is.

    `model` is another profile's name, or replaces the model; `base_url` replaces the server. Raises UserError where
    there is no such profile, or none at all.
    """
    if model is not None and model in profiles and base_url is None:
        return profiles[model]
    if name is not None and name not in profiles:
        there = f"there are {', '.join(sorted(profiles))}" if profiles else "the settings have no profiles"
        raise UserError(f"There is no model profile {name!r}: {there}.")
    usual = profiles.get(name or DEFAULT) or from_environment()
    if usual is None and len(profiles) == 1:
        usual = next(iter(profiles.values()))
    if usual is None and model is None:
        raise UserError(
            "No model is set up: give --model and --base-url, set AWM_MODEL and AWM_BASE_URL, or put a section "
            f"[profiles.{DEFAULT}] with model, base_url and api_key_env into the settings."
        )
    fields = usual.model_dump(exclude_unset=True) if usual else {}
    if model is not None and model != fields.get("model"):
        fields = {key: value for key, value in fields.items() if key != "prices"} | {"model": model}
    if base_url is not None:
        fields["base_url"] = base_url
    try:
        return Profile.model_validate(fields)
    except ValidationError as error:
        raise UserError(f"The model cannot be used: {error.errors()[0]['msg']}.") from None
