"""Staging, publishing and applying a journal: the steps of a transaction on disk.

Why each step stands where it stands is written down in `docs/internals/transactions.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import sha256

from deermem.errors import InvalidInputError
from deermem.format.journal_json import (
    MAX_JOURNAL_BYTES,
    Image,
    Journal,
    Parts,
    encode_journal,
    is_kept_name,
    is_staged_name,
    staged_name,
)
from deermem.format.layout import AGENTS, JOURNAL, RECOVERY
from deermem.storage.bucket import Bucket
from deermem.storage.port import Directory, FileIdentity, UnexpectedFileType


@dataclass(frozen=True, slots=True)
class Staged:
    """Is a transaction whose images are on disk but not yet promised.

    `identities` are those that the files keep when they are renamed into place.
    """

    journal: Journal
    journal_name: str
    identities: dict[Parts, FileIdentity]


def sweep(bucket: Bucket, recovery: Directory) -> None:
    """Removes what transactions staged that died before they were promised.

    Only the holder of the lock stages files, so under the lock each one is a dead writer's. The
    absence of a journal is made durable first. A journal of ours that came back after a loss of power would
    miss nothing, since it has its images in it, and the crash explorer shows that sync to be spare; it stays
    for what the predecessor kept aside, and costs nothing as long as nobody dies.
    """
    orphans = [name for name in recovery.names() if is_staged_name(name) or is_kept_name(name)]
    if orphans:
        bucket.directory.sync()
    for name in orphans:
        with suppress(FileNotFoundError, IsADirectoryError, UnexpectedFileType):
            if is_kept_name(name):
                remove_kept(recovery, name)
            else:
                recovery.unlink(name)


def remove_kept(recovery: Directory, name: str) -> None:
    """Removes what a transaction of the predecessor kept aside, and that was ended since."""
    with recovery.child(name) as kept:
        for file in kept.names():
            kept.unlink(file)
    recovery.remove_child(name)


def stage(
    recovery: Directory,
    operation: str,
    revisions: tuple[int, int],
    files: Iterable[tuple[Parts, bytes]],
    manifest: tuple[Parts, bytes],
    deletes: tuple[Parts, ...],
    legacy_base: bytes | None = None,
) -> Staged:
    """Writes and syncs every image of a transaction, and the journal that will promise them.

    `legacy_base` is the `memory.json` of version 1 that is replaced.
    """
    contents = [*files, manifest]
    images = [
        Image.of(parts, staged_name(operation, number), data) for number, (parts, data) in enumerate(contents)
    ]
    base_digest = "" if legacy_base is None else sha256(legacy_base).hexdigest()
    journal = Journal(operation, *revisions, tuple(images[:-1]), images[-1], deletes, base_digest)
    journal_name = staged_name(operation, len(contents))
    record = encode_journal(journal)
    if len(record) > MAX_JOURNAL_BYTES:
        raise InvalidInputError("changes", f"need a journal of more than {MAX_JOURNAL_BYTES:,} bytes")
    staged = [(image.staged, data) for image, (_, data) in zip(images, contents, strict=True)]
    created = recovery.create_all([*staged, (journal_name, record)])
    identities = {image.parts: identity for image, identity in zip(images, created, strict=False)}
    return Staged(journal, journal_name, identities)


def publish(bucket: Bucket, recovery: Directory, staged: Staged) -> None:
    """Makes the journal durable under its own name: the commit point."""
    recovery.rename(staged.journal_name, bucket.directory, JOURNAL)
    bucket.directory.sync()


def withdraw(bucket: Bucket) -> None:
    """Takes back a journal that could not be made durable.

    Raises:
        OSError: It could not be taken back; the next access may find and complete it.
    """
    try:
        bucket.directory.unlink(JOURNAL)
    except FileNotFoundError:
        return
    bucket.directory.sync()


def discard(recovery: Directory, operation: str) -> None:
    """Removes what an operation staged, as far as the disk lets it; the rest is swept later."""
    with suppress(OSError):
        for name in recovery.names():
            if name.startswith(operation):
                with suppress(OSError):
                    recovery.unlink(name)


def replace_file(bucket: Bucket, operation: str, directory: Directory, name: str, data: bytes) -> None:
    """Writes and syncs a file aside and moves it into a directory, where it replaces what has its name.

    It is there as a whole or not at all. To sync the directory is left to the caller.

    Args:
        bucket: The user's bucket, whose lock the caller holds.
        operation: 32 hex digits that no other transaction has.
        directory: Where the file belongs.
        name: Its name there.
        data: What it holds.
    """
    with bucket.directory_at((RECOVERY,), make=True) as recovery:
        staged = staged_name(operation, 0)
        try:
            recovery.create(staged, data)
            recovery.rename(staged, directory, name)
        except BaseException:
            discard(recovery, operation)
            raise


def apply(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    """Moves the images of a promised transaction into place, and ends it.

    Facts are durable before `memory.json` names their revision, and that is durable before the
    journal goes. The journal's own removal is not synced: found again, it is found complete.
    """

    def place(image: Image, target: Directory) -> None:
        recovery.rename(image.staged, target, image.parts[-1])

    _place_files(bucket, journal, place)
    place(journal.manifest, bucket.directory)
    bucket.directory.sync()
    bucket.directory.unlink(JOURNAL)


def reapply(bucket: Bucket, recovery: Directory, journal: Journal) -> None:
    """Completes a transaction that somebody else promised, however far it came, as often as needed."""
    directories = dict.fromkeys(image.parts[:-1] for image in journal.images)
    for parts in directories:
        with bucket.directory_at(parts, make=True):
            pass
    _sync_each(bucket, (above for parts in directories for above in _above(parts, len(parts))))
    _place_files(bucket, journal, lambda image, target: _replace(recovery, image, target))
    _replace(recovery, journal.manifest, bucket.directory)
    bucket.directory.sync()


def _place_files(bucket: Bucket, journal: Journal, place: Callable[[Image, Directory], None]) -> None:
    """Places images and removes deleted files, and syncs each directory that was touched once."""
    writes: dict[Parts, list[Image]] = {}
    for image in journal.images:
        writes.setdefault(image.parts[:-1], []).append(image)
    deletes: dict[Parts, list[str]] = {}
    for parts in journal.deletes:
        deletes.setdefault(parts[:-1], []).append(parts[-1])
    for parts in dict.fromkeys((*writes, *deletes)):
        with ExitStack() as stack:
            try:
                directory = stack.enter_context(bucket.directory_at(parts))
            except FileNotFoundError:
                if parts in writes:
                    raise
                continue  # somebody tidied up an empty directory: the deleted files are gone
            for image in writes.get(parts, ()):
                place(image, directory)
            for name in deletes.get(parts, ()):
                # What became a directory meanwhile is no fact any more, and must not block the rest.
                with suppress(FileNotFoundError, IsADirectoryError):
                    directory.unlink(name)
            # The fences lie beside memory.json, and have to be durable before it all the same.
            directory.sync()


def _replace(recovery: Directory, image: Image, target: Directory) -> None:
    """Gives a file its image from the journal, unless it has it already.

    A file in place was synced before it was moved there. A staged one may be what a recovery that was
    killed was just writing: it looks complete and is not durable, so it is written anew.
    """
    name = image.parts[-1]
    with suppress(FileNotFoundError):
        if image.is_content(target.read(name, MAX_JOURNAL_BYTES)[0]):
            return
    with suppress(FileNotFoundError):
        recovery.unlink(image.staged)
    recovery.create(image.staged, image.text.encode("utf-8"))
    recovery.rename(image.staged, target, name)


def prepare_shards(bucket: Bucket, shards: Iterable[Parts]) -> None:
    """Makes the directories down to shards, so that no fact can vanish with one of them.

    A shard that holds a file was made durable by the transaction that put the file there. One that
    is new or empty may be a dead writer's and its entry unsynced; then all above it are synced too,
    unless another shard with a file in it proves that they were. Each directory is synced once.
    """
    unsure: dict[Parts, set[str]] = {}
    for parts in shards:
        with bucket.directory_at(parts, make=True) as shard:
            if shard.is_empty():
                unsure.setdefault(parts[:-1], set()).add(parts[-1])
    to_sync: list[Parts] = []
    for parts, names in unsure.items():
        with bucket.directory_at(parts) as facts:
            proven = any(name not in names and _has_entries(facts, name) for name in facts.names())
        to_sync += [parts] if proven else [parts, *_above(parts, len(parts))]
    _sync_each(bucket, to_sync)


def sync_above(bucket: Bucket, parts: Parts, levels: int) -> None:
    """Syncs the nearest directories above one, so that the entries on the way to it are durable."""
    _sync_each(bucket, _above(parts, levels))


def _above(parts: Parts, levels: int) -> Iterator[Parts]:
    return (parts[:-level] for level in range(1, levels + 1))


def _sync_each(bucket: Bucket, directories: Iterable[Parts]) -> None:
    for parts in dict.fromkeys(directories):
        with bucket.directory_at(parts) as directory:
            directory.sync()


def _has_entries(facts: Directory, name: str) -> bool:
    try:
        with facts.child(name) as shard:
            return not shard.is_empty()
    except OSError:
        return False


def is_below_agents(parts: Parts) -> bool:
    """Tells whether a path is a fact's, whose shard must be prepared."""
    return parts[0] == AGENTS
