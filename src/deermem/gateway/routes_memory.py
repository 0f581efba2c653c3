"""Routes of a whole memory: the document, import and export, summaries, settings."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from deermem.gateway.answers import answers
from deermem.gateway.errors import Operation
from deermem.gateway.requests import CHANGING, READING, REFRESHING, Changing, JsonRoute, given, reading
from deermem.gateway.schemas import ImportedDocument, MemoryDocument, Settings, Status, SummaryChange

router: Final = APIRouter(prefix="/api/memory", tags=["memory"], route_class=JsonRoute)


@router.get("", responses=answers(MemoryDocument, 304, 422), openapi_extra=READING)
async def get_memory(request: Request) -> Response:
    """Returns the summaries of the user and the facts of one agent."""
    return await reading(request).read_document(Operation.GET_MEMORY)


@router.get("/export", responses=answers(MemoryDocument, 304, 422), openapi_extra=READING)
async def export_memory(request: Request) -> Response:
    """Returns the document, to be imported elsewhere."""
    return await reading(request).read_document(Operation.EXPORT_MEMORY)


@router.post("/reload", responses=answers(MemoryDocument, 422), openapi_extra=REFRESHING)
async def reload_memory(request: Request) -> Response:
    """Forgets what is cached and returns the document: edits made by hand show."""
    call = reading(request)
    return await call.change(Operation.RELOAD_MEMORY, lambda backend: backend.reload(call.scope))


@router.delete("", responses=answers(MemoryDocument, 422, changes=True), openapi_extra=CHANGING)
async def clear_memory(call: Changing) -> Response:
    """Deletes everything that is known of the user or, with an agent, that agent's facts."""
    return await call.change(Operation.CLEAR_MEMORY, lambda backend: backend.clear(call.scope, call.if_match))


@router.post("/import", responses=answers(MemoryDocument, 422, changes=True), openapi_extra=CHANGING)
async def import_memory(call: Changing, document: ImportedDocument) -> Response:
    """Replaces the summaries and the agent's facts by those of a document."""
    content = given(document)
    return await call.change(
        Operation.IMPORT_MEMORY, lambda backend: backend.import_document(call.scope, content, call.if_match)
    )


@router.patch("/summaries", responses=answers(MemoryDocument, 422, changes=True), openapi_extra=CHANGING)
async def update_summaries(call: Changing, summaries: SummaryChange) -> Response:
    """Replaces the summaries that are named; the others stay."""
    patch = given(summaries)
    return await call.change(
        Operation.UPDATE_SUMMARIES, lambda backend: backend.update_summaries(call.scope, patch, call.if_match)
    )


@router.get("/config", responses=answers(Settings, 304, 422), openapi_extra=READING)
async def get_config(request: Request) -> Response:
    """Returns the settings that clients may need to know."""
    call = reading(request)
    return await call.read(Operation.GET_STATUS, lambda backend: backend.settings())


@router.get("/status", responses=answers(Status, 304, 422), openapi_extra=READING)
async def get_status(request: Request) -> Response:
    """Returns the settings and the document."""
    call = reading(request)
    return await call.read(Operation.GET_STATUS, lambda backend: backend.status(call.scope))
