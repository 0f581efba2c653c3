"""How a run is told: the lines that the command and the script print, and the JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from deermem.format.layout import bucket_parts
from deermem.migration.outcomes import Status, UserOutcome, spelled_out
from deermem.migration.requests import MigrationRequest
from deermem.model.identity import DEFAULT_AGENT
from deermem.repository import MigrationReport
from deermem.storage.migration import LEAD_AGENT

_MIGRATION_STATUSES: Final = (Status.MIGRATED, Status.PLANNED, Status.CURRENT, Status.FAILED)
_ROLLBACK_STATUSES: Final = (Status.ROLLED_BACK, Status.FAILED)


@dataclass(slots=True)
class Account:
    """Tells of a run, user by user, and counts.

    Args:
        request: What was asked for.
        storage_root: Where.
    """

    request: MigrationRequest
    storage_root: str
    counts: Counter[Status] = field(default_factory=Counter)
    has_refused: bool = False

    def first_line(self) -> str:
        """Says what has to be done before any migration (plan section 10)."""
        root = spelled_out(self.storage_root)
        return f"Before a migration: stop the old application, and take a snapshot of the whole of {root}"

    def lines(self, outcome: UserOutcome) -> Iterator[str]:
        """Counts a user, and yields what there is to say: one line, and details below it."""
        self._count(outcome)
        yield f"{spelled_out(str(outcome.user))}: {_headline(outcome)}"
        yield from (f"  {line}" for line in self._details(outcome))

    def document(self, outcome: UserOutcome) -> dict[str, Any]:
        """Counts a user, and returns the same as JSON."""
        self._count(outcome)
        document: dict[str, Any] = {
            "userId": outcome.user.raw,
            "directory": "/".join(bucket_parts(outcome.user)) or ".",
            "status": outcome.status,
        }
        if outcome.reason:
            document["reason"] = outcome.reason
        if outcome.restored:
            document["restored"] = [*outcome.restored]
        if outcome.report is not None:
            document |= _report_document(outcome.report)
        return document

    def whole_document(self, users: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Returns a run as JSON, from the documents of its users."""
        return {
            "storageRoot": self.storage_root,
            "dryRun": self.request.dry_run,
            "rollback": self.request.rollback,
            "users": [*users],
            "summary": self.summary(),
        }

    def summary(self) -> dict[str, int]:
        """Returns how many users there were of each status."""
        statuses = _ROLLBACK_STATUSES if self.request.rollback else _MIGRATION_STATUSES
        return {str(status): self.counts[status] for status in statuses}

    def last_line(self) -> str:
        """Sums up."""
        return f"Summary: {' '.join(f'{name}={count}' for name, count in self.summary().items())}"

    def hint(self) -> str:
        """Says what may help; empty if nothing does."""
        if not self.counts:
            return f"there is no memory below {spelled_out(self.storage_root)}"
        if not self.counts[Status.FAILED] or self.request.rollback:
            return ""
        if not self.request.dry_run:
            return "--dry-run names every value that stops a user"
        if not self.has_refused:
            return ""
        return "--on-invalid quarantine keeps in a file what no version-2 memory can hold"

    @property
    def failed(self) -> bool:
        """Whether any user failed."""
        return self.counts[Status.FAILED] > 0

    def _count(self, outcome: UserOutcome) -> None:
        self.counts[outcome.status] += 1
        self.has_refused |= outcome.report is not None and bool(outcome.report.refused)

    def _details(self, outcome: UserOutcome) -> Iterator[str]:
        report = outcome.report
        yield from (f"restored {path}" for path in outcome.restored)
        if report is None:
            return
        planned = outcome.status is Status.PLANNED
        if outcome.status is not Status.CURRENT and report.sources:
            yield from (
                f"{source} {'goes' if planned else 'went'} to {backup.rpartition('/')[2]}"
                for source, backup in zip(report.sources, report.backups, strict=True)
                if planned or report.migrated
            )
        if self.request.dry_run:
            yield from (f"writes {agent}/{fact_id}" for agent, fact_id in report.planned)
        elif report.migrated:
            yield f"{_facts(len(report.planned))} written"
        if report.there_already:
            yield f"{_facts(report.there_already)} there already, with the same meaning"
        if report.adopted:
            verb = "moves" if self.request.dry_run else "moved"
            yield f"{verb} from {LEAD_AGENT} to {DEFAULT_AGENT}: {', '.join(report.adopted)}"
        yield from (f"cannot be migrated: {spelled_out(str(value))}" for value in report.refused)
        if report.quarantine is not None:
            yield f"kept in {report.quarantine}"
        for path in report.set_aside:
            yield f"set aside in {path}"
        if self.request.dry_run and report.interrupted:
            yield "an interrupted transaction is ended first, which may change this"


def _headline(outcome: UserOutcome) -> str:
    match outcome.status:
        case Status.FAILED:
            return f"FAILED: {outcome.reason}"
        case Status.PLANNED:
            return "would migrate"
        case Status.MIGRATED:
            return f"migrated ({_way(outcome.report or MigrationReport())})"
        case Status.ROLLED_BACK:
            return "rolled back"
        case Status.CURRENT:
            return "already current" if outcome.stored else "already current (nothing is stored)"


def _way(report: MigrationReport) -> str:
    if not report.migrated:
        return f"{LEAD_AGENT} -> {DEFAULT_AGENT}"
    # Later documents of the predecessor had this version, too, but still their facts in them.
    inside = " with facts" if report.from_version == report.to_version else ""
    return f"{report.from_version}{inside} -> {report.to_version}"


def _report_document(report: MigrationReport) -> dict[str, Any]:
    return {
        "fromVersion": report.from_version,
        "toVersion": report.to_version,
        "revision": report.revision,
        "sources": [*report.sources],
        "backups": [*report.backups],
        "facts": [{"id": fact_id, "agentName": agent} for agent, fact_id in report.planned],
        "thereAlready": report.there_already,
        "adopted": [*report.adopted],
        "refused": [
            {"path": value.path, "place": value.place, "field": value.field, "reason": value.reason}
            for value in report.refused
        ],
        "quarantine": report.quarantine,
        "setAside": [*report.set_aside],
        "interrupted": report.interrupted,
    }


def _facts(count: int) -> str:
    return f"{count} fact{'' if count == 1 else 's'}"
