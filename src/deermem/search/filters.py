"""Filters: exact values that facts must have, the same for lists, searches and adapters.

| name | matches |
| --- | --- |
| `id` `title` `content` `status` `created_at` `updated_at` | the same text |
| `category` | the stored category, or the user's own that stands behind `other` |
| `source` | the public form: a conversation's thread id, else the type |
| `topics` | a fact with this topic, or with all topics of a list |
| `confidence` `revision` | the same number |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from deermem.errors import InvalidInputError
from deermem.model.fact import Fact

FactTest = Callable[[Fact], bool]

_TEXTS: Final[Mapping[str, Callable[[Fact], str]]] = {
    "id": lambda fact: fact.id,
    "title": lambda fact: fact.title,
    "content": lambda fact: fact.content,
    "status": lambda fact: fact.status,
    "source": lambda fact: str(fact.source),
    "created_at": lambda fact: fact.created_at,
    "updated_at": lambda fact: fact.updated_at,
}
_NUMBERS: Final[Mapping[str, Callable[[Fact], float]]] = {
    "confidence": lambda fact: fact.confidence,
    "revision": lambda fact: fact.revision,
}
FILTER_NAMES: Final = tuple(sorted((*_TEXTS, *_NUMBERS, "category", "topics")))


def fact_filter(filters: Mapping[str, object]) -> FactTest:
    """Returns the test that a fact passes if it matches every filter.

    Raises:
        InvalidInputError: A filter has an unknown name or a value of the wrong type.
    """
    if not isinstance(filters, Mapping):
        raise InvalidInputError("filters", "must be a mapping of field names to values")
    tests = [_one_test(name, wanted) for name, wanted in filters.items()]
    return lambda fact: all(test(fact) for test in tests)


def matches(fact: Fact, filters: Mapping[str, object]) -> bool:
    """Tells whether a fact matches every filter; for many facts `fact_filter` checks them once."""
    return fact_filter(filters)(fact)


def _one_test(name: object, wanted: object) -> FactTest:
    if name == "category":
        category = _text("category", wanted).strip()
        return lambda fact: category in (fact.category, fact.category_extension)
    if name == "topics":
        topics = _topics(wanted)
        return lambda fact: topics.issubset(fact.topics)
    if isinstance(name, str) and name in _TEXTS:
        text, text_of = _text(name, wanted), _TEXTS[name]
        return lambda fact: text_of(fact) == text
    if isinstance(name, str) and name in _NUMBERS:
        number, number_of = _number(name, wanted), _NUMBERS[name]
        return lambda fact: number_of(fact) == number
    raise InvalidInputError(f"filters.{str(name)[:64]}", f"is not one of {', '.join(FILTER_NAMES)}")


def _text(name: str, wanted: object) -> str:
    if not isinstance(wanted, str):
        raise InvalidInputError(f"filters.{name}", "must be a string")
    return wanted


def _number(name: str, wanted: object) -> float:
    if isinstance(wanted, bool) or not isinstance(wanted, int | float):
        raise InvalidInputError(f"filters.{name}", "must be a number")
    return wanted


def _topics(wanted: object) -> frozenset[str]:
    if isinstance(wanted, str):
        return frozenset([wanted])
    if isinstance(wanted, Mapping) or not isinstance(wanted, Collection):
        raise InvalidInputError("filters.topics", "must be a string or a list of strings")
    topics = tuple(wanted)
    if not all(isinstance(topic, str) for topic in topics):
        raise InvalidInputError("filters.topics", "must be a string or a list of strings")
    return frozenset(topics)
