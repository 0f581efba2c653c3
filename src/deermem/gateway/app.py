"""Puts the gateway together: routes, layers, and what goes wrong between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from deermem.asgi.identification import Identification, PrivateAnswers
from deermem.asgi.limits import BodyLimit, CallerRates, LimitSettings, RateLimit, TimeLimit
from deermem.gateway import routes_agents, routes_facts, routes_memory, routes_service
from deermem.gateway.auth import Authenticator
from deermem.gateway.browser import BrowserGuard
from deermem.gateway.errors import MAX_PROBLEMS, Refusal, problem
from deermem.gateway.methods import HeadAsGet, methods_at
from deermem.gateway.metrics import Counting
from deermem.gateway.openapi import add_security
from deermem.gateway.service import Gateway

_ROUTERS: Final = (routes_memory.router, routes_facts.router, routes_agents.router, routes_service.router)
# For whoever starts and watches the gateway; they tell nothing about anybody's memory.
OPEN_PATHS: Final = frozenset(["/healthz", "/readyz"])
_ABOUT: Final = (
    "What agents remember of their users: summaries and facts, kept as files that a person can read."
)


def create_app(gateway: Gateway, authenticator: Authenticator, limits: LimitSettings) -> FastAPI:
    """Returns the ASGI application of a gateway, which it opens and closes with its lifespan.

    Args:
        gateway: What the routes ask.
        authenticator: Says who calls.
        limits: What one request, and one caller, may take.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        gateway.is_open = True
        try:
            yield
        finally:
            await gateway.close()

    app = FastAPI(
        title="DeerMem",
        description=_ABOUT,
        version=version("deermem"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
        exception_handlers={
            Refusal: _answer_refusal,
            RequestValidationError: _answer_invalid,
            HTTPException: _answer_http,
        },
    )
    app.state.gateway = gateway
    app.state.routes = [route for routes in _ROUTERS for route in routes.routes]
    for router in _ROUTERS:
        app.include_router(router)
    add_security(app, authenticator.identifying_headers)
    # The framework builds its routes and its document when they are first asked for, and changes which
    # warnings the whole process shows while it does. No request is to wait for it, no thread to meet it.
    app.openapi()
    _add_layers(app, gateway, authenticator, limits)
    return app


def _add_layers(app: FastAPI, gateway: Gateway, authenticator: Authenticator, limits: LimitSettings) -> None:
    """Puts layers around an application; the one that is added last is the outermost."""
    identifying = authenticator.identifying_headers
    app.add_middleware(BodyLimit, limit=limits.body_bytes)
    if identifying:  # else there is one caller, and nobody to protect from it
        app.add_middleware(RateLimit, rates=CallerRates.of(limits))
    app.add_middleware(
        Identification,
        identify=authenticator.authenticate,
        reads_files=bool(identifying),
        open_paths=OPEN_PATHS,
    )
    app.add_middleware(TimeLimit, seconds=limits.request_seconds)  # credentials may be on a disk that hangs
    app.add_middleware(BrowserGuard, only_loopback=not identifying, origins=gateway.settings.allowed_origins)
    app.add_middleware(PrivateAnswers, identifying_headers=identifying, cache_control="private, no-cache")
    app.add_middleware(Counting, metrics=gateway.metrics)
    app.add_middleware(HeadAsGet)


async def _answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)  # noqa: S101 - for the type checker
    return error.response()


async def _answer_http(request: Request, error: Exception) -> Response:
    """Answers what the framework refuses: no such route, no such method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
    headers = dict(error.headers or {})
    if error.status_code == 405:  # the framework names the methods of one route alone
        headers["Allow"] = ", ".join(methods_at(request))
    return Refusal(error.status_code, str(error.detail), headers).response()


async def _answer_invalid(_: Request, error: Exception) -> Response:
    """Answers a request that does not fit its model; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker
    return Refusal(422, [_told(each) for each in error.errors()[:MAX_PROBLEMS]]).response()


def _told(found: dict[str, Any]) -> dict[str, Any]:
    reason = found.get("ctx", {}).get("error", "") if found["type"] == "json_invalid" else ""
    message = f"{found['msg']}: {reason}" if reason else str(found["msg"])
    return problem(tuple(found["loc"]), message, str(found["type"]))
