"""Single facts as this process saw them last, so that an edit by hand is noticed (guarantee G5)."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from deermem.model.fact import Fact
from deermem.model.identity import AgentName, FactId, Scope
from deermem.storage.bucket import ManifestImage
from deermem.storage.costs import cost_of_fact


class KnownFact(NamedTuple):
    """Is a fact as it was seen, and the manifest that it was seen under."""

    fact: Fact
    image: ManifestImage


class KnownFacts:
    """Keeps the facts that were read or written one by one, the last ones up to a number of bytes.

    A cached snapshot knows its own facts; these are those of scopes that were not read as a whole.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._facts: OrderedDict[tuple[str | None, AgentName, FactId], KnownFact] = OrderedDict()
        self._cost = 0

    def note(self, fact: Fact, image: ManifestImage) -> None:
        """Remembers a fact that was just read or written."""
        scope = fact.scope
        self.drop(scope, fact.id)
        self._facts[scope.user.bucket, scope.agent, fact.id] = KnownFact(fact, image)
        self._cost += cost_of_fact(fact)
        while self._cost > self._limit:
            self._cost -= cost_of_fact(self._facts.popitem(last=False)[1].fact)

    def find(self, scope: Scope, fact_id: FactId) -> KnownFact | None:
        """Returns what is known of a fact."""
        return self._facts.get((scope.user.bucket, scope.agent, fact_id))

    def drop(self, scope: Scope, fact_id: FactId) -> None:
        """Forgets a fact."""
        known = self._facts.pop((scope.user.bucket, scope.agent, fact_id), None)
        if known is not None:
            self._cost -= cost_of_fact(known.fact)

    def drop_user(self, bucket: str | None) -> None:
        """Forgets the facts of a user."""
        for known in [known for key, known in self._facts.items() if key[0] == bucket]:
            self.drop(known.fact.scope, known.fact.id)

    def clear(self) -> None:
        """Forgets everything."""
        self._facts.clear()
        self._cost = 0
