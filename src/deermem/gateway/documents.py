"""Documents as they are sent: JSON bytes with their entity tag.

The document of a scope is encoded once for each snapshot: a read of what has not changed sends the bytes
that were made before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from deermem.compat import fact_document, snapshot_document
from deermem.gateway.etag import DOCUMENT, FACT, make_etag
from deermem.model.fact import Fact
from deermem.model.identity import AgentName
from deermem.model.rules import is_derived_title
from deermem.model.snapshot import Snapshot

DEFAULT_RENDERED_BYTES: Final = 16_000_000


class Rendered(NamedTuple):
    """The body of an answer, its tag, the revision that it shows, and the fact that a creation made."""

    body: bytes
    etag: str
    revision: int
    fact_id: str | None = None


def render_memory(document: Mapping[str, Any]) -> Rendered:
    """Encodes a document of a memory manager."""
    return render(public_document(document), document["revision"])


def render_fact(fact: Fact) -> Rendered:
    """Encodes a fact."""
    body = to_json(public_fact(fact_document(fact)))
    return Rendered(body, make_etag(FACT, fact.revision, body), fact.revision)


def render(value: Mapping[str, Any], revision: int) -> Rendered:
    """Encodes an answer that depends on a memory at this manifest revision."""
    body = to_json(value)
    return Rendered(body, make_etag(DOCUMENT, revision, body), revision)


def public_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a manager's document as clients know it."""
    public = {key: value for key, value in document.items() if value is not None}
    return {**public, "facts": [public_fact(fact) for fact in document["facts"]]}


def public_fact(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a manager's fact as clients know it: keys without a value are left out.

    So is a title that only repeats the start of the content: the historical shape has none. A title that
    says something else is sent, or an export would lose it.
    """
    public = {key: value for key, value in fact.items() if value is not None}
    if "title" in public and is_derived_title(public["title"], public["content"]):
        del public["title"]
    return public


class RenderedSnapshots:
    """Keeps the encoded documents of the snapshots that were used last; safe to use from several threads.

    An entry counts only for the very snapshot that it was made of, which the repository hands out again
    as long as nothing has changed.

    Args:
        limit: How many bytes of bodies are kept.
    """

    def __init__(self, limit: int = DEFAULT_RENDERED_BYTES) -> None:
        self._limit = limit
        self._mutex = threading.Lock()
        self._entries: OrderedDict[tuple[str | None, AgentName], tuple[Snapshot, Rendered]] = OrderedDict()
        self._size = 0

    def known(self, snapshot: Snapshot) -> Rendered | None:
        """Returns the encoded document of a snapshot if it is kept."""
        key = (snapshot.scope.user.bucket, snapshot.scope.agent)
        with self._mutex:
            known = self._entries.get(key)
            if known is None or known[0] is not snapshot:
                return None
            self._entries.move_to_end(key)
            return known[1]

    def of(self, snapshot: Snapshot) -> Rendered:
        """Returns the encoded document of a snapshot."""
        known = self.known(snapshot)
        if known is not None:
            return known
        key = (snapshot.scope.user.bucket, snapshot.scope.agent)
        rendered = render_memory(snapshot_document(snapshot))
        with self._mutex:
            self._drop(key)
            if len(rendered.body) <= self._limit:
                self._entries[key] = snapshot, rendered
                self._size += len(rendered.body)
            while self._size > self._limit:
                self._drop(next(iter(self._entries)))
        return rendered

    def _drop(self, key: tuple[str | None, AgentName]) -> None:
        dropped = self._entries.pop(key, None)
        if dropped is not None:
            self._size -= len(dropped[1].body)
