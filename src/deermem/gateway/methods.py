"""What the framework leaves out of methods: `HEAD` wherever there is `GET`, and all that a path takes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send


class HeadAsGet:
    """Lets `HEAD` be answered as `GET` (pure ASGI; the server sends no body, since it knows what was asked).

    The routes do not name `HEAD`, so it does not double the OpenAPI document.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        await self._app({**scope, "method": "GET"} if is_head else scope, receive, send)


def methods_at(request: Request) -> list[str]:
    """Returns the methods of a path; a route of just this path comes before one with a parameter."""
    path = request.scope["path"]
    matching = [route for route in request.app.state.routes if route.path_regex.fullmatch(path)]
    found = [route for route in matching if route.path == path] or matching
    methods = {method for route in found for method in route.methods}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)
