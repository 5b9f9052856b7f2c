"""Runs one tool call on a program, in one of two ways that give the same answer.

A *plain* route, one that needs nothing but its parameters, is called directly: arguments are validated by FastAPI's
own functions and the endpoint's result is serialised as FastAPI would. Any other route, and any unusual argument, goes
the way it goes upstream: httpx makes a request of it and the whole application answers.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.datastructures import DefaultPlaceholder
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.encoders import jsonable_encoder
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.params import Form
from fastapi.routing import APIRouter, RouteContext, iter_route_contexts
from fastapi.utils import is_body_allowed_for_status_code
from pydantic_core import PydanticUndefined
from starlette.convertors import StringConvertor
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from pipeline.runtime.listing import ToolRoute
from pipeline.runtime.loop import outside_loop

BASE_URL = "http://apiserver"  # fastapi-mcp's; nothing listens there

_SAFE_PATH_VALUE = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.~@:+, -]+")
"""Path parameters that mean the same with and without a trip through a URL."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

_DEFAULT_HANDLERS = FastAPI().exception_handlers

_NO_REQUEST = Request({"type": "http"})  # FastAPI's own exception handlers take one and do not look at it


class Answer(NamedTuple):
    """What a call came to: an HTTP status with its body as text.

    `error` is the exception behind a server error, if one was seen. Status None means that no request could be made
    of the arguments; `content` then says why.
    """

    status: int | None
    content: str
    error: BaseException | None = None


class Invoker:
    """Calls one tool of an app. `answer` is a coroutine; run it on the program's loop."""

    def __init__(self, app: FastAPI, entry: ToolRoute) -> None:
        self._app = app
        self._entry = entry
        self._plain = _PlainRoute(app, entry) if is_plain(app, entry) else None

    async def answer(self, arguments: Mapping[str, Any], *, direct: bool = True) -> Answer:
        """Call the tool; `direct=False` goes through the whole application even where that is not needed."""
        request = _split(self._entry, arguments)
        if direct and self._plain is not None and self._plain.takes(request):
            return await self._plain.answer(request)
        return await self._through_app(request)

    @functools.cached_property
    def _recorder(self) -> _ErrorRecorder:
        return _ErrorRecorder(_app_with_only(self._app, self._entry.route) if self._entry.shadowed else self._app)

    @functools.cached_property
    def _client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self._recorder, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=BASE_URL, trust_env=False)

    async def _through_app(self, request: _Request) -> Answer:
        self._recorder.error = None
        tool = self._entry.tool
        body = request.body if tool.method in _WITH_BODY else None
        try:
            response = await self._client.request(
                tool.method, request.path, params=request.query, headers=request.headers, json=body
            )
        except Exception as error:  # no URL or JSON can be made of the arguments
            return Answer(None, str(error), error)
        finally:
            self._client.cookies.clear()
        return Answer(response.status_code, response.text, self._recorder.error)


_WITH_BODY = ("POST", "PUT", "PATCH")  # upstream sends no body with GET and DELETE


class _Request(NamedTuple):
    path: str
    path_values: dict[str, str]
    query: dict[str, Any]
    headers: dict[str, Any]
    body: dict[str, Any] | None


def _split(entry: ToolRoute, arguments: Mapping[str, Any]) -> _Request:
    """Arguments divided among path, query, headers and body, as upstream divides them."""
    left = dict(arguments)
    path = entry.tool.path
    values = {name: str(left.pop(name)) for name in entry.path_parameters if name in left}
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    query = {name: left.pop(name) for name in entry.query_parameters if name in left}
    headers = {name: left.pop(name) for name in entry.header_parameters if name in left}
    return _Request(path, values, query, headers, left or None)


def is_plain(app: FastAPI, entry: ToolRoute) -> bool:
    """Whether a route needs nothing but its path, query and JSON body parameters, and nothing wraps the app."""
    route, needs = entry.route, entry.route.dependant
    call = needs.call
    return (
        not app.user_middleware
        and app.exception_handlers == _DEFAULT_HANDLERS
        and not app.dependency_overrides
        and not app.root_path
        and app.max_body_size is None
        and route.max_body_size is None
        and not (needs.dependencies or needs.header_params or needs.cookie_params)
        and not any(getattr(needs, f"{kind}_param_name") for kind in _SPECIAL_PARAMETERS)
        and not any(isinstance(field.field_info, Form) for field in needs.body_params)
        and all(type(convertor) is StringConvertor for convertor in route.param_convertors.values())
        and inspect.isfunction(call)
        and not hasattr(call, "__wrapped__")
        and not inspect.isgeneratorfunction(call)
        and not inspect.isasyncgenfunction(call)
    )


_SPECIAL_PARAMETERS = ("request", "websocket", "http_connection", "response", "background_tasks", "security_scopes")


class _PlainRoute:
    """The direct way to a plain route."""

    def __init__(self, app: FastAPI, entry: ToolRoute) -> None:
        route = entry.route
        self._route = route
        self._needs = route.dependant
        self._with_body = bool(route.body_field) and entry.tool.method in _WITH_BODY
        self._has_body_fields = bool(route.body_field)
        self._awaits = inspect.iscoroutinefunction(route.dependant.call)
        self._parameters = set(entry.path_parameters)
        self._rivals = [] if entry.shadowed else list(_rivals(app, entry))
        chosen = route.response_class
        self._response_class = None if isinstance(chosen, DefaultPlaceholder) else chosen

    def takes(self, request: _Request) -> bool:
        """Whether the request means the same without a URL around it, and the router would send it here."""
        if request.headers or len(request.path_values) < len(self._parameters):
            return False
        if not all(_SAFE_PATH_VALUE.fullmatch(value) for value in request.path_values.values()):
            return False
        found = self._route.path_regex.match(request.path)
        if found is None or found.groupdict() != request.path_values:  # `/{a}-{b}` may be read in two ways
            return False
        if any(pattern.match(request.path) for pattern in self._rivals):
            return False
        try:
            _json([request.body, request.query])
        except (ValueError, TypeError):
            return False
        return True

    async def answer(self, request: _Request) -> Answer:
        """Validate, call, serialise."""
        try:
            return await self._respond(request)
        except HTTPException as error:
            return _text_of(await http_exception_handler(_NO_REQUEST, error))
        except RequestValidationError as error:
            return _text_of(await request_validation_exception_handler(_NO_REQUEST, error))
        except Exception as error:
            return Answer(500, "Internal Server Error", error)

    async def _respond(self, request: _Request) -> Answer:
        needs = self._needs
        values, errors = request_params_to_args(needs.path_params, request.path_values)
        if needs.query_params:
            found, wrong = request_params_to_args(needs.query_params, QueryParams(list(_query_items(request.query))))
            values.update(found)
            errors += wrong
        if self._has_body_fields:
            body = request.body if self._with_body and request.body is not None else PydanticUndefined
            found, wrong = await request_body_to_args(needs.body_params, body, self._route._embed_body_fields)
            values.update(found)
            errors += wrong
        if errors:
            raise RequestValidationError(errors)
        result = await needs.call(**values) if self._awaits else outside_loop(needs.call, **values)
        if not isinstance(result, Response):
            content = self._serialised(result)
            status = self._route.status_code or 200
            if self._response_class is None:
                return Answer(status, _json(content) if is_body_allowed_for_status_code(status) else "")
            options = {"status_code": self._route.status_code} if self._route.status_code else {}
            result = self._response_class(content, **options)
            if not is_body_allowed_for_status_code(result.status_code):
                result.body = b""
        return await _sent(result, self._route, request)

    def _serialised(self, result: Any) -> Any:
        route = self._route
        field = route.response_field
        if field is None:
            return jsonable_encoder(result)
        value, errors = field.validate(result, {}, loc=("response",))
        if errors:
            raise ResponseValidationError(errors=errors, body=result)
        return field.serialize(
            value,
            include=route.response_model_include,
            exclude=route.response_model_exclude,
            by_alias=route.response_model_by_alias,
            exclude_unset=route.response_model_exclude_unset,
            exclude_defaults=route.response_model_exclude_defaults,
            exclude_none=route.response_model_exclude_none,
        )


def _json(content: Any) -> str:
    """JSON as Starlette's JSONResponse writes it; ValueError for what is not JSON (NaN) or not UTF-8."""
    text = _encode(content)
    text.encode()  # a lone surrogate has no bytes to be sent as
    return text


def refuse_nan(app: FastAPI) -> None:
    """Make an app's routes write responses as FastAPI 0.115 did.

    Newer versions let pydantic write the JSON, which turns NaN into null where upstream answers with an error.
    """
    for route in iter_route_contexts(app.routes):
        field = getattr(route, "response_field", None)
        if field is not None:
            field.serialize_json = _strict_json(field)


def _strict_json(field: Any) -> Any:
    def serialize_json(value: Any, **options: Any) -> bytes:
        return _json(field.serialize(value, **options)).encode("utf-8")

    return serialize_json


def _query_items(query: Mapping[str, Any]) -> Any:
    """Query parameters as httpx writes them and Starlette reads them back."""
    for name, value in query.items():
        for item in value if isinstance(value, list | tuple) else (value,):
            yield name, _query_text(item)


def _query_text(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    return "" if value is None else str(value)


def _text_of(response: Response) -> Answer:
    return Answer(response.status_code, bytes(response.body).decode("utf-8"))


async def _sent(response: Response, route: RouteContext, request: _Request) -> Answer:
    """What a client receives of a response that the endpoint made itself."""
    scope = {"type": "http", "asgi": {"version": "3.0"}, "method": next(iter(route.methods or ["GET"])), "headers": []}
    messages: list[Any] = []
    gone = asyncio.Event()

    async def receive() -> Any:
        await gone.wait()  # the client stays for as long as it takes
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(message)

    await response(scope, receive, send)
    start = messages[0]
    body = b"".join(message.get("body", b"") for message in messages[1:])
    received = httpx.Response(start["status"], headers=start["headers"], content=body)
    return Answer(received.status_code, received.text)


def _rivals(app: FastAPI, entry: ToolRoute) -> Any:
    """Patterns of earlier routes that some, but not all, requests for this one match."""
    for other in iter_route_contexts(app.routes):
        if other.original_route is entry.route.original_route and other.path_format == entry.route.path_format:
            return
        pattern = getattr(other, "path_regex", None)
        if pattern is not None and entry.tool.method in (other.methods or {entry.tool.method}):
            yield pattern


class _ErrorRecorder:
    """An ASGI app that remembers the exception that another one raised."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.error: BaseException | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            self.error = error
            raise


class _OnlyRoute(BaseRoute):
    """A route on its own, with no earlier one to take its requests."""

    def __init__(self, route: RouteContext) -> None:
        self._route = route

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the path is this route's."""
        found = self._route.path_regex.match(scope["path"])
        if found is None:
            return Match.NONE, {}
        convertors = self._route.param_convertors
        values = {name: convertors[name].convert(value) for name, value in found.groupdict().items()}
        return Match.FULL, {"endpoint": self._route.endpoint, "path_params": values, "route": self._route}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        await self._route.app(scope, receive, send)


def _app_with_only(app: FastAPI, route: RouteContext) -> FastAPI:
    """The app with its middleware and handlers, and one route."""
    twin = copy.copy(app)
    twin.router = APIRouter(routes=[_OnlyRoute(route)], redirect_slashes=app.router.redirect_slashes)
    twin.middleware_stack = None
    return twin
