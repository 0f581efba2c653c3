"""Names in a query. One that a route does not take is a slip of somebody who means something by it.

`DELETE /api/memory?agnet=coder` would otherwise delete what is known of the user, and not an agent's facts.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request

from deermem.gateway.errors import MAX_PROBLEMS, Refusal, problem


def query_names(route: APIRoute) -> frozenset[str]:
    """Returns the names that a route takes in a query, by its part of the OpenAPI document."""
    told = (route.openapi_extra or {}).get("parameters", ())
    return frozenset([*_declared(route.dependant), *(each["name"] for each in told if each["in"] == "query")])


def _declared(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _declared(each)


def check_query(request: Request, known: frozenset[str]) -> None:
    """Makes sure that a query has no other names than those that are known.

    Raises:
        Refusal: It has some.
    """
    if not request.scope["query_string"]:
        return
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        rule = f"is none of {', '.join(sorted(known))}" if known else "is not known: there are no parameters"
        raise Refusal(422, [problem(("query", name), rule) for name in unknown[:MAX_PROBLEMS]])
