"""What each route may answer, as `/openapi.json` tells it: statuses, shapes and what they mean."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from deermem.gateway.schemas import Invalid, Problem

_AFTER_A_CHANGE: Final = "The memory as it is after the change, with the facts of the agent."
_NOT_MODIFIED: Final[dict[str, Any]] = {"description": "What the client has is current."}
_TOLD: Final = {
    400: "The content is blank, or a header is not valid.",
    401: "The caller is not known.",
    403: "The caller may not do this.",
    404: "There is no such fact or agent.",
    408: "The body did not arrive in time; nothing was changed.",
    409: "Something else came first, the same content is there already, or the cap evicted the fact.",
    413: "The body is too large.",
    415: "The body is not JSON, or is compressed.",
    429: "Too many requests of this caller.",
    431: "The head of the request is too large.",
    500: "The stored data is corrupted, or the disk failed; the detail tells if a change may be there.",
    501: "The memory backend does not support this.",
    503: "The memory is busy; nothing was changed.",
    504: "The request took too long; a change that it asked for may still be made.",
}
_OF_EVERY_ROUTE: Final = (400, 401, 403, 429, 431, 500, 501, 503, 504)
_OF_CHANGES: Final = (408, 409, 413, 415)


def answers(model: type[BaseModel], *statuses: int, changes: bool = False) -> dict[int | str, dict[str, Any]]:
    """Returns what a route may answer, for the OpenAPI document.

    Args:
        model: The body of a success.
        *statuses: What else is possible, beside what is possible for every route.
        changes: Whether the route changes something.
    """
    told: dict[int | str, dict[str, Any]] = {
        200: {"model": model, "description": _AFTER_A_CHANGE if changes else model.__doc__}
    }
    for status in sorted({*_OF_EVERY_ROUTE, *(_OF_CHANGES if changes else ()), *statuses}):
        if status == 304:
            told[304] = _NOT_MODIFIED
        elif status == 431:  # the connection is closed before anything looks at the request
            told[status] = {"description": _TOLD[status]}
        elif status == 422:
            told[422] = {"model": Invalid, "description": "A value breaks its rule."}
        else:
            told[status] = {"model": Problem, "description": _TOLD[status]}
    return told
