"""Extraction: a hook of the host makes facts of conversations, in the background."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol

from deermem.compat import snapshot_document
from deermem.errors import DeerMemError, InvalidInputError, ManifestConflict, MemoryManagerClosed
from deermem.manager.lifetime import Lifetime
from deermem.manager.proposal import Admission, changes_of, read_proposal
from deermem.manager.strands import Strands
from deermem.model.changes import ChangeSet
from deermem.model.fact import CONVERSATION, UNKNOWN_SOURCE, Source
from deermem.model.identity import DEFAULT_AGENT, Scope
from deermem.model.rules import check_optional_text
from deermem.model.snapshot import Snapshot
from deermem.repository import MemoryRepository

EXTRACTION_THREADS: Final = 4
MAX_WAITING: Final = 1_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """Is what an extraction hook is given.

    `document` is the memory as it is, in the historical shape, and the hook's own. `agent_name` is `None`
    for the default agent.
    """

    thread_id: str | None
    messages: tuple[Any, ...]
    document: dict[str, Any]
    user_id: str | None
    agent_name: str | None
    trace_id: str | None


class ExtractionHook(Protocol):
    """Proposes what a conversation changes in a memory; what it proposes is `deermem.manager.proposal`'s.

    It is called in a thread of the manager's, for each user one at a time, while no lock is held. If another
    writer comes first it is called again with the new document, three times at most. What it raises is
    logged, by type, and the conversation is given up.
    """

    def __call__(self, request: ExtractionRequest, /) -> Mapping[str, Any] | None:
        """Returns the proposal, `None` for no change."""
        ...


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Waits for extraction; `base` is the manifest revision at which it was handed over."""

    token: int
    scope: Scope
    base: int
    thread_id: str | None
    messages: tuple[Any, ...]
    trace_id: str | None


class Extractor:
    """Keeps conversations until their turn, and commits what the hook makes of each in one transaction.

    A clear that comes after a conversation was handed over wins: nothing is made of that conversation any
    more (guarantee G7).

    Args:
        hook: The host's hook.
        repository: Where facts go.
        lifetime: The manager's.
        admission: Returns what applies to new facts of a source.
    """

    def __init__(
        self,
        hook: ExtractionHook,
        repository: MemoryRepository,
        lifetime: Lifetime,
        admission: Callable[[Source], Admission],
    ) -> None:
        if not callable(hook) or _is_asynchronous(hook):
            raise InvalidInputError("extraction_hook", "must be a callable that is not asynchronous")
        self._hook = hook
        self._repository = repository
        self._lifetime = lifetime
        self._admission = admission
        self._strands = Strands(self._extract, threads=EXTRACTION_THREADS, limit=MAX_WAITING)

    def put(
        self,
        scope: Scope,
        thread_id: str | None,
        messages: Sequence[Any],
        trace_id: str | None,
        *,
        urgent: bool,
    ) -> None:
        """Takes a conversation; where too many wait it is given up, with a warning, unless it is urgent.

        Raises:
            InvalidInputError: The thread id is no text, or the messages are no list.
        """
        thread_id = check_optional_text("thread_id", thread_id)
        if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
            raise InvalidInputError("messages", "must be a list")
        if not messages:
            return
        base = self._repository.get_manifest(scope.user.raw).revision
        token = self._lifetime.begin(background=True)
        conversation = _Conversation(token, scope, base, thread_id, tuple(messages), trace_id)
        if not self._strands.put(scope.user.bucket, conversation, urgent=urgent):
            self._lifetime.end(token)
            _log.warning("gave up a conversation of %s: %d others wait for extraction", scope, MAX_WAITING)

    def close(self) -> None:
        """Gives up the conversations that wait."""
        waiting = self._strands.drain()
        for conversation in waiting:
            self._lifetime.end(conversation.token)
        if waiting:
            _log.warning("gave up %d conversations that waited for extraction at the end", len(waiting))

    def _extract(self, conversation: _Conversation) -> None:
        scope = conversation.scope
        with self._lifetime.working_on(conversation.token), ExitStack() as committing:
            try:
                delta = self._repository.run(
                    scope, lambda snapshot: self._plan(conversation, snapshot, committing)
                )
            except DeerMemError as error:
                _log.warning("nothing was extracted from a conversation of %s: %s", scope, error)
            except BaseException as error:  # noqa: BLE001 - a hook may raise anything, and its thread goes on
                _log.warning("nothing was extracted for %s: %s", scope, type(error).__name__)
            else:
                _log.debug("extracted into revision %d of %s", delta.revision, scope)

    def _plan(self, conversation: _Conversation, snapshot: Snapshot, committing: ExitStack) -> ChangeSet:
        """Has the hook propose and returns what follows.

        Raises:
            ManifestConflict: The scope was cleared since the conversation was handed over.
            MemoryManagerClosed: The manager was closed meanwhile.
        """
        scope = conversation.scope
        if self._repository.cleared_at(scope) > conversation.base:
            raise ManifestConflict(conversation.base, snapshot.revision, f"{scope} was cleared since")
        if self._lifetime.closed:
            raise MemoryManagerClosed
        proposal = self._hook(
            ExtractionRequest(
                conversation.thread_id,
                conversation.messages,
                snapshot_document(snapshot),
                scope.user.raw,
                None if scope.agent == DEFAULT_AGENT else scope.agent,
                conversation.trace_id,
            )
        )
        source = _source_of(conversation.thread_id)
        changes = changes_of(read_proposal(proposal), snapshot, self._admission(source))
        committing.enter_context(self._lifetime.call())
        return changes


def _source_of(thread_id: str | None) -> Source:
    return UNKNOWN_SOURCE if thread_id is None else Source(CONVERSATION, thread_id)


def _is_asynchronous(hook: ExtractionHook) -> bool:
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(type(hook).__call__)
