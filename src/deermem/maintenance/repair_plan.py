"""Decides what a repair does about the findings of one bucket; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, NamedTuple

from deermem.errors import Corruption, InvalidInputError
from deermem.format.fences_json import encode_fences
from deermem.format.journal_json import is_kept_name, is_staged_name
from deermem.format.layout import FENCES, JOURNAL, RECOVERY, is_fact_place
from deermem.format.manifest_json import decode_manifest, encode_manifest
from deermem.format.strict_json import dump_compact, load_object
from deermem.maintenance.check_scan import MAX_SET_ASIDE, Parts, Scan
from deermem.maintenance.findings import Action, Finding
from deermem.maintenance.records import KeptEntry
from deermem.model.fact import ExtraField
from deermem.model.manifest import Manifest
from deermem.model.resolution import Fences
from deermem.model.summaries import SECTIONS, Section, SectionKey, Summaries
from deermem.storage.bucket import Bucket
from deermem.storage.opening import trusted
from deermem.storage.port import EntryKind, FileIdentity

# How far beyond all that was seen the revision goes where the last one is unknown.
LEAP: Final = 1_000_000
_KEEPING: Final = frozenset([Action.SET_ASIDE, Action.MOVE, Action.NEW_MANIFEST, Action.NEW_FENCES])


class Item(NamedTuple):
    """Is one thing to set aside; without bytes it is moved and not copied."""

    finding: Finding
    parts: Parts
    target: Parts
    data: bytes | None
    identity: FileIdentity | None

    @property
    def is_fact(self) -> bool:
        """Whether a transaction may remove it: readers look at it."""
        return self.data is not None and is_fact_place(self.parts)


@dataclass(slots=True)
class Plan:
    """Says what to do: `writes` and `deletes` are for one transaction, at `revision`.

    `manifest` is a new summary file for one that is missing or broken. `commits` tells whether there is a
    transaction at all, `refused` what cannot be mended before `memory.json` can be.
    """

    items: list[Item] = field(default_factory=list)
    manifest: Manifest | None = None
    revision: int = 0
    commits: bool = False
    writes: list[tuple[Parts, bytes]] = field(default_factory=list)
    deletes: list[Parts] = field(default_factory=list)
    tighten: list[Parts] = field(default_factory=list)
    close: list[Parts] = field(default_factory=list)
    expired: list[Parts] = field(default_factory=list)
    sweeps: bool = False

    def entries(self) -> list[tuple[KeptEntry, bytes | None]]:
        """Returns what to keep, for the record."""
        return [(self._entry(str(number), item), item.data) for number, item in enumerate(self.items)]

    def _entry(self, kept: str, item: Item) -> KeptEntry:
        return KeptEntry(
            path="/".join(item.parts),
            kept=kept,
            sha256="" if item.data is None else sha256(item.data).hexdigest(),
            kind=item.finding.kind,
            reason=item.finding.message,
            moved_to="/".join(item.target),
            replaced_by=self._replacements(item),
        )

    def _replacements(self, item: Item) -> tuple[str, ...]:
        images = [data for parts, data in self.writes if parts == item.parts]
        if item.finding.action == Action.NEW_MANIFEST and self.manifest is not None:
            images = [encode_manifest(self.manifest), self.last_manifest()]
        return tuple(dict.fromkeys(sha256(data).hexdigest() for data in images))

    def last_manifest(self) -> bytes:
        """Returns the bytes that `memory.json` has after the repair, where it is a new one."""
        assert self.manifest is not None  # noqa: S101 - the callers ask for a new one only
        return encode_manifest(replace(self.manifest, revision=self.revision))


def make_plan(bucket: Bucket, scan: Scan, approved: Iterable[Finding], *, stuck_journal: bool) -> Plan:
    """Plans the repair of the findings that were approved, as they are under the lock.

    Args:
        bucket: The user's bucket.
        scan: What lies there now.
        approved: Findings by which a person or a program has agreed.
        stuck_journal: Whether the predecessor's journal cannot be ended.
    """
    wanted = {(finding.kind, finding.path) for finding in approved}
    findings = [each for each in scan.findings if (each.kind, each.path) in wanted]
    if stuck_journal:
        findings = [_given_up(finding) for finding in findings]
    plan = Plan()
    if scan.has_journal and not any(_loses_journal(finding) for finding in findings):
        # Nothing that readers see may change under a journal that somebody else has to complete.
        findings = [each for each in findings if each.action not in (Action.NEW_MANIFEST, Action.NEW_FENCES)]
        can_commit = mends_manifest = False
    else:
        mends_manifest = any(each.action == Action.NEW_MANIFEST for each in findings)
        can_commit = scan.image is not None or mends_manifest
    for finding in findings:
        parts = tuple(finding.path.split("/"))[len(bucket_prefix(bucket)) :]
        if finding.action in _KEEPING:
            plan.items += _items(bucket, finding, parts, can_commit=can_commit)
        elif finding.action == Action.TIGHTEN:
            plan.tighten.append(parts)
        elif finding.action == Action.CLOSE:
            plan.close.append(parts)
        elif finding.action == Action.EXPIRE:
            plan.expired.append(parts)
        plan.sweeps |= finding.action == Action.SWEEP
        plan.commits |= finding.action in (Action.RAISE, Action.NEW_FENCES) and can_commit
    loses_journal = any(item.parts == (JOURNAL,) for item in plan.items)
    if loses_journal:
        plan.items += _staged_items(bucket, next(i.finding for i in plan.items if i.parts == (JOURNAL,)))
        plan.sweeps = True
    plan.commits |= loses_journal or any(is_fact_place(item.parts) or item.target for item in plan.items)
    _number(plan, scan, mends_manifest=mends_manifest, loses_journal=loses_journal)
    _fill_transaction(plan, findings)
    return plan


def _given_up(finding: Finding) -> Finding:
    return replace(finding, action=Action.SET_ASIDE) if finding.kind == "journal-legacy" else finding


def _loses_journal(finding: Finding) -> bool:
    return finding.action == Action.SET_ASIDE and finding.path.split("/")[-1] == JOURNAL


def bucket_prefix(bucket: Bucket) -> Parts:
    """Returns the way from the storage root to a bucket."""
    return () if bucket.directory.path == "." else tuple(bucket.directory.path.split("/"))


def _items(bucket: Bucket, finding: Finding, parts: Parts, *, can_commit: bool) -> Iterator[Item]:
    """Reads what a finding is about; nothing where it is gone, or where readers could not be told."""
    needs_commit = is_fact_place(parts) or bool(finding.target) or parts in ((JOURNAL,), (FENCES,))
    if needs_commit and not can_commit:
        return
    with suppress(FileNotFoundError), bucket.directory_at(parts[:-1]) as directory, trusted():
        target = tuple(finding.target.split("/"))[len(bucket_prefix(bucket)) :] if finding.target else ()
        status = directory.statuses().get(parts[-1])
        if status is None:
            return
        if status.kind != EntryKind.FILE:
            yield Item(finding, parts, (), None, None)
            return
        data, identity = directory.read(parts[-1], MAX_SET_ASIDE)
        yield Item(finding, parts, target, data, identity)


def _staged_items(bucket: Bucket, finding: Finding) -> list[Item]:
    """Returns the images that belong to a journal that is set aside: they may be the only copies."""
    found: list[Item] = []
    with suppress(FileNotFoundError), bucket.directory_at((RECOVERY,)) as recovery:
        for name, status in sorted(recovery.statuses().items()):
            if is_staged_name(name):
                found += _items(bucket, finding, (RECOVERY, name), can_commit=True)
            elif is_kept_name(name) and status.kind == EntryKind.DIRECTORY:
                with recovery.child(name) as kept:
                    names = sorted(kept.names())
                for each in names:
                    found += _items(bucket, finding, (RECOVERY, name, each), can_commit=True)
    return found


def _number(plan: Plan, scan: Scan, *, mends_manifest: bool, loses_journal: bool) -> None:
    """Chooses the revision: above every one that anybody can have seen."""
    highest = scan.seen_revision + loses_journal
    if mends_manifest:
        highest = max(highest, scan.rumoured_revision)
        if not scan.manifest_names_revision:
            highest += LEAP
        plan.manifest = salvaged(_manifest_bytes(plan), scan.now, highest + 1)
    plan.revision = highest + int(mends_manifest) + int(plan.commits)


def _manifest_bytes(plan: Plan) -> bytes:
    return next((i.data or b"" for i in plan.items if i.finding.action == Action.NEW_MANIFEST), b"")


def _fill_transaction(plan: Plan, findings: Iterable[Finding]) -> None:
    if not plan.commits:
        return
    plan.writes += [(item.target, item.data) for item in plan.items if item.target and item.data is not None]
    if any(finding.action == Action.NEW_FENCES for finding in findings):
        plan.writes.append(((FENCES,), encode_fences(Fences(plan.revision))))
    written = {parts for parts, _ in plan.writes}
    plan.deletes += [item.parts for item in plan.items if item.is_fact and item.parts not in written]


def salvaged(data: bytes, now: str, revision: int) -> Manifest:
    """Returns a new manifest with everything of a broken one that is well formed."""
    try:
        document = load_object(data, "")
    except Corruption:
        return Manifest(revision, now)
    sections: dict[SectionKey, Section] = {}
    for group in SECTIONS:
        children = document.get(group)
        for name, value in children.items() if isinstance(children, dict) else ():
            summary = value.get("summary") if isinstance(value, dict) else None
            updated_at = value.get("updatedAt", "") if isinstance(value, dict) else None
            if isinstance(summary, str) and isinstance(updated_at, str):
                sections[group, name] = Section(summary, updated_at)
    known = ("version", "revision", "lastUpdated", "facts", *SECTIONS)
    extra = tuple(ExtraField(k, dump_compact(value)) for k, value in document.items() if k not in known)
    manifest = Manifest(revision, now, Summaries.of(sections), extra)
    try:
        return decode_manifest(encode_manifest(manifest), "")
    except (Corruption, InvalidInputError):
        return Manifest(revision, now)
