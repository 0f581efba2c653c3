"""Taking back a user's last clear, import, restore or trim: a transaction that is made of its safety copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.fact_markdown import decode_fact
from deermem.format.layout import parse_fact_parts
from deermem.format.safety_json import KeptFile, SafetyCopy, is_undone
from deermem.model.changes import ABSENT, ChangeSet, Delete, FactKey, Unchanged, Upsert
from deermem.model.fact import Fact
from deermem.model.identity import Scope, UserId
from deermem.model.summaries import SECTION_KEYS, SectionKey, SummaryPatch
from deermem.repository import MemoryRepository
from deermem.storage.safety import is_expired, list_copies, mark_undone, read_copy
from deermem.storage.view import BucketView, View


@dataclass(slots=True)
class Undo:
    """Says what an undo does, or did.

    `back` are facts that come back, deleted or replaced ones; `gone` those that the operation wrote and
    that go; `stay` those that somebody changed since, and that stay as they are. `unreadable` are files
    that the operation deleted and that hold no fact: they stay in the safety copy, for who reads it.
    `changes` is the change set.
    """

    copy: SafetyCopy
    back: list[FactKey] = field(default_factory=list)
    gone: list[FactKey] = field(default_factory=list)
    stay: list[FactKey] = field(default_factory=list)
    summaries: list[SectionKey] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    changes: ChangeSet = field(default_factory=ChangeSet)


def plan_undo(repository: MemoryRepository, user: UserId) -> Undo | None:
    """Says what an undo would do, and writes nothing; `None` if nothing can be taken back."""
    return repository.engine.read(user, lambda view: _undo_of(repository, user, view), absent=None)


def undo(repository: MemoryRepository, user: UserId, revision: int | None = None) -> tuple[Undo, int] | None:
    """Takes back the user's last clear, import, restore or trim to the cap, in one transaction.

    Args:
        repository: The store.
        user: Whose memory it is.
        revision: The operation that is meant, by its revision; without it the last one.

    Returns:
        What was done, and the new manifest revision; `None` if there is no such operation any more.

    Raises:
        Corruption: The safety copy, or a fact in the way, cannot be trusted; nothing was written.
    """
    done: list[Undo] = []

    def decide(view: View) -> ChangeSet:
        found = _undo_of(repository, user, view)
        if found is None or revision not in (None, found.copy.revision):
            return ChangeSet()
        done.append(found)
        return found.changes

    delta = repository.commit(user, decide)
    if not done:
        return None
    if done[-1].unreadable:
        with repository.engine.maintenance(user) as bucket:
            mark_undone(bucket, done[-1].copy.name)
    return done[-1], delta.revision


def _undo_of(repository: MemoryRepository, user: UserId, view: View) -> Undo | None:
    engine = repository.engine
    if isinstance(view, BucketView):
        view.used_disk = True
        for name in list_copies(view.bucket):
            copy = None if is_undone(name) else read_copy(view.bucket, name)
            if copy is not None and copy.revision <= view.manifest.revision:
                expired = is_expired(copy, engine.now(), engine.undo_days)
                return None if expired else _planned(copy, user, view)
    return None


def _planned(copy: SafetyCopy, user: UserId, view: View) -> Undo:
    found = Undo(copy)
    kept = dict(_facts(copy.kept, user, found.unreadable))
    written = dict(_facts(copy.written, user, []))
    upserts: list[Upsert] = []
    deletes: list[Delete] = []
    for key in sorted({*kept, *written}):
        present = view.fact_on_disk(Scope(user, key[0]), key[1])
        if not _is_as_left(present, written.get(key)):
            found.stay.append(key)
        elif key in kept:
            expect = ABSENT if present is None else Unchanged(present)
            upserts.append(Upsert(key[0], kept[key].draft(), expect, renew=True))
            found.back.append(key)
        elif present is not None:
            deletes.append(Delete(key[0], key[1], Unchanged(present)))
            found.gone.append(key)
    patch = _summaries(copy, view)
    found.summaries = list(patch.sections)
    found.changes = ChangeSet(
        upserts=tuple(upserts),
        deletes=tuple(deletes),
        summaries=patch,
        least_revision=view.manifest.revision + 1,
        undoes="" if found.unreadable else copy.name,
    )
    return found


def _facts(files: Iterable[KeptFile], user: UserId, unreadable: list[str]) -> Iterable[tuple[FactKey, Fact]]:
    for file in files:
        key = parse_fact_parts(file.parts)
        path = "/".join(file.parts)
        try:
            if key is not None:
                yield key, decode_fact(file.data, path=path, scope=Scope(user, key[0]), fact_id=key[1])
                continue
        except (Corruption, UnsupportedFormat):
            pass
        unreadable.append(path)


def _is_as_left(present: Fact | None, left: Fact | None) -> bool:
    """Tells whether a fact is what the operation made of it: the one that it wrote, or nothing.

    Revisions are not compared: the undo of a later operation has given it another.
    """
    if present is None or left is None:
        return present is left
    return present.created_at == left.created_at and present.same_meaning(left)


def _summaries(copy: SafetyCopy, view: View) -> SummaryPatch:
    """Returns the summaries that come back: those that the operation changed and nobody changed since."""
    before, after, now = copy.summaries_before(), copy.summaries_after(), view.manifest.summaries
    return SummaryPatch(
        {key: before[key] for key in SECTION_KEYS if before[key] != after[key] and now[key] == after[key]}
    )
