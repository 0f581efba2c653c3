"""Finds out who calls, before anything of the request is read, and tells caches to keep callers apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Final, Protocol

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_THREADS: Final = 4


class Caller(Protocol):
    """Is who calls, and the user whose memory the request opens."""

    @property
    def subject(self) -> str:
        """What the credentials prove."""
        ...

    @property
    def user_id(self) -> str | None:
        """What is passed to the store; no two subjects have the same one."""
        ...


class NotLetIn(Exception):
    """Is the answer to a request of nobody knows whom; `detail` must tell nothing about anybody."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail
        self.headers = headers


class Identification:
    """Puts the caller into the request's state, or answers that nobody knows the caller (pure ASGI).

    Args:
        app: What to protect.
        identify: Returns who makes a request, or raises `NotLetIn`.
        reads_files: Whether it does; then it runs in threads of its own, since a disk that hangs must not
            stop the event loop.
        open_paths: What anybody may ask for.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        identify: Callable[[HTTPConnection], Caller],
        reads_files: bool,
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._identify = identify
        self._open_paths = open_paths
        self._executor = ThreadPoolExecutor(_THREADS, "deermem-identification") if reads_files else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it."""
        if scope["type"] == "http" and scope["path"] not in self._open_paths:
            connection = HTTPConnection(scope)
            try:
                if self._executor is None:
                    caller = self._identify(connection)
                else:
                    caller = await asyncio.get_running_loop().run_in_executor(
                        self._executor, self._identify, connection
                    )
            except NotLetIn as refused:
                answer = JSONResponse({"detail": refused.detail}, refused.status, dict(refused.headers))
                await answer(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)


class PrivateAnswers:
    """Marks every answer as one caller's own (pure ASGI).

    Args:
        app: Whose answers to mark.
        identifying_headers: What a caller is known by.
        cache_control: What a cache may do with an answer that does not say so itself.
    """

    def __init__(self, app: ASGIApp, *, identifying_headers: tuple[str, ...], cache_control: str) -> None:
        self._app = app
        self._cache_control = (b"cache-control", cache_control.encode("latin-1"))
        self._headers = [(b"x-content-type-options", b"nosniff")]
        if identifying_headers:
            self._headers.append((b"vary", ", ".join(identifying_headers).encode("latin-1")))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on and marks its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = message["headers"]
                told = any(name == b"cache-control" for name, _ in given)
                message["headers"] = [*given, *(() if told else (self._cache_control,)), *self._headers]
            await send(message)

        await self._app(scope, receive, send_marked)
