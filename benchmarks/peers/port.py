"""What every store that is compared can do, and the facts that all of them are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from benchmarks.samples import fact_id, fact_of
from deermem import Fact, Scope
from deermem.compat import fact_document

SCOPE: Final = Scope.of("alice", "assistant")
TOP: Final = 10
Documents = list[dict[str, Any]]


class Peer(Protocol):
    """Keeps facts in a folder; opened anew, it finds what was there.

    `keeps` says what a loss of power can take, and what else a caller can lose.
    """

    name: ClassVar[str]
    keeps: ClassVar[str]

    def __init__(self, folder: Path) -> None: ...

    def fill(self, facts: Sequence[Fact]) -> None:
        """Puts the first facts in, as fast as that goes."""
        ...

    def create(self, fact: Fact) -> None:
        """Adds a fact, durably."""
        ...

    def update(self, fact_id: str, content: str) -> None:
        """Gives a fact another text, durably; the rest of it stays."""
        ...

    def delete(self, fact_id: str) -> None:
        """Removes a fact, durably."""
        ...

    def get(self, fact_id: str) -> object:
        """Returns one fact, `None` if it is not there."""
        ...

    def read_all(self) -> Sequence[object]:
        """Returns all facts as the store's own call has them."""
        ...

    def documents(self) -> Documents:
        """Returns all facts as dictionaries that the caller may change."""
        ...

    def search(self, text: str) -> Sequence[object]:
        """Returns the ten surest facts whose text or title contains this text, in any case."""
        ...

    def close(self) -> None:
        """Releases what is open."""
        ...


def sample_facts(count: int) -> list[Fact]:
    """Returns the facts that every store begins with."""
    return [sample_fact(number) for number in range(count)]


def sample_fact(number: int) -> Fact:
    """Returns one fact."""
    return fact_of(number, fact_id(number), SCOPE)


def document_of(fact: Fact) -> dict[str, Any]:
    """Returns a fact as the stores of dictionaries keep it."""
    return fact_document(fact)


def surest(documents: Documents, text: str) -> Documents:
    """Finds what a store finds that cannot search itself."""
    wanted = text.casefold()
    found = [
        document
        for document in documents
        if wanted in document["content"].casefold() or wanted in document["title"].casefold()
    ]
    return sorted(found, key=lambda document: (-document["confidence"], document["id"]))[:TOP]
