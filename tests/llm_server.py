"""A local OpenAI-compatible server whose answers are scripted, also broken ones.

It speaks real HTTP on 127.0.0.1 from threads, so that clients in this process and in others meet what a real server
would do to them: streams that break off, web pages, errors, silence.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-0123456789abcdef"
"""The key that servers with `key=KEY` accept."""


@dataclass(frozen=True)
class Say:
    """An answer: streamed in pieces unless the request wants it whole, or the server does not stream."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    finish: str | None = "stop"
    tokens: tuple[int, int] | None = (100, 50)  # None: this server does not count
    pieces: int = 5
    streams: bool = True


@dataclass(frozen=True)
class Drop:
    """The connection closes after some of the text."""

    text: str = "The beginning of"


@dataclass(frozen=True)
class Status:
    """An HTTP error."""

    code: int
    message: str = "something is wrong"
    error_code: str | None = None
    param: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Any bytes at all."""

    body: bytes
    content_type: str = "text/event-stream"
    code: int = 200


@dataclass(frozen=True)
class Hold:
    """Nothing is said until the test releases it (or the client gives up); then the answer."""

    until: threading.Event
    then: Say = field(default_factory=lambda: Say("late"))
    first: str = ""  # streamed before the silence


Answer = Say | Drop | Status | Raw | Hold

PAGE = Raw(b"<html><head><title>Sign in</title></head><body>Please sign in.</body></html>", "text/html")


class Server:
    """A running server. `script` is a list of answers, the last one repeated, or a function of the request.

    `requests` are the bodies received, in order; `in_flight` the most at once.
    """

    def __init__(
        self,
        script: Iterable[Answer] | Callable[[dict[str, Any]], Answer],
        *,
        key: str | None = None,
        models: tuple[str, ...] | None = None,
        refuses: tuple[str, ...] = (),
        embed: Callable[[str], list[float]] | None = None,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.in_flight = 0
        self._now = 0
        self._answers = script if callable(script) else list(script)
        self._key, self._models, self._refuses, self._embed = key, models, refuses, embed
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """What goes into `base_url`."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, body: dict[str, Any]) -> Answer:
        if self._models is not None and body["model"] not in self._models:
            return Status(404, f"The model `{body['model']}` does not exist", "model_not_found")
        for name in self._refuses:
            if name in body:
                return Status(400, f"Unsupported parameter: '{name}'", param=name)
        if callable(self._answers):
            return self._answers(body)
        with self._lock:
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def _handler(outer) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                if len(sent := self.rfile.read(size)) < size:  # the client was killed
                    return
                body = json.loads(sent)
                with outer._lock:
                    outer.requests.append(body)
                    outer.paths.append(self.path)
                    outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                    outer._now += 1
                    outer.in_flight = max(outer.in_flight, outer._now)
                try:
                    self._respond(body)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                finally:
                    with outer._lock:
                        outer._now -= 1

            def _respond(self, body: dict[str, Any]) -> None:
                if outer._key and self.headers.get("Authorization") != f"Bearer {outer._key}":
                    sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
                    return self._fail(Status(401, f"Incorrect API key provided: {sent}.", "invalid_api_key"))
                if self.path.split("?")[0].endswith("/embeddings"):
                    return self._embeddings(body)
                if "chat/completions" not in self.path:
                    return self._fail(Status(404, f"no such path {self.path}"))
                answer = outer._answer(body)
                if isinstance(answer, Status):
                    return self._fail(answer)
                if isinstance(answer, Raw):
                    return self._whole(answer.code, answer.content_type, answer.body)
                if isinstance(answer, Say) and not (answer.streams and body.get("stream")):
                    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal or None}
                    choice = {"index": 0, "message": message, "finish_reason": answer.finish}
                    document = {"id": "x", "object": "chat.completion", "created": 0, "model": body["model"]}
                    document |= {"choices": [choice], "usage": _usage(answer.tokens)}
                    return self._whole(200, "application/json", json.dumps(document).encode())
                return self._stream(body, answer)

            def _fail(self, status: Status) -> None:
                error = {"message": status.message, "code": status.error_code, "param": status.param, "type": "error"}
                self._whole(status.code, "application/json", json.dumps({"error": error}).encode(), status.headers)

            def _whole(self, code: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def _stream(self, body: dict[str, Any], answer: Say | Drop | Hold) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")  # the end of the stream is the end of the connection
                self.end_headers()
                self.close_connection = True
                if isinstance(answer, Drop):
                    self._event(body, {"content": answer.text})
                    return
                if isinstance(answer, Hold):
                    if answer.first:
                        self._event(body, {"content": answer.first})
                    answer.until.wait(30)
                    answer = answer.then
                for name, whole in (
                    ("reasoning_content", answer.thinking),
                    ("content", answer.text),
                    ("refusal", answer.refusal),
                ):
                    size = max(1, -(-len(whole) // answer.pieces))
                    for at in range(0, len(whole), size):
                        self._event(body, {name: whole[at : at + size]})
                self._event(body, {}, answer.finish)
                if answer.tokens and (body.get("stream_options") or {}).get("include_usage"):
                    self._event(body, None, usage=_usage(answer.tokens))
                self.wfile.write(b"data: [DONE]\n\n")

            def _event(self, body: dict[str, Any], delta: Any, finish: str | None = None, usage: Any = None) -> None:
                choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
                chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
                self.wfile.write(f"data: {json.dumps(chunk | {'choices': choices, 'usage': usage})}\n\n".encode())
                self.wfile.flush()

            def _embeddings(self, body: dict[str, Any]) -> None:
                if outer._embed is None:
                    return self._fail(Status(404, "this server has no embeddings"))
                data = [
                    {"object": "embedding", "index": n, "embedding": outer._embed(text)}
                    for n, text in enumerate(body["input"])
                ]
                usage = {"prompt_tokens": 7, "total_tokens": 7}
                document = {"object": "list", "data": data, "model": body["model"], "usage": usage}
                return self._whole(200, "application/json", json.dumps(document).encode())

        return Handler


def _usage(tokens: tuple[int, int] | None) -> dict[str, int] | None:
    if tokens is None:
        return None
    return {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
