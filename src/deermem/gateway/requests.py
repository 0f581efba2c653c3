"""A request as the routes see it: who asks about which memory, on which conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Annotated, Any, Final, cast
from urllib.parse import quote

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json

from deermem.gateway.auth import Caller
from deermem.gateway.backend import Backend
from deermem.gateway.documents import Rendered
from deermem.gateway.errors import READ_ONLY, Operation, Refusal, invalid
from deermem.gateway.etag import TAGS_PATTERN, are_tags, is_fresh
from deermem.gateway.queries import check_query, query_names
from deermem.gateway.service import Gateway
from deermem.model.identity import DEFAULT_AGENT, MAX_AGENT_NAME, Scope

JSON: Final = "application/json"
FACTS_PATH: Final = "/api/memory/facts"
_AGENT: Final = re.compile("[A-Za-z0-9-]+")


class JsonRoute(APIRoute):
    """Takes no query that it does not know, and no body with NaN, lone surrogates or endless nesting."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Returns FastAPI's own handler for a request that parses strictly."""
        original = super().get_route_handler()
        names = query_names(self)

        async def answer(request: Request) -> Response:
            check_query(request, names)
            if self.body_field is None:
                return await original(request)
            return await original(_StrictRequest(request.scope, request.receive))

        return answer


class _StrictRequest(Request):
    async def json(self) -> Any:
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            raise JSONDecodeError(str(error), "", 0) from None


@dataclass(frozen=True, slots=True)
class Call:
    """Is a request on one memory."""

    gateway: Gateway
    scope: Scope
    if_match: tuple[str, ...]
    if_none_match: tuple[str, ...]

    async def read(self, operation: Operation, work: Callable[[Backend], Rendered]) -> Response:
        """Answers with what `work` reads, or with 304 if the client has that already."""
        return self._answer(await self.gateway.run(self.scope, operation, False, work))

    async def read_document(self, operation: Operation) -> Response:
        """Answers with the document, or with 304 if the client has that already."""
        return self._answer(await self.gateway.document(self.scope, operation))

    async def change(self, operation: Operation, work: Callable[[Backend], Rendered]) -> Response:
        """Answers with the state after what `work` changes, and with the place of a new fact."""
        rendered = await self.gateway.run(self.scope, operation, True, work)
        headers = {"ETag": rendered.etag}
        if rendered.fact_id is not None:
            of_agent = "" if self.scope.agent == DEFAULT_AGENT else f"?agent={self.scope.agent}"
            headers["Location"] = f"{FACTS_PATH}/{quote(rendered.fact_id, safe='')}{of_agent}"
        return Response(rendered.body, media_type=JSON, headers=headers)

    async def remove(self, operation: Operation, work: Callable[[Backend], None]) -> Response:
        """Answers that something is gone."""
        await self.gateway.run(self.scope, operation, True, work)
        return Response(status_code=204)

    def _answer(self, rendered: Rendered) -> Response:
        if is_fresh(rendered.etag, self.if_none_match):
            return Response(status_code=304, headers={"ETag": rendered.etag})
        return Response(rendered.body, media_type=JSON, headers={"ETag": rendered.etag})


def caller_of(request: Request) -> Caller:
    """Returns who calls, as the identification found out."""
    return cast("Caller", request.scope["state"]["caller"])


def gateway_of(request: Request) -> Gateway:
    """Returns the gateway that serves a request."""
    return cast("Gateway", request.app.state.gateway)


# To check parameters and resolve dependencies takes the framework a fifth of the time of a cached read, so
# reads do neither: the functions below look at the request.
_AGENT_PARAMETER: Final = {
    "name": "agent",
    "in": "query",
    "required": False,
    "schema": {"type": "string", "pattern": f"^{_AGENT.pattern}$", "maxLength": MAX_AGENT_NAME},
    "description": "A custom agent; without it the default one.",
}
_IF_MATCH: Final = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "schema": {"anyOf": [{"const": "*"}, {"type": "string", "pattern": TAGS_PATTERN}]},
    "description": "The `ETag` of what the change is based on; 409 if that is not current.",
}
_IF_NONE_MATCH: Final = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "The `ETag` of what the client has; 304 if that is current.",
}
# What a route adds to its part of the OpenAPI document, by what it depends on.
READING: Final = {"parameters": [_AGENT_PARAMETER, _IF_NONE_MATCH]}
CHANGING: Final = {"parameters": [_AGENT_PARAMETER, _IF_MATCH]}
REFRESHING: Final = {"parameters": [_AGENT_PARAMETER]}
OF_USER: Final = {"parameters": [_IF_NONE_MATCH]}


def reading(request: Request) -> Call:
    """Returns a request that reads, on the agent that it names.

    Raises:
        Refusal: The agent is none.
    """
    return _call(request, _agent_in(request))


def reading_of_user(request: Request) -> Call:
    """Returns a request that reads what is not of one agent."""
    return _call(request, None)


async def _changing(request: Request) -> Call:
    call = _permitted(_call(request, _agent_in(request)))
    if call.if_match and not are_tags(call.if_match):
        # As a conflict it would be tried for ever: to reload gives the same tag.
        raise invalid("If-Match", "must be entity tags with their quotes, or *", within="header")
    return call


async def _changing_of_user(request: Request) -> Call:
    call = _permitted(_call(request, None))
    if any(value.strip() != "*" for value in call.if_match):
        # It would be ignored, and the client believes that nothing happens to what it has not seen.
        raise invalid("If-Match", "does not go with this request", within="header")
    return call


# Refused before the body is looked at.
Changing = Annotated[Call, Depends(_changing)]
ChangingOfUser = Annotated[Call, Depends(_changing_of_user)]


def _call(request: Request, agent: str | None) -> Call:
    return Call(
        gateway=gateway_of(request),
        scope=Scope.of(caller_of(request).user_id, agent),
        if_match=_values(request, b"if-match"),
        if_none_match=_values(request, b"if-none-match"),
    )


def _values(request: Request, name: bytes) -> tuple[str, ...]:
    return tuple([value.decode("latin-1") for key, value in request.scope["headers"] if key == name])


def _agent_in(request: Request) -> str | None:
    """Returns the agent that the query names.

    Raises:
        Refusal: It is no agent name.
    """
    if not request.scope["query_string"]:
        return None
    agents = request.query_params.getlist("agent")
    if not agents:
        return None
    if len(agents) > 1 or len(agents[0]) > MAX_AGENT_NAME or not _AGENT.fullmatch(agents[0]):
        raise invalid("agent", "must be one name of letters, digits and '-'", within="query")
    return agents[0]


def _permitted(call: Call) -> Call:
    if call.gateway.settings.read_only:
        raise Refusal(403, READ_ONLY)
    return call


_Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        max_length=255,
        description="Makes a retry harmless: the same key and content are answered as the first time.",
    ),
]


async def _one_key(request: Request, key: _Key = None) -> str | None:
    """Returns the key of a creation.

    Raises:
        Refusal: There are several, of which a proxy could take another one.
    """
    if len(_values(request, b"idempotency-key")) > 1:
        raise invalid("Idempotency-Key", "must be there once", within="header")
    return key


IdempotencyKey = Annotated[str | None, Depends(_one_key)]


def given(model: Any) -> Mapping[str, Any]:
    """Returns the values of a request model that were given."""
    return cast("Mapping[str, Any]", model.model_dump(by_alias=True, exclude_none=True))
