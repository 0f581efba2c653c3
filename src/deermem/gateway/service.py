"""The gateway behind the routes: runs what they ask of the store, and has an answer to what goes wrong."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from deermem.errors import DeerMemError
from deermem.gateway.backend import Backend
from deermem.gateway.documents import Rendered
from deermem.gateway.errors import Operation, Refusal, is_fault, refusal_of
from deermem.gateway.metrics import Metrics
from deermem.gateway.settings import GatewaySettings
from deermem.gateway.shared_reads import SharedReads
from deermem.gateway.work import Overloaded, WorkPool
from deermem.model.identity import Scope

T = TypeVar("T")

_STEP: Final = 0.1

_log = logging.getLogger(__name__)


class Gateway:
    """Runs the store's work in threads, and ends it in order.

    Args:
        backend: What works on the store.
        settings: How to serve.
        has_roles: Whether callers are told apart, so that some things need a role.
    """

    def __init__(self, backend: Backend, settings: GatewaySettings, *, has_roles: bool) -> None:
        self.backend = backend
        self.settings = settings
        self.has_roles = has_roles
        self.pool = WorkPool(settings.threads, settings.waiting, settings.patience)
        self._documents: SharedReads[Rendered] = SharedReads(self.pool)
        self.metrics = Metrics(backend.counters, lambda: self.pool.present)
        self.is_open = False
        self._deadline: float | None = None

    def end_within(self, seconds: float) -> None:
        """Says how long the end may wait from now on; told again, it may be cut short."""
        self._deadline = time.monotonic() + seconds

    async def run(self, scope: Scope, operation: Operation, writes: bool, work: Callable[[Backend], T]) -> T:
        """Runs work on one memory in a thread.

        Raises:
            Refusal: The work failed; what it raised is in the log where an operator should know of it.
        """
        try:
            return await self.pool.run(scope.user.bucket, writes, lambda: work(self.backend))
        except Exception as error:  # noqa: BLE001 - the table has an answer to everything
            raise self._refusal_of(error, operation, scope) from None

    async def document(self, scope: Scope, operation: Operation) -> Rendered:
        """Returns a document: at once where one look shows that it is the one that was sent before.

        Otherwise a thread reads it, for all requests that come at once.

        Raises:
            Refusal: It cannot be read.
        """
        # Threads at work contend for the interpreter, which each of a look's calls gives away: the loop would
        # be held. They are the cheaper way then, since those who ask for the same share a read.
        if self.pool.is_idle or self.pool.is_full:
            unchanged = self.backend.document_at_once(scope)
            if unchanged is not None:
                return unchanged
        read = self.backend.export if operation is Operation.EXPORT_MEMORY else self.backend.document
        try:
            return await self._documents.run((scope, operation), scope.user.bucket, lambda: read(scope))
        except Exception as error:  # noqa: BLE001 - the table has an answer to everything
            raise self._refusal_of(error, operation, scope) from None

    def _refusal_of(self, error: Exception, operation: Operation, scope: Scope) -> Refusal:
        refusal = refusal_of(error, operation, self.backend.name)
        if is_fault(refusal):
            _log_fault(error, operation, scope)
        return refusal

    async def is_ready(self) -> bool:
        """Tells whether requests can be served: started, not at the end, and the storage can be read."""
        if not self.is_open:
            return False
        try:
            return await self.pool.run(None, False, self.backend.is_reachable)
        except Overloaded:
            return False

    async def close(self) -> None:
        """Lets what has begun come to its end, for a bounded time, and releases everything.

        If there is no time left, what is at the store is left to the end of the process.
        """
        self.is_open = False
        if self._deadline is None:
            self.end_within(self.settings.shutdown_seconds)
        # In short steps: a signal may cut it short meanwhile.
        while not (drained := await self.pool.drain(min(self._left(), _STEP))) and self._left():
            pass
        if not drained or not await asyncio.to_thread(self.backend.close, self._left()):
            _log.error("some work did not end in time")

    def _left(self) -> float:
        assert self._deadline is not None  # noqa: S101 - the end has begun
        return max(self._deadline - time.monotonic(), 0.0)


def _log_fault(error: Exception, operation: Operation, scope: Scope) -> None:
    """Tells the operator what failed, with the file that is damaged or the place in the program."""
    known = isinstance(error, DeerMemError | OSError)
    _log.error("%s of %r failed: %s", operation.title, str(scope), error, exc_info=None if known else error)
