"""Serves one client over standard input and output, until it closes them or a signal comes."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage

from deermem.integrations.mcp.wire import LineReader, LineWriter, TooLong, claimed_standard_streams

# How long an end waits for what is under way: longer than a call waits for the lock.
DEFAULT_ENDING_SECONDS: Final = 15.0

_LAST_LINE_SECONDS: Final = 1.0
_CANCELLED: Final = "notifications/cancelled"
_LISTEN: Final = "subscriptions/listen"

_log = logging.getLogger(__name__)


def serve_stdio(server: Server[Any], *, ending_seconds: float = DEFAULT_ENDING_SECONDS) -> None:
    """Serves until the client closes its end, SIGTERM or SIGINT; what has begun by then is answered.

    A second signal does not wait. The manager behind the server stays the caller's to close.

    Args:
        server: What is served.
        ending_seconds: How long to wait for what has begun.
    """

    async def work(source: int, target: int) -> None:
        connection = _Connection(LineReader(source), LineWriter(target), ending_seconds)
        with _told_of_signals(connection):
            await connection.run(server)

    with claimed_standard_streams() as (source, target):
        asyncio.run(work(source, target))


class _Connection:
    """Leads lines to a server and its messages back, and at the end waits for what has no answer yet."""

    def __init__(self, reader: LineReader, writer: LineWriter, ending_seconds: float) -> None:
        self._reader = reader
        self._writer = writer
        self._ending_seconds = ending_seconds
        self._unanswered: Counter[str] = Counter()
        self._answered = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._is_ending = False

    def end(self) -> None:
        """Reads no more; told again, nothing is waited for."""
        if self._is_ending:
            self._scope.cancel()
        self._is_ending = True
        self._reader.end()

    async def run(self, server: Server[Any]) -> None:
        """Serves until the end of the input."""
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        all_written = asyncio.Event()

        async def write() -> None:
            await self._write(from_server)
            all_written.set()

        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, to_server, outgoing.clone())
                tasks.start_soon(write)
                await server.run(incoming, outgoing, server.create_initialization_options())
                with anyio.move_on_after(_LAST_LINE_SECONDS):
                    await all_written.wait()
                tasks.cancel_scope.cancel()

    async def _read(
        self,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        to_client: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        async with to_server, to_client:
            async for line in self._reader:
                message = _parsed(line)
                if isinstance(message, types.JSONRPCError):
                    await to_client.send(SessionMessage(message))
                elif message is not None:
                    self._note(message)
                    await to_server.send(SessionMessage(message))
            self._is_ending = True
            with anyio.move_on_after(self._ending_seconds):
                while self._unanswered:
                    self._answered.clear()
                    await self._answered.wait()

    async def _write(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        is_open = True
        async with from_server:
            async for each in from_server:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    if is_open:
                        await self._writer.write(f"{text}\n".encode())
                except OSError as error:
                    _log.info("the client takes no more: %s", error.strerror)
                    is_open = False
                    self._reader.end()
                if isinstance(each.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._forget(each.message.id)

    def _note(self, message: types.JSONRPCMessage) -> None:
        match message:
            case types.JSONRPCRequest(method=method, id=request_id) if method != _LISTEN:
                self._unanswered[_key(request_id)] += 1
            case types.JSONRPCNotification(method=method, params={"requestId": request_id}):
                if method == _CANCELLED:
                    self._forget(request_id)
            case _:
                pass

    def _forget(self, request_id: object) -> None:
        key = _key(request_id)
        self._unanswered[key] -= 1
        if self._unanswered[key] <= 0:
            del self._unanswered[key]
        self._answered.set()


def _key(request_id: object) -> str:
    """Returns what tells ids apart, which may be numbers or texts, and in a cancellation anything."""
    return f"{type(request_id).__name__} {request_id}"


def _parsed(line: bytes | TooLong) -> types.JSONRPCMessage | None:
    """Returns the message of a line, or the answer to one that is none; a blank line says nothing."""
    if isinstance(line, TooLong):
        return _refusal(None, types.INVALID_REQUEST, "The message is too long.")
    if not line.strip():
        return None
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        # Who gives a request an id that is none is not to wait for the answer to a notification.
        if not isinstance(message, types.JSONRPCNotification) or "id" not in json.loads(line):
            return message
        return _refusal(None, types.INVALID_REQUEST, "The id is not valid.")
    except ValueError:
        # Such as a lone surrogate, deep in the arguments: the caller of this request waits for an answer.
        request_id = _id_in(line)
    if request_id is None:
        return _refusal(None, types.PARSE_ERROR, "The line is no message of the protocol.")
    return _refusal(request_id, types.INVALID_REQUEST, "The message is not valid.")


def _id_in(line: bytes) -> types.RequestId | None:
    try:
        message = json.loads(line)
        request_id = message["id"]
        str(request_id).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_one = isinstance(request_id, int | str) and not isinstance(request_id, bool)
    return request_id if is_one else None


def _refusal(request_id: types.RequestId | None, code: int, text: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=text))


@contextmanager
def _told_of_signals(connection: _Connection) -> Iterator[None]:
    """Ends a connection when a signal asks for it."""
    loop = asyncio.get_running_loop()
    wanted = (signal.SIGTERM, signal.SIGINT)
    before = {each: signal.getsignal(each) for each in wanted}
    for each in wanted:
        signal.signal(each, lambda *_: loop.call_soon_threadsafe(connection.end))
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
