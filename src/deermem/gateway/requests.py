"""A request as the routes see it: who asks about which memory, on which conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Annotated, Any, Final, cast

from fastapi import Depends, Header, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json

from deermem.gateway.auth import Caller
from deermem.gateway.backend import Backend
from deermem.gateway.documents import Rendered
from deermem.gateway.errors import READ_ONLY, Operation, Refusal
from deermem.gateway.etag import is_fresh
from deermem.gateway.service import Gateway
from deermem.model.identity import MAX_AGENT_NAME, Scope

JSON: Final = "application/json"
_AGENT: Final = r"^[A-Za-z0-9-]+$"

AgentParameter = Annotated[
    str | None,
    Query(
        alias="agent",
        pattern=_AGENT,
        max_length=MAX_AGENT_NAME,
        description="A custom agent; without it the default one.",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(description="The `ETag` of what the change is based on; 409 if that is not current."),
]
IfNoneMatch = Annotated[
    str | None, Header(description="The `ETag` of what the client has; 304 if that is current.")
]


class JsonRoute(APIRoute):
    """Reads bodies with a parser that takes neither NaN nor lone surrogates nor endless nesting."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        """Returns FastAPI's own handler for a request that parses strictly."""
        original = super().get_route_handler()

        async def answer(request: Request) -> Response:
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
        rendered = await self.gateway.run(self.scope, operation, False, work)
        if is_fresh(rendered.etag, self.if_none_match):
            return Response(status_code=304, headers={"ETag": rendered.etag})
        return _answer(rendered)

    async def change(self, operation: Operation, work: Callable[[Backend], Rendered]) -> Response:
        """Answers with the state after what `work` changes."""
        return _answer(await self.gateway.run(self.scope, operation, True, work))

    async def remove(self, operation: Operation, work: Callable[[Backend], None]) -> Response:
        """Answers that something is gone."""
        await self.gateway.run(self.scope, operation, True, work)
        return Response(status_code=204)


def _answer(rendered: Rendered) -> Response:
    return Response(rendered.body, media_type=JSON, headers={"ETag": rendered.etag})


def caller_of(request: Request) -> Caller:
    """Returns who calls, as the identification found out."""
    return cast("Caller", request.scope["state"]["caller"])


def gateway_of(request: Request) -> Gateway:
    """Returns the gateway that serves a request."""
    return cast("Gateway", request.app.state.gateway)


async def _reading(
    request: Request,
    agent: AgentParameter = None,
    if_none_match: IfNoneMatch = None,  # noqa: ARG001 - documented
) -> Call:
    return _call(request, agent)


async def _changing(
    request: Request,
    agent: AgentParameter = None,
    if_match: IfMatch = None,  # noqa: ARG001 - documented
) -> Call:
    return _permitted(_call(request, agent))


async def _refreshing(request: Request, agent: AgentParameter = None) -> Call:
    return _call(request, agent)


async def _of_user(request: Request, if_none_match: IfNoneMatch = None) -> Call:  # noqa: ARG001 - documented
    return _call(request, None)


async def _changing_agent(request: Request) -> Call:
    return _permitted(_call(request, None))


Reading = Annotated[Call, Depends(_reading)]
Changing = Annotated[Call, Depends(_changing)]
Refreshing = Annotated[Call, Depends(_refreshing)]
OfUser = Annotated[Call, Depends(_of_user)]
ChangingAgent = Annotated[Call, Depends(_changing_agent)]


def _call(request: Request, agent: str | None) -> Call:
    return Call(
        gateway=gateway_of(request),
        scope=Scope.of(caller_of(request).user_id, agent),
        if_match=tuple(request.headers.getlist("if-match")),
        if_none_match=tuple(request.headers.getlist("if-none-match")),
    )


def _permitted(call: Call) -> Call:
    if call.gateway.settings.read_only:
        raise Refusal(403, READ_ONLY)
    return call


IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        max_length=255,
        description="Makes a retry harmless: the same key and content are answered as the first time.",
    ),
]


def given(model: Any) -> Mapping[str, Any]:
    """Returns the values of a request model that were given."""
    return cast("Mapping[str, Any]", model.model_dump(by_alias=True, exclude_none=True))
