"""The server: answers the protocol's requests with the tools and resources of one memory at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from deermem.integrations.mcp.failures import Refused, told_of, told_of_arguments, told_of_unknown
from deermem.integrations.mcp.identity import KnownUser
from deermem.integrations.mcp.memory import Memory
from deermem.integrations.mcp.resources import list_resources, read_resource, template_of
from deermem.integrations.mcp.tools import INSTRUCTIONS, tools
from deermem.integrations.mcp.turns import Turns
from deermem.manager import DeerMem
from deermem.model.identity import Scope

Context = ServerRequestContext[Any, Any]
ScopeOf = Callable[[Context], Scope]

# DEL and C1, line separators, marks that turn the direction of text, and the invisible tag characters: a text
# may hide in them what a person does not see, so JSON spells them out.
_HIDING: Final = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def fixed_scope(scope: Scope) -> ScopeOf:
    """Returns what takes every request for one of this scope, as over stdio."""
    return lambda _: scope


def scope_of_caller(agent: str | None) -> ScopeOf:
    """Returns what takes each HTTP request for one of the user that it was identified as.

    Args:
        agent: The agent, the same for all users; `None` is the default one.
    """

    def look(context: Context) -> Scope:
        user = None if context.request is None else context.request.scope.get("user")
        if not isinstance(user, KnownUser):
            raise Refused("The caller is not known.")
        return Scope.of(user.caller.user_id, agent)

    return look


def create_server(manager: DeerMem, scope_of: ScopeOf, *, read_only: bool = False) -> Server[Any]:
    """Returns the server of a manager, which stays the caller's to close.

    Args:
        manager: Where the memories are kept.
        scope_of: Says whose memory a request is about; the model has no say in it.
        read_only: Offer only the tools that change nothing.
    """
    front = _Front(manager, scope_of, read_only)
    return Server(
        "deermem",
        title="DeerMem",
        version=version("deermem"),
        instructions=INSTRUCTIONS,
        on_list_tools=front.list_tools,
        on_call_tool=front.call_tool,
        on_list_resources=front.list_resources,
        on_list_resource_templates=front.list_templates,
        on_read_resource=front.read_resource,
    )


class _Front:
    """Has the handlers of the protocol's requests; nothing but a result or an `MCPError` leaves them."""

    def __init__(self, manager: DeerMem, scope_of: ScopeOf, read_only: bool) -> None:
        self._manager = manager
        self._scope_of = scope_of
        self._read_only = read_only
        self._tools = tools(read_only=read_only)
        self._declared = [each.declared() for each in self._tools.values()]
        self._turns = Turns()

    async def list_tools(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "The cursor is not valid.")
        return types.ListToolsResult(tools=self._declared)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        kind = self._tools.get(params.name)
        if kind is None:
            raise MCPError(types.INVALID_PARAMS, "There is no such tool.")
        given = params.arguments or {}
        unknown = given.keys() - kind.arguments.model_fields.keys()
        if unknown:  # to describe a million of them, as a model does, would keep the event loop busy
            return _failed(told_of_unknown(unknown))
        try:
            wanted = kind.arguments.model_validate(given)
        except ValidationError as error:
            return _failed(told_of_arguments(error))
        try:
            return _shown(await kind.run(self._memory(context), wanted))
        except Exception as error:  # noqa: BLE001 - clients get to see no other text
            return _failed(told_of(error))

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        with _answered():
            return await list_resources(self._memory(context), None if params is None else params.cursor)

    async def list_templates(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        with _answered():
            template = template_of(self._scope_of(context))
            return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        with _answered():
            return await read_resource(self._memory(context), params.uri)

    def _memory(self, context: Context) -> Memory:
        """Returns the memory that a request is about."""
        return Memory(self._manager, self._scope_of(context), self._turns, self._read_only)


@contextmanager
def _answered() -> Iterator[None]:
    """Turns what goes wrong inside into an error of the protocol."""
    try:
        yield
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - clients get to see no other text
        raise MCPError(types.INTERNAL_ERROR, told_of(error)) from None


def _shown(result: BaseModel) -> types.CallToolResult:
    """Returns a result twice: as data, exactly, and as JSON text in which nothing can hide."""
    document = result.model_dump(mode="json", exclude_none=True)
    text = _HIDING.sub(_spelled_out, json.dumps(document, ensure_ascii=False))
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=document)


def _spelled_out(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
