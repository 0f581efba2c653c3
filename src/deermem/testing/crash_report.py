"""What a crash exploration found, in numbers and as reproductions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Trace:
    """Is the way to a disk state: what ran, where it stopped, and what was lost then."""

    event: str
    lost: tuple[str, ...] = ()
    before: Trace | None = None

    def then(self, event: str, lost: tuple[str, ...] = ()) -> Trace:
        """Returns the way one event further."""
        return Trace(event, lost, self)

    def lines(self) -> list[str]:
        """Returns the way as indented text, the beginning first."""
        earlier = self.before.lines() if self.before is not None else []
        return [*earlier, f"  {self.event}", *(f"      lost: {effect}" for effect in self.lost)]

    def length(self) -> tuple[int, int]:
        """Returns what the shorter of two reproductions is judged by."""
        earlier = self.before.length() if self.before is not None else (0, 0)
        return earlier[0] + 1, earlier[1] + len(self.lost)


@dataclass(frozen=True, slots=True)
class Violation:
    """Is a broken promise: its kind, what was seen, and how to get there."""

    kind: str
    detail: str
    trace: Trace

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {self.detail}", *self.trace.lines()])


@dataclass
class Report:
    """Counts what was explored and keeps the shortest reproduction of each kind of violation.

    `states` are the disk states after a kill or a loss of power at a stop point of an operation,
    `recovery_states` those at a stop point of a recovery; `distinct` tells how many different disks
    they were, both together. `sampled` names operations whose states were too many to visit all,
    `sampled_recoveries` those with too many states inside recovery.
    """

    operations: tuple[str, ...] = ()
    stop_points: int = 0
    states: int = 0
    recovery_stop_points: int = 0
    recovery_states: int = 0
    distinct: int = 0
    sampled: tuple[str, ...] = ()
    sampled_recoveries: tuple[str, ...] = ()
    seed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    shortest: dict[str, Violation] = field(default_factory=dict)

    @property
    def violations(self) -> int:
        """The number of violations, of all kinds."""
        return self.counts.total()

    def add(self, violation: Violation) -> None:
        """Counts a violation and keeps its reproduction if it is the shortest of its kind."""
        self.counts[violation.kind] += 1
        known = self.shortest.get(violation.kind)
        if known is None or violation.trace.length() < known.trace.length():
            self.shortest[violation.kind] = violation

    @classmethod
    def total(cls, reports: Iterable[Report]) -> Report:
        """Adds reports up."""
        total = cls()
        for report in reports:
            total.operations += report.operations
            total.stop_points += report.stop_points
            total.states += report.states
            total.recovery_stop_points += report.recovery_stop_points
            total.recovery_states += report.recovery_states
            total.distinct += report.distinct
            total.sampled += report.sampled
            total.sampled_recoveries += report.sampled_recoveries
            total.seed = report.seed
            total.counts += report.counts
            for kind, violation in report.shortest.items():
                total.shortest.setdefault(kind, violation)
        return total

    def __str__(self) -> str:
        recovery = f"{self.recovery_stop_points:,}; disk states: {self.recovery_states:,}"
        lines = [
            f"operations: {len(self.operations)} ({', '.join(self.operations)})",
            f"stop points: {self.stop_points:,}; disk states: {self.states:,}",
            f"stop points inside recovery: {recovery}",
            f"distinct disks: {self.distinct:,}",
        ]
        if self.sampled:
            lines.append(f"sampled with seed {self.seed}: {', '.join(self.sampled)}")
        if self.sampled_recoveries:
            lines.append(f"recoveries sampled with seed {self.seed}: {', '.join(self.sampled_recoveries)}")
        lines.append(f"violations: {self.violations:,}")
        for kind, count in self.counts.most_common():
            lines += ["", f"{count:,} times: {self.shortest[kind]}"]
        return "\n".join(lines)
