"""The one table that turns what goes wrong into an answer (contract section 7).

| raised | status | detail |
| --- | --- | --- |
| `FactNotFoundError`, `KeyError` | 404 | `Memory fact '{id}' not found.` |
| `AgentNotFoundError` | 404 | `Agent '{name}' not found` |
| `NotACustomAgent` | 409 | `Directory for '{name}' contains memory data but …; it was preserved.` |
| `DuplicateFact` | 409 | `A fact with the same content already exists.` |
| `RevisionConflict`, `MemoryConflictError` | 409 | `Memory changed concurrently; reload and retry.` |
| `InvalidInputError`, `ValueError`: the content is empty | 400 | `Memory fact content cannot be empty.` |
| the same: the confidence | 400 | `Invalid confidence value; must be between 0 and 1.` |
| the same: any other field | 422 | the field and the rule that it breaks |
| `Corruption` and its like, `MemoryCorruptionError` | 500 | `Stored memory data is corrupted.` |
| `CommitInDoubt` | 500 | `The disk failed during the commit; the change may have been made.` |
| `LockTimeout`, `Overloaded`, `MemoryManagerClosed` | 503 | `Memory is busy; nothing was changed.` |
| `NotImplementedError` | 501 | `Operation '{op}' not supported by memory backend '{class}'.` |
| anything else | 500 | what failed, such as `Failed to create memory fact.` |

A 503 tells with `Retry-After` when to try again. No answer carries a path, a stack trace or another user's
id; the log does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from deermem.errors import (
    AgentNotFoundError,
    CommitInDoubt,
    Corruption,
    DuplicateFact,
    FactConflict,
    FactNotFoundError,
    InvalidInputError,
    LockTimeout,
    ManifestConflict,
    MemoryConflictError,
    MemoryCorruptionError,
    MemoryManagerClosed,
    MigrationError,
    NotACustomAgent,
    RevisionConflict,
    UnsupportedFormat,
)
from deermem.gateway.work import Overloaded
from deermem.model.identity import MAX_AGENT_NAME, MAX_FACT_ID

RETRY_SECONDS: Final = 1
MAX_PROBLEMS: Final = 20

CONFLICT: Final = "Memory changed concurrently; reload and retry."
DUPLICATE: Final = "A fact with the same content already exists."
EVICTED: Final = "Fact was not stored because the configured memory.max_facts capacity policy evicted it"
EMPTY_CONTENT: Final = "Memory fact content cannot be empty."
BAD_CONFIDENCE: Final = "Invalid confidence value; must be between 0 and 1."
CORRUPT: Final = "Stored memory data is corrupted."
IN_DOUBT: Final = "The disk failed during the commit; the change may have been made."
BUSY: Final = "Memory is busy; nothing was changed."
READ_ONLY: Final = "This gateway is read-only."
FAILED: Final = "The request failed."

_MAX_TEXT: Final = 300


class Operation(Enum):
    """Is what a request asks for: its name in a 501, and the detail of its 500."""

    GET_MEMORY = "get memory", "Failed to read memory data."
    EXPORT_MEMORY = "export memory", "Failed to export memory data."
    RELOAD_MEMORY = "reload memory", "Failed to reload memory data."
    CLEAR_MEMORY = "clear memory", "Failed to clear memory data."
    IMPORT_MEMORY = "import memory", "Failed to import memory data."
    GET_STATUS = "get memory status", "Failed to read memory data."
    UPDATE_SUMMARIES = "update summaries", "Failed to update memory summaries."
    LIST_FACTS = "list facts", "Failed to read memory data."
    GET_FACT = "get fact", "Failed to read memory data."
    CREATE_FACT = "create fact", "Failed to create memory fact."
    CREATE_FACTS = "create facts", "Failed to create memory facts."
    UPDATE_FACT = "update fact", "Failed to update memory fact."
    DELETE_FACT = "delete fact", "Failed to delete memory fact."
    DELETE_FACTS = "delete facts", "Failed to delete memory facts."
    LIST_AGENTS = "list agents", "Failed to read memory data."
    DELETE_AGENT = "delete agent", "Failed to delete agent."

    def __init__(self, title: str, failed: str) -> None:
        self.title = title
        self.failed = failed


class Refusal(Exception):
    """Is an answer other than success; `extra` are keys of its body beside `detail`."""

    def __init__(
        self,
        status: int,
        detail: str | list[dict[str, Any]],
        headers: Mapping[str, str] = MappingProxyType({}),
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = headers
        self.extra = extra

    def response(self) -> Response:
        """Returns the answer as it is sent."""
        return JSONResponse({"detail": self.detail, **self.extra}, self.status, dict(self.headers))


def stale(revision: int | None, fact_id: str | None = None) -> Refusal:
    """Refuses a change to what the client has not seen as it is now.

    Args:
        revision: The current revision, where it is known: of the fact if one is named, else of the memory.
        fact_id: The fact that is not as it was.
    """
    known = {"factId": fact_id, "revision": revision}
    return Refusal(409, CONFLICT, extra={name: value for name, value in known.items() if value is not None})


def fact_not_found(fact_id: str) -> Refusal:
    """Says that there is no such fact; an id that is too long to be one is told in part."""
    return Refusal(404, f"Memory fact '{fact_id[:MAX_FACT_ID]}' not found.")


def agent_not_found(name: str) -> Refusal:
    """Says that there is no such agent; a name that is too long to be one is told in part."""
    return Refusal(404, f"Agent '{name[:MAX_AGENT_NAME]}' not found")


def invalid(field: str, reason: str, *, within: str = "body") -> Refusal:
    """Refuses a value, in the shape of a validation error."""
    return Refusal(422, [problem((within, *field.split(".")), reason)])


def problem(location: tuple[str | int, ...], message: str, kind: str = "value_error") -> dict[str, Any]:
    """Returns one entry of a 422, which never repeats more than a little of what was sent."""
    return {"loc": [_cut(part) for part in location[:10]], "msg": _cut(message), "type": kind}


def _cut(text: str | int) -> str | int:
    return text if isinstance(text, int) or len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def refusal_of(error: BaseException, operation: Operation, backend: str) -> Refusal:
    """Returns the answer to what an operation raised; the closest class of the error's ancestors decides.

    Args:
        error: What was raised.
        operation: What was asked for.
        backend: The class of the memory backend, for a 501.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, NotImplementedError):
        detail = f"Operation '{operation.title}' not supported by memory backend '{backend}'."
        return Refusal(501, detail)
    answer = next((_ANSWERS[kind] for kind in type(error).__mro__ if kind in _ANSWERS), None)
    return Refusal(500, operation.failed) if answer is None else answer(error)


def is_fault(refusal: Refusal) -> bool:
    """Tells whether an operator should hear of it."""
    return refusal.status == 500


def _not_found(error: BaseException) -> Refusal:
    return fact_not_found(str(error.args[0]) if error.args else "")


def _value(error: BaseException) -> Refusal:
    field = error.field if isinstance(error, InvalidInputError) else ""
    reason = error.reason if isinstance(error, InvalidInputError) else "is not accepted"
    words = str(error)
    if words == "Duplicate fact":
        return Refusal(409, DUPLICATE)
    if field == "confidence" or (not field and "confidence" in words):
        return Refusal(400, BAD_CONFIDENCE)
    if (field == "content" and reason == "must not be empty") or (not field and "content" in words):
        return Refusal(400, EMPTY_CONTENT)
    if field in ("user_id", "agent_name"):
        return invalid("agent" if field == "agent_name" else "user", reason, within="query")
    # The store names summaries by where they are in a change; in a request they are the body.
    return invalid(field.removeprefix("summaries.") or "value", reason)


def _conflict(error: BaseException) -> Refusal:
    match error:
        case ManifestConflict():
            return stale(error.actual)
        case FactConflict():
            return stale(error.actual, error.fact_id)
        case MemoryConflictError():
            return stale(error.current_revision, error.fact_id)
        case _:
            return stale(None)


def _agent_not_found(error: BaseException) -> Refusal:
    return agent_not_found(str(error.args[0]))


def _not_custom(error: BaseException) -> Refusal:
    return Refusal(
        409,
        f"Directory for '{error.args[0]}' contains memory data but is not a custom agent"
        " because config.yaml is missing; it was preserved.",
    )


def _busy(_: BaseException) -> Refusal:
    return Refusal(503, BUSY, {"Retry-After": str(RETRY_SECONDS)})


def _always(status: int, detail: str) -> Callable[[BaseException], Refusal]:
    return lambda _: Refusal(status, detail)


_ANSWERS: Final[Mapping[type[BaseException], Callable[[BaseException], Refusal]]] = MappingProxyType(
    {
        FactNotFoundError: _not_found,
        KeyError: _not_found,
        AgentNotFoundError: _agent_not_found,
        NotACustomAgent: _not_custom,
        DuplicateFact: _always(409, DUPLICATE),
        RevisionConflict: _conflict,
        MemoryConflictError: _conflict,
        InvalidInputError: _value,
        ValueError: _value,
        Corruption: _always(500, CORRUPT),
        UnsupportedFormat: _always(500, CORRUPT),
        MigrationError: _always(500, CORRUPT),
        MemoryCorruptionError: _always(500, CORRUPT),
        CommitInDoubt: _always(500, IN_DOUBT),
        LockTimeout: _busy,
        Overloaded: _busy,
        MemoryManagerClosed: _busy,
    }
)
