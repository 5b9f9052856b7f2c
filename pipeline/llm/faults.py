"""What can go wrong between us and a model, as one exception with a kind, and how server errors become it."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile


class FaultKind(StrEnum):
    """Why there is no usable reply."""

    no_key = "no_key"
    wrong_key = "wrong_key"
    unknown_model = "unknown_model"
    no_route = "no_route"  # no server at the address
    timeout = "timeout"
    html = "html"  # something answers, but not an API
    dropped = "dropped"  # the stream ended before the reply did
    rate_limited = "rate_limited"
    quota = "quota"  # no credit left with the provider
    server_error = "server_error"
    bad_request = "bad_request"
    context_overflow = "context_overflow"
    length = "length"  # cut by the token limit, however high
    empty = "empty"
    refusal = "refusal"
    not_recorded = "not_recorded"  # --replay, and nobody has asked this before
    budget = "budget"
    disk_full = "disk_full"


CLOSING = frozenset({FaultKind.wrong_key, FaultKind.unknown_model, FaultKind.no_route, FaultKind.html, FaultKind.quota})
"""Kinds that every other request of the same profile would meet too: it is not asked again until somebody says so."""

PASSING = frozenset(
    {FaultKind.no_route, FaultKind.timeout, FaultKind.dropped, FaultKind.rate_limited, FaultKind.server_error}
)
"""Kinds that may go away by themselves: worth another try."""

ANSWERED = frozenset({FaultKind.empty, FaultKind.refusal, FaultKind.length})
"""Kinds where the model did answer, so that another attempt with a correction may help."""


class ModelFault(Exception):
    """No usable reply. `str()` is what happened, then what to do; it never contains a key."""

    def __init__(self, kind: FaultKind, message: str, remedy: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.kind = kind
        self.message = message
        self.remedy = remedy
        self.retry_after = retry_after  # seconds the server asked to wait


_OVERFLOW = re.compile(r"context.{0,20}(length|window|size)|maximum context|too many tokens|prompt is too long", re.I)


def says_overflow(text: str) -> bool:
    """Whether a server's words mean that a request does not fit into the model's context."""
    return bool(_OVERFLOW.search(text))


def from_exception(error: Exception, profile: Profile, key: str) -> ModelFault:
    """The fault that an exception of the openai package, or of reading its stream, stands for."""
    import openai

    body = getattr(error, "body", None)
    told = body.get("message") if isinstance(body, dict) else None
    what = _without(key, re.sub(r"^Error code: \d+ - ", "", str(told or getattr(error, "message", "") or error)))
    where = f"{profile.model} at {profile.base_url}"
    if isinstance(error, openai.APITimeoutError):
        return ModelFault(
            FaultKind.timeout,
            f"{where} was silent for {profile.timeout_s:g} seconds.",
            "Try again, or raise timeout_s in the profile for a slow model.",
        )
    if isinstance(error, openai.APIConnectionError):
        cause = _without(key, str(error.__cause__ or "")) or what
        return ModelFault(
            FaultKind.no_route,
            f"there is no connection to {profile.base_url} ({cause.rstrip('.')}).",
            "Check that the server runs and that base_url is right.",
        )
    if isinstance(error, openai.APIStatusError):
        return _from_status(error, profile, what)
    if isinstance(error, openai.APIError):  # an error sent inside the stream
        return _from_text(what, where) or ModelFault(
            FaultKind.server_error, f"{where} broke off with: {_short(what)}.", "Try again later."
        )
    return ModelFault(
        FaultKind.dropped,
        f"the reply of {where} broke off and cannot be read ({type(error).__name__}: {_short(what)}).",
        "Try again; if it keeps happening, look at the server's log.",
    )


def from_html(profile: Profile, status: int, body: str) -> ModelFault:
    """The fault of an answer that is a web page where an API was expected."""
    title = re.search(r"<title[^>]*>(.*?)</title>", body, re.I | re.S)
    named = f" titled {title.group(1).strip()!r}" if title else ""
    return ModelFault(
        FaultKind.html,
        f"{profile.base_url} answers with a web page{named} (HTTP {status}), not with a model's reply.",
        "Check base_url: it usually ends in /v1, and a proxy or sign-in page may be in between.",
    )


def _from_status(error: Any, profile: Profile, what: str) -> ModelFault:
    where, status = f"{profile.model} at {profile.base_url}", error.status_code
    page = "html" in error.response.headers.get("content-type", "")
    if page and status < 500:
        return from_html(profile, status, error.response.text)
    told = _short("a web page" if page else what)
    if status == 429 and (error.code == "insufficient_quota" or "quota" in what.lower()):
        status = 402
    if overflow := _from_text(what, where) if status in (400, 413, 422) else None:
        return overflow
    kind, message, remedy = _BY_STATUS.get(status) or (_SERVER if status >= 500 else _REFUSED)
    said = message.format(
        where=where, model=profile.model, url=profile.base_url, key=profile.api_key_env or "(none sent)", status=status
    )
    passing = kind in (FaultKind.rate_limited, FaultKind.server_error)
    wait = retry_after(error.response.headers) if passing else None
    return ModelFault(kind, f"{said} (HTTP {error.status_code}: {told}).", remedy, retry_after=wait)


_SERVER = (FaultKind.server_error, "{where} has a fault of its own", "Resume later, or choose another server.")
_REFUSED = (
    FaultKind.bad_request,
    "{where} does not accept the request",
    "Check params in the profile against what this server knows.",
)
_KEY = (
    FaultKind.wrong_key,
    "{url} refuses the key in {key}",
    "Put a valid key into that environment variable and resume.",
)
_BY_STATUS = {
    401: _KEY,
    402: (FaultKind.quota, "the account behind {where} has no credit left", "Add credit, then resume."),
    403: _KEY,
    404: (
        FaultKind.unknown_model,
        "{url} knows no model {model!r}",
        "Check the model's name and that base_url ends where the API begins, usually in /v1.",
    ),
    408: _SERVER,
    409: _SERVER,
    429: (
        FaultKind.rate_limited,
        "{where} refuses for now: too many requests",
        "Lower concurrency in the profile, or resume later.",
    ),
}


def _from_text(what: str, where: str) -> ModelFault | None:
    if not says_overflow(what):
        return None
    return ModelFault(
        FaultKind.context_overflow,
        f"the request does not fit into the context of {where} ({_short(what)}).",
        "Choose a model with a larger context for this stage, or lower max_tokens in its profile.",
    )


def retry_after(headers: Any) -> float | None:
    """Seconds a server asks to wait (`retry-after-ms`, or `Retry-After` in seconds or as a date), or None."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        if ms := headers.get("retry-after-ms"):
            return max(0.0, float(ms) / 1000)
        if not (value := headers.get("retry-after")):
            return None
        if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value)
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _short(text: str, limit: int = 300) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= limit else f"{line[:limit]}…"


def _without(key: str, text: str) -> str:
    """The text without the key, whole or as servers quote it (`sk-ab****yz`)."""
    if key:
        text = text.replace(key, "[key]")
    return re.sub(r"\b(sk|pk|key)-[A-Za-z0-9_\-*]{6,}", "[key]", text)
