"""Facts, texts and files that storages are tested with, and the base of all their rules."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from deermem.format.layout import DEFAULT_MANIFEST, bucket_parts, fact_parts
from deermem.model.fact import ExtraField, Fact, FactDraft, Source
from deermem.model.identity import FactId, Scope, UserId
from deermem.model.snapshot import Snapshot
from deermem.repository import MemoryRepository
from deermem.search.port import AdapterHit, IndexRecord
from deermem.testing.places import temporary_root, write_file

HERE: Final = Scope.of("alice")
OTHER_AGENT: Final = Scope.of("alice", "research-agent")
OTHER_USER: Final = Scope.of("bob")
# Three users whose names lose their difference where somebody replaces characters.
LOOKALIKES: Final = (Scope.of("a@b.c"), Scope.of("a-b-c"), Scope.of("a b c"))

EXACT_TEXTS: Final = (
    "one\r\ntwo\rthree\nfour",
    "a\tb\x0bc\x0cd",
    "next\x85line\u2028separator\u2029end",
    "# looks like a heading\n\nand a body",
    "---\nid: other\n---\n\nfront matter inside",
    "zero\x00width\u200b\ufeffmark",
    "🦌 e\u0301 \u202eright to left\u202c עברית 日本語",
    "trailing blanks  \n  leading blanks",
    "{} [] & * ! | > ' \" % @ ` : - ?",
)

OpenStorage = Callable[..., MemoryRepository]


class StorageRules(ABC):
    """Is the base of the storage contract: it builds storages on a root of their own and closes them."""

    @abstractmethod
    def make_storage(self, root: Path, **settings: Any) -> MemoryRepository:
        """Returns a new storage on this root, built as the settings would: `MyStorage(root, **settings)`.

        It may be called several times for one root; what lies there then belongs to all of them.
        """

    @contextmanager
    def _root(self) -> Iterator[OpenStorage]:
        """Hands out a function that opens a storage on one root, as often as it is called."""
        with temporary_root() as root, ExitStack() as opened:

            def open_storage(**settings: Any) -> MemoryRepository:
                storage = self.make_storage(root, **settings)
                opened.callback(storage.close)
                return storage

            yield open_storage


def make_draft(fact_id: str, content: str | None = None, **fields: Any) -> FactDraft:
    """Builds a draft with an id; without a content it says which id it has."""
    return FactDraft(content=content or f"text of {fact_id}", id=FactId(fact_id), **fields)


FULL: Final = FactDraft(
    content="Rows on Sundays.",
    id="full",
    title="Rowing",
    category="hobby of her own",
    topics=("sport", "sunday"),
    confidence=0.25,
    source=Source("conversation", "thread-1"),
    created_at="2026-01-02T03:04:05Z",
    consolidated_from=("a", "b"),
    consolidated_at="2026-01-02T03:04:06Z",
    expected_valid_days=30,
    source_error="said: on Mondays",
    last_confirmed_at="2026-01-02T03:04:07Z",
    confirmation_count=3,
    extra=(ExtraField("mood", '"calm"'),),
)


def contents(snapshot: Snapshot) -> list[str]:
    """Returns what the facts of a snapshot say, in the order of their ids."""
    return [fact.content for fact in snapshot.facts]


def fact_at(storage: MemoryRepository, fact_id: str, scope: Scope = HERE) -> Fact:
    """Returns a fact that has to be there."""
    fact = storage.get_fact(scope, fact_id)
    if fact is None:
        raise AssertionError(f"the fact {fact_id!r} of {scope} is not there")
    return fact


def plain(storage: MemoryRepository) -> MemoryRepository:
    """Returns DeerMem's own storage on the same root, as another program has it open."""
    return MemoryRepository(storage.storage_root)


def fact_file(storage: MemoryRepository, fact_id: str, scope: Scope = HERE) -> Path:
    """Returns where the file of a fact lies."""
    parts = (*bucket_parts(scope.user), *fact_parts(scope.agent, FactId(fact_id)))
    return Path(storage.storage_root, *parts)


def bucket_of(storage: MemoryRepository, user_id: str | None = HERE.user.raw) -> Path:
    """Returns the directory of a user."""
    return Path(storage.storage_root, *bucket_parts(UserId.parse(user_id)))


def write_manifest(storage: MemoryRepository, document: Mapping[str, object]) -> None:
    """Writes the `memory.json` of the user of `HERE`, as another program would."""
    write_file(bucket_of(storage) / DEFAULT_MANIFEST, json.dumps(document))


class RememberingIndex:
    """Is a retrieval adapter that finds every fact it was told of, whatever the query."""

    def __init__(self) -> None:
        self.known: dict[tuple[Scope, FactId], Fact] = {}
        self.closed = 0

    def upsert(self, fact: Fact, /, *, scope: Scope, path: str) -> None:  # noqa: ARG002 - not kept
        """Keeps the fact."""
        self.known[scope, fact.id] = fact

    def remove(self, fact_id: FactId, /, *, scope: Scope) -> None:
        """Forgets the fact."""
        self.known.pop((scope, fact_id), None)

    def search(
        self,
        query: str,  # noqa: ARG002 - any query finds all
        /,
        *,
        scopes: Sequence[Scope],
        top_k: int,
        mode: str,  # noqa: ARG002 - there is one mode
        filters: Mapping[str, object],  # noqa: ARG002 - the store applies them again
    ) -> list[AdapterHit]:
        """Finds everything in these scopes."""
        return [AdapterHit(key[1], key[0], 1.0) for key in self.known if key[0] in scopes][:top_k]

    def clear(self, *, scopes: Sequence[Scope]) -> None:
        """Forgets these scopes."""
        self.known = {key: fact for key, fact in self.known.items() if key[0] not in scopes}

    def rebuild(
        self, records: Sequence[IndexRecord] | Iterator[IndexRecord], /, *, scopes: Sequence[Scope]
    ) -> None:
        """Replaces these scopes."""
        self.clear(scopes=scopes)
        self.known |= {(record.scope, record.fact.id): record.fact for record in records}

    def close(self) -> None:
        """Counts how often it is closed."""
        self.closed += 1
