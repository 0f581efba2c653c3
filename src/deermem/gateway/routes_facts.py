"""Routes of single facts, of pages of them, and of batches."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response

from deermem.gateway.answers import answers
from deermem.gateway.backend import PageRequest
from deermem.gateway.errors import Operation, invalid
from deermem.gateway.requests import (
    CHANGING,
    FACTS_PATH,
    READING,
    Changing,
    IdempotencyKey,
    JsonRoute,
    given,
    reading,
)
from deermem.gateway.schemas import (
    Fact,
    FactChange,
    FactIds,
    FactPage,
    MemoryDocument,
    NewFact,
    NewFacts,
)
from deermem.model.identity import MAX_FACT_ID, is_fact_id
from deermem.model.rules import MAX_TEXT
from deermem.repository.reads import DEFAULT_PAGE, MAX_PAGE

router: Final = APIRouter(prefix=FACTS_PATH, tags=["facts"], route_class=JsonRoute)

_ID: Final = r"^[A-Za-z0-9_-]+$"

FactPath = Annotated[str, Path(min_length=1, max_length=1_000, description="The id of the fact.")]


_CREATED: Final = answers(MemoryDocument, 422, changes=True)
_CREATED[200]["headers"] = {
    "Location": {
        "description": "Where the new fact is: its path, with the agent where there is one.",
        "schema": {"type": "string"},
        "required": True,
    }
}


def _filters(category: str | None, source: str | None, topic: list[str]) -> dict[str, Any]:
    named = {"category": category, "source": source, "topics": topic}
    return {name: value for name, value in named.items() if value}


@router.get("", responses=answers(FactPage, 304, 422), openapi_extra=READING)
async def list_facts(
    request: Request,
    category: Annotated[str | None, Query(min_length=1, max_length=MAX_TEXT)] = None,
    source: Annotated[str | None, Query(min_length=1, max_length=MAX_TEXT)] = None,
    topic: Annotated[list[str], Query(max_length=20, description="All of these topics.")] = [],  # noqa: B006 - never changed
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = DEFAULT_PAGE,
    cursor: Annotated[
        str | None,
        Query(pattern=_ID, max_length=MAX_FACT_ID, description="`nextCursor` of the part before."),
    ] = None,
) -> Response:
    """Returns a part of an agent's facts, sorted by id."""
    call = reading(request)
    if cursor is not None and not is_fact_id(cursor):
        raise invalid("cursor", "is no `nextCursor`", within="query")
    page = PageRequest(_filters(category, source, topic), limit, cursor)
    return await call.read(Operation.LIST_FACTS, lambda backend: backend.page(call.scope, page))


@router.get("/{fact_id}", responses=answers(Fact, 304, 404, 422), openapi_extra=READING)
async def get_fact(request: Request, fact_id: FactPath) -> Response:
    """Returns one fact."""
    call = reading(request)
    return await call.read(Operation.GET_FACT, lambda backend: backend.fact(call.scope, fact_id))


@router.post("", responses=_CREATED, openapi_extra=CHANGING)
async def create_fact(call: Changing, fact: NewFact, key: IdempotencyKey) -> Response:
    """Stores a fact, unless the same content is there already."""
    values = given(fact)
    return await call.change(
        Operation.CREATE_FACT, lambda backend: backend.create(call.scope, values, call.if_match, key)
    )


@router.post("/batch", responses=answers(MemoryDocument, 422, changes=True), openapi_extra=CHANGING)
async def create_facts(call: Changing, batch: NewFacts, key: IdempotencyKey) -> Response:
    """Stores several facts in one transaction: all of them or none."""
    facts = [given(fact) for fact in batch.facts]
    return await call.change(
        Operation.CREATE_FACTS, lambda backend: backend.create_all(call.scope, facts, call.if_match, key)
    )


@router.post(
    "/batch-delete", responses=answers(MemoryDocument, 404, 422, changes=True), openapi_extra=CHANGING
)
async def delete_facts(call: Changing, batch: FactIds) -> Response:
    """Deletes several facts in one transaction: all of them or none."""
    return await call.change(
        Operation.DELETE_FACTS, lambda backend: backend.delete_all(call.scope, batch.ids, call.if_match)
    )


@router.patch("/{fact_id}", responses=answers(MemoryDocument, 404, 422, changes=True), openapi_extra=CHANGING)
async def update_fact(call: Changing, fact_id: FactPath, change: FactChange) -> Response:
    """Changes what is given of a fact."""
    values = given(change)
    return await call.change(
        Operation.UPDATE_FACT, lambda backend: backend.update(call.scope, fact_id, values, call.if_match)
    )


@router.delete(
    "/{fact_id}", responses=answers(MemoryDocument, 404, 422, changes=True), openapi_extra=CHANGING
)
async def delete_fact(call: Changing, fact_id: FactPath) -> Response:
    """Deletes a fact."""
    return await call.change(
        Operation.DELETE_FACT, lambda backend: backend.delete(call.scope, fact_id, call.if_match)
    )
