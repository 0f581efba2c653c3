"""Routes of a user's agents."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response

from deermem.gateway.answers import answers
from deermem.gateway.errors import Operation
from deermem.gateway.requests import OF_USER, ChangingOfUser, JsonRoute, reading_of_user
from deermem.gateway.schemas import Agents

router: Final = APIRouter(prefix="/api/agents", tags=["agents"], route_class=JsonRoute)

_DELETED: Final[dict[int | str, dict[str, Any]]] = {
    status: answer for status, answer in answers(Agents, 404, 422, changes=True).items() if status != 200
}


@router.get("", responses=answers(Agents, 304, 422), openapi_extra=OF_USER)
async def list_agents(request: Request) -> Response:
    """Returns the agents that have a configuration or facts of their own."""
    call = reading_of_user(request)
    return await call.read(Operation.LIST_AGENTS, lambda backend: backend.agents(call.scope))


@router.delete(
    "/{name}",
    status_code=204,
    responses=_DELETED,
    response_description="The agent and all it owned are gone.",
)
async def delete_agent(
    call: ChangingOfUser, name: Annotated[str, Path(min_length=1, max_length=1_000)]
) -> Response:
    """Deletes a custom agent with all it owns."""
    return await call.remove(Operation.DELETE_AGENT, lambda backend: backend.delete_agent(call.scope, name))
