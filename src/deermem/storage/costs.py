"""What cached things weigh, as an estimate in bytes."""

from __future__ import annotations

from sys import getsizeof
from typing import Final

from deermem.model.fact import Fact
from deermem.storage.bucket import ManifestImage

# Measured: an empty scope, and a fact of 300 to 600 bytes of ASCII beside its text.
_SCOPE_COST: Final = 2_500
_FACT_COST: Final = 1_400
_TEXT_COST: Final = 50


def cost_of_scope(image: ManifestImage) -> int:
    """Returns the weight of a scope without facts: the bytes of `memory.json`, and the texts in them."""
    return _SCOPE_COST + 2 * len(image.data)


def cost_of_fact(fact: Fact) -> int:
    """Returns the weight of a fact."""
    cost = _FACT_COST + getsizeof(fact.content)
    if texts := fact.topics + fact.consolidated_from:
        cost += _TEXT_COST * len(texts) + sum(map(len, texts))
    if fact.source_error is not None:
        cost += getsizeof(fact.source_error)
    if extra := fact.extra + fact.source.extra:
        cost += sum(getsizeof(field.key) + getsizeof(field.json) + getsizeof(field.yaml) for field in extra)
    return cost
