"""What happened in a simulation: calls, when they began and ended, and what they answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from deermem.testing.simulation.state import FactState, Key, Operation, as_text


class Outcome(StrEnum):
    """Names how a call ended."""

    COMMITTED = "committed"
    NOTHING_TO_DO = "nothing to do"
    READ = "read"
    REFUSED = "refused"
    NOT_DONE = "not done"
    IN_DOUBT = "in doubt"
    DIED = "died"
    FELL_OVER = "fell over"


UNCERTAIN = (Outcome.IN_DOUBT, Outcome.DIED)


@dataclass(slots=True)
class Call:
    """Is one call of one process; `began` and `ended` count the steps of all processes.

    `revision` is the manifest revision that it made or saw. `seen` are the facts that a read showed, of
    the agents in `agents`; `summary` is what it said of the summary, if it showed one. `detail` says why
    it was refused or not done.
    """

    number: int
    process: str
    operation: Operation
    began: int
    ended: int | None = None
    outcome: Outcome = Outcome.DIED
    revision: int = -1
    seen: Mapping[Key, FactState] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    only: Key | None = None
    summary: str | None = None
    detail: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether it is known to have made or seen a revision."""
        return self.revision >= 0 and self.outcome not in UNCERTAIN

    def __str__(self) -> str:
        when = f"{self.began}-{'' if self.ended is None else self.ended}"
        revision = f" r{self.revision}" if self.revision >= 0 else ""
        seen = f" {as_text(self.seen)}" if self.outcome is Outcome.READ else ""
        detail = f" ({self.detail})" if self.detail else ""
        return (
            f"{self.number:3} {self.process} {when}: {self.operation}: {self.outcome}{revision}{seen}{detail}"
        )


@dataclass(slots=True)
class History:
    """Collects the calls in the order in which they began, and what else happened."""

    calls: list[Call] = field(default_factory=list)
    events: list[tuple[int, str]] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Tells it in lines, sorted by time."""
        told = [(call.began, str(call)) for call in self.calls]
        told += [(when, f"    {when}: {text}") for when, text in self.events]
        return [text for _, text in sorted(told, key=lambda entry: entry[0])]

    def digest(self) -> str:
        """Tells histories apart: equal ones have the same digest."""
        return sha256("\n".join(self.lines()).encode()).hexdigest()
