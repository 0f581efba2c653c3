"""Routes for whoever runs the gateway: is it alive, can it serve, what did it count, what does it offer."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from deermem.gateway.auth import Role
from deermem.gateway.errors import Refusal
from deermem.gateway.pages import page_of
from deermem.gateway.requests import caller_of, gateway_of
from deermem.gateway.schemas import Health

router: Final = APIRouter()

FORBIDDEN: Final = "This needs another role."
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


async def _watching(request: Request) -> None:
    gateway = gateway_of(request)
    if gateway.has_roles and caller_of(request).role not in (Role.SERVICE, Role.ADMINISTRATOR):
        raise Refusal(403, FORBIDDEN)


@router.get("/healthz", tags=["service"], responses={200: {"model": Health, "description": "It lives."}})
async def is_alive() -> Response:
    """Says that the gateway lives."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/readyz",
    tags=["service"],
    responses={
        200: {"model": Health, "description": "It can serve."},
        503: {"model": Health, "description": "It cannot serve now."},
    },
)
async def is_ready(request: Request) -> Response:
    """Says whether the gateway can serve: it has started, does not stop, and reaches its storage."""
    ready = await gateway_of(request).is_ready()
    return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)


@router.get("/metrics", include_in_schema=False, dependencies=[Depends(_watching)])
async def get_metrics(request: Request) -> Response:
    """Returns what was counted, for Prometheus."""
    return Response(gateway_of(request).metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/openapi.json", include_in_schema=False)
async def get_openapi(request: Request) -> Response:
    """Returns the OpenAPI document."""
    return JSONResponse(_openapi(request))


@router.get("/docs", include_in_schema=False)
async def get_docs(request: Request) -> Response:
    """Returns a page that shows the OpenAPI document, without scripts and without other servers."""
    return HTMLResponse(page_of(_openapi(request)), headers={"Content-Security-Policy": _POLICY})


def _openapi(request: Request) -> dict[str, Any]:
    document: dict[str, Any] = request.app.openapi()
    return document
