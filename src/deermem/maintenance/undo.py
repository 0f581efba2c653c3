"""Puts back what a repair set aside, byte for byte, unless something else lies there now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, NamedTuple

from deermem.errors import Corruption, InvalidInputError, UnsupportedFormat
from deermem.format.layout import FENCES, JOURNAL, QUARANTINE, RECOVERY, is_fact_place
from deermem.format.manifest_json import decode_manifest, encode_manifest
from deermem.maintenance.check_scan import MAX_SET_ASIDE, Parts
from deermem.maintenance.records import RECORD_FILE, KeptEntry, Record, RecordState
from deermem.maintenance.set_aside import mark, read_record
from deermem.model.identity import UserId
from deermem.model.manifest import Manifest
from deermem.repository.core import RepositoryCore
from deermem.storage.bucket import Bucket
from deermem.storage.copies import put
from deermem.storage.journal import replace_file
from deermem.storage.port import EntryKind
from deermem.storage.recovery import recover
from deermem.storage.transaction import write_all

_ABSENT: Final = "absent"
_NO_FILE: Final = "no file"


@dataclass(frozen=True, slots=True)
class Undone:
    """Reports an undo; all paths are below the storage root.

    With `refused` nothing was changed: there something else lies now, or a copy is missing. `left` are the
    summary file and the fences where they went on since the repair.
    """

    user: UserId
    place: str
    restored: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Step(NamedTuple):
    """Is an entry that has to be put back, with its bytes; `None` for what is moved back."""

    entry: KeptEntry
    data: bytes | None
    is_replacing: bool


def undo_repair(repository: RepositoryCore, user: UserId, time: str | None = None) -> Undone:
    """Undoes a repair of a user: the one that is named, else the last that was not undone.

    Args:
        repository: The store.
        user: Whose files to put back.
        time: The name of a directory in the user's `.quarantine`.

    Raises:
        InvalidInputError: There is no such repair, or none at all.
        LockTimeout: Another writer held the lock too long; nothing was changed.
        FileNotFoundError: The user has no bucket.
        Corruption: An interrupted change, or the record, cannot be read; nothing was changed.
    """
    engine = repository.engine
    with engine.maintenance(user) as bucket:
        try:
            with suppress(FileNotFoundError):
                recover(bucket)
            return _Undo(repository, bucket, time).run()
        finally:
            engine.cache.forget_user(user)


class _Undo:
    """Carries out one undo under the lock."""

    def __init__(self, repository: RepositoryCore, bucket: Bucket, time: str | None) -> None:
        self._engine = repository.engine
        self._bucket = bucket
        self._place, self._record = _find(bucket, time)
        self._steps: list[Step] = []
        self._moved: list[Parts] = []
        self._left: list[str] = []
        self._refused: list[str] = []

    def run(self) -> Undone:
        for entry in self._record.entries:
            self._look_at(entry)
        place = self._bucket.path_of(self._place)
        if self._refused:
            return Undone(self._bucket.user, place, refused=tuple(self._refused))
        late = [step for step in self._steps if _is_late(step.entry.parts, self._bucket.manifest_name)]
        early = [step for step in self._steps if step not in late]
        for step in early:
            self._put_back(step)
        back = {step.entry.parts for step in self._steps}
        self._moved = [parts for parts in self._moved if parts not in back]
        self._advance()
        # A journal stands in the way of every read and write, so it comes back last.
        for step in sorted(late, key=lambda each: each.entry.parts == (JOURNAL,)):
            self._put_back(step)
        mark(self._bucket, self._place, self._record, RecordState.UNDONE)
        self._drop_copies()
        restored = tuple(self._bucket.path_of(step.entry.parts) for step in self._steps)
        return Undone(self._bucket.user, place, restored, tuple(self._left))

    def _look_at(self, entry: KeptEntry) -> None:
        """Decides what to do about an entry; changes nothing."""
        lies = self._digest_at(entry.parts)
        path = self._bucket.path_of(entry.parts)
        if not entry.sha256:
            kept = self._digest_at((*self._place, entry.kept))
            if lies == _ABSENT and kept != _ABSENT:
                self._steps.append(Step(entry, None, False))
            elif lies == _ABSENT or kept != _ABSENT:
                self._refused.append(path)
            return
        if entry.moved_to:
            moved = self._digest_at(entry.moved_parts)
            if moved == entry.sha256:
                self._moved.append(entry.moved_parts)
            elif moved not in (_ABSENT, *self._originals_of(entry.moved_to)):
                self._refused.append(self._bucket.path_of(entry.moved_parts))
        if lies == entry.sha256:
            return
        is_replacing = lies in entry.replaced_by
        if lies != _ABSENT and not is_replacing:
            (self._left if entry.replaced_by else self._refused).append(path)
            return
        data = self._read((*self._place, entry.kept))
        if data is None or sha256(data).hexdigest() != entry.sha256:
            self._refused.append(self._bucket.path_of((*self._place, entry.kept)))
        else:
            self._steps.append(Step(entry, data, is_replacing))

    def _originals_of(self, path: str) -> list[str]:
        """Returns what lay at a path before the repair."""
        return [entry.sha256 for entry in self._record.entries if entry.path == path]

    def _digest_at(self, parts: Parts) -> str:
        """Returns the SHA-256 of what lies there, or says that nothing or something else does."""
        with suppress(FileNotFoundError), self._bucket.directory_at(parts[:-1]) as directory:
            status = directory.statuses().get(parts[-1])
            if status is None:
                return _ABSENT
            if status.kind != EntryKind.FILE:
                return _NO_FILE
            data = self._read(parts)
            return _NO_FILE if data is None else sha256(data).hexdigest()
        return _ABSENT

    def _read(self, parts: Parts) -> bytes | None:
        try:
            with self._bucket.directory_at(parts[:-1]) as directory:
                return directory.read(parts[-1], MAX_SET_ASIDE)[0]
        except OSError:
            return None

    def _put_back(self, step: Step) -> None:
        parts = step.entry.parts
        if step.data is None:
            with (
                self._bucket.directory_at(self._place) as source,
                self._bucket.directory_at(parts[:-1], make=True) as target,
            ):
                source.rename(step.entry.kept, target, parts[-1])
                target.sync()
                source.sync()
        elif step.is_replacing:
            with self._bucket.directory_at(parts[:-1]) as directory:
                replace_file(self._bucket, self._operation(), directory, parts[-1], step.data)
                directory.sync()
        else:
            put(self._bucket, self._operation(), parts, step.data)

    def _advance(self) -> None:
        """Removes what the repair had moved, and lets every reader look again: one transaction."""
        if not (self._moved or any(is_fact_place(step.entry.parts) for step in self._steps)):
            return
        manifest = self._manifest()
        if manifest is None:
            for parts in self._moved:
                with suppress(FileNotFoundError), self._bucket.directory_at(parts[:-1]) as directory:
                    directory.unlink(parts[-1])
                    directory.sync()
            return
        revision = max(manifest.revision, self._record.revision) + 1
        self._record = replace(self._record, revision=revision)
        mark(self._bucket, self._place, self._record, self._record.state)
        data = encode_manifest(replace(manifest, revision=revision, last_updated=self._engine.now()))
        write_all(
            self._bucket,
            self._operation(),
            (manifest.revision, revision),
            (),
            ((self._bucket.manifest_name,), data),
            tuple(self._moved),
        )

    def _manifest(self) -> Manifest | None:
        data = self._read((self._bucket.manifest_name,))
        try:
            return None if data is None else decode_manifest(data, "")
        except (Corruption, UnsupportedFormat):
            return None

    def _drop_copies(self) -> None:
        with self._bucket.directory_at(self._place) as directory:
            for entry in self._record.entries:
                if entry.sha256:
                    with suppress(FileNotFoundError):
                        directory.unlink(entry.kept)
            directory.sync()

    def _operation(self) -> str:
        return self._engine.stamps.operation()


def _is_late(parts: Parts, manifest_name: str) -> bool:
    """Tells whether what lies there would be in the way of a transaction, or be replaced by it."""
    return parts in ((manifest_name,), (FENCES,), (JOURNAL,)) or parts[0] == RECOVERY


def _find(bucket: Bucket, time: str | None) -> tuple[Parts, Record]:
    if time is not None:
        return _named(bucket, time)
    names: list[str] = []
    with suppress(FileNotFoundError), bucket.directory_at((QUARANTINE,)) as quarantine:
        names = sorted(quarantine.names(), reverse=True)
    for name in names:
        with suppress(FileNotFoundError, NotADirectoryError, Corruption):
            record = read_record(bucket, (QUARANTINE, name))
            if record.state != RecordState.UNDONE:
                return (QUARANTINE, name), record
    raise InvalidInputError("undo", "finds no repair of this user that was not undone")


def _named(bucket: Bucket, time: str) -> tuple[Parts, Record]:
    parts = (QUARANTINE, time)
    if time in ("", ".", "..") or "/" in time or "\\" in time or "\0" in time:
        raise InvalidInputError("undo", "takes the name of a directory in .quarantine")
    try:
        return parts, read_record(bucket, parts)
    except FileNotFoundError:
        raise InvalidInputError("undo", f"finds no {RECORD_FILE} in {bucket.path_of(parts)}") from None
