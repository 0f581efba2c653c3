"""Limits that keep one caller from taking what all of them share: pure ASGI layers, and how they are set.

| limit | answer |
| --- | --- |
| bytes of a body | 413 `The body is larger than {n} bytes.` |
| time for a body to arrive | 408 `The body did not arrive in time; nothing was changed.` |
| time for an answer | 504 `The request took too long; a change that it asked for may still be made.` |
| requests of one caller | 429 `Too many requests.` and `Retry-After` |
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from pyrate_limiter import GCRA, Rate, RateItem, StateBucket
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.asgi.identification import Caller
from deermem.asgi.naming import check_names, check_variables, told_by_variable, variables_of
from deermem.errors import InvalidInputError

MAX_SUBJECTS: Final = 10_000
PREFIX: Final = "DEERMEM_LIMIT_"
_SLIP: Final = "DEERMEM_LIMITS_"  # as the table is called

TOO_SLOW_BODY: Final = "The body did not arrive in time; nothing was changed."
TOO_SLOW: Final = "The request took too long; a change that it asked for may still be made."
TOO_MANY: Final = "Too many requests."

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "body_bytes": (1_024, 1_000_000_000),
    "request_seconds": (1, 3_600),
    "requests_per_minute": (1, 1_000_000),
    "burst": (1, 1_000_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Says what one request, and one caller, may take.

    Args:
        body_bytes: How many bytes a body may have.
        request_seconds: How many seconds a request may take, from its head to the begin of its answer.
        requests_per_minute: How many requests a caller may make in the long run, for each user it acts for.
        burst: How many of them at once.

    Raises:
        InvalidInputError: Names the setting that is out of range.
    """

    body_bytes: int = 8 * 1_024 * 1_024
    request_seconds: float = 60.0
    requests_per_minute: int = 1_200
    burst: int = 200

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            kinds = (int, float) if name == "request_seconds" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
                raise InvalidInputError(
                    f"limits.{name}", f"must be a number from {low:,.10g} to {high:,.10g}"
                )

    @classmethod
    def load(
        cls, table: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
    ) -> Self:
        """Takes settings from the table of a settings file and from `DEERMEM_LIMIT_…`, which win.

        Raises:
            InvalidInputError: Names the setting, or the variable, that breaks its rule or does not exist.
        """
        for slip in variables_of(_SLIP, environment).values():
            raise InvalidInputError(slip, f"is no setting; the variables of limits begin with {PREFIX}")
        variables = variables_of(PREFIX, environment)
        given = dict(table or {})
        check_variables(PREFIX, variables, [each.name for each in fields(cls)])
        with told_by_variable("limits", variables):
            for name, each in variables.items():
                given[name] = _number(f"limits.{name}", (environment or {})[each])
            check_names("limits", given, [each.name for each in fields(cls)])
            return cls(**given)


def _number(name: str, text: str) -> int | float:
    try:
        return int(text) if text.isascii() and text.isdigit() else float(text)
    except ValueError:
        raise InvalidInputError(name, "must be a number") from None


class BodyLimit:
    """Refuses bodies that are too large, by what arrives and not by what was announced (pure ASGI).

    Args:
        app: What to protect.
        limit: How many bytes a body may have.
    """

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it once it is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _announced(scope) > self._limit:
            await self._refusal()(scope, receive, send)
            return
        arrived, answered, is_large = 0, False, False

        async def receive_counted() -> Message:
            nonlocal arrived, is_large
            message = await receive()
            arrived += len(message.get("body", b""))
            is_large = is_large or arrived > self._limit
            return {"type": "http.disconnect"} if is_large else message

        async def send_unless_large(message: Message) -> None:
            nonlocal answered
            if answered or not is_large:
                answered = True
                await send(message)

        try:
            await self._app(scope, receive_counted, send_unless_large)
        except Exception:
            # What the application makes of a body that ends too early does not matter.
            if answered or not is_large:
                raise
        if is_large and not answered:
            await self._refusal()(scope, receive, send)

    def _refusal(self) -> JSONResponse:
        # The rest of the body is still on its way: the connection is of no further use.
        detail = f"The body is larger than {self._limit} bytes."
        return JSONResponse({"detail": detail}, 413, {"Connection": "close"})


def _announced(scope: Scope) -> int:
    """Returns what the head says of the size; 0 for nothing, or nonsense, which the server refuses."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value) if len(value) < 20 else 10**20
    return 0


class TimeLimit:
    """Answers in place of a request that takes too long (pure ASGI).

    The store's work on it is not interrupted: a write that has begun is committed or fails as a whole,
    and the client finds out which by reading, or by repeating it with `If-Match` or an `Idempotency-Key`.

    Args:
        app: What to protect.
        seconds: How long a request may take until its answer begins.
    """

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it when the time is over."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrived = answered = False
        limit = asyncio.timeout(self._seconds)

        async def receive_noticed() -> Message:
            nonlocal arrived
            message = await receive()
            arrived = arrived or (message["type"] == "http.request" and not message.get("more_body", False))
            return message

        async def send_noticed(message: Message) -> None:
            nonlocal answered
            if not answered:
                answered = True
                limit.reschedule(None)
            await send(message)

        try:
            async with limit:
                await self._app(scope, receive_noticed, send_noticed)
        except TimeoutError:
            if answered or not limit.expired():
                raise
            refusal = (
                JSONResponse({"detail": TOO_SLOW}, 504)
                if arrived or not _has_body(scope)
                else JSONResponse({"detail": TOO_SLOW_BODY}, 408, {"Connection": "close"})
            )
            await refusal(scope, receive, send)


def _has_body(scope: Scope) -> bool:
    names = {name for name, _ in scope["headers"]}
    return b"transfer-encoding" in names or _announced(scope) > 0


class CallerRates:
    """Counts requests by key, in memory that is bounded: who was not seen for longest is forgotten first.

    Somebody who is forgotten has a full burst again; that takes as many other callers as are remembered.

    Args:
        per_minute: How many requests a key may make in the long run.
        burst: How many of them at once.
        remembered: How many keys are remembered.
        clock: Returns seconds that only go forward.
    """

    def __init__(
        self,
        per_minute: int,
        burst: int,
        *,
        remembered: int = MAX_SUBJECTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rate = Rate(per_minute, 60_000, burst=burst)
        self._algorithm = GCRA()
        self._remembered = remembered
        self._clock = clock
        self._buckets: OrderedDict[object, StateBucket] = OrderedDict()
        self._guard = threading.Lock()

    @classmethod
    def of(cls, limits: LimitSettings) -> Self:
        """Returns the rates that settings ask for."""
        return cls(limits.requests_per_minute, limits.burst)

    def __len__(self) -> int:
        return len(self._buckets)

    def wait_for(self, key: object) -> float:
        """Counts a request; returns 0, or how many seconds to wait before one of this key is taken."""
        with self._guard:
            bucket = self._buckets.get(key)
            if bucket is None:
                bucket = self._buckets[key] = StateBucket([self._rate], self._algorithm)
                if len(self._buckets) > self._remembered:
                    self._buckets.popitem(last=False)
            self._buckets.move_to_end(key)
            item = RateItem("", int(self._clock() * 1_000))
            if bucket.put(item):
                return 0.0
            wait = bucket.waiting(item)
            return max(wait, 1) / 1_000 if isinstance(wait, int) else 1.0


class RateLimit:
    """Makes a caller that asks too often wait (pure ASGI); stands behind the identification.

    A service is counted for each user that it acts for, so that one of them cannot slow down the others.

    Args:
        app: What to protect.
        rates: What was asked so far.
    """

    def __init__(self, app: ASGIApp, *, rates: CallerRates) -> None:
        self._app = app
        self._rates = rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        caller: Caller | None = scope.get("state", {}).get("caller") if scope["type"] == "http" else None
        wait = 0.0 if caller is None else self._rates.wait_for((caller.subject, caller.user_id))
        if wait:
            refusal = JSONResponse({"detail": TOO_MANY}, 429, {"Retry-After": str(math.ceil(wait))})
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)
