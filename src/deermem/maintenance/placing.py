"""Puts the files of one user where nothing is: all of them durable before `memory.json` makes them count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from typing import Final

from deermem.errors import RestoreConflict
from deermem.format.journal_json import staged_name
from deermem.format.layout import RECOVERY
from deermem.maintenance.archive import MAX_FILE_BYTES, Parts, is_agents_own
from deermem.maintenance.archive_contents import revision_of
from deermem.maintenance.bucket_files import read_file
from deermem.maintenance.saving import complete
from deermem.model.identity import UserId
from deermem.storage.bucket import Bucket
from deermem.storage.engine import Engine
from deermem.storage.journal import discard
from deermem.storage.opening import make_bucket, sync_above_bucket, trusted
from deermem.storage.transaction import write_all

_BATCH_FILES: Final = 64
_BATCH_BYTES: Final = 16_000_000


@contextmanager
def empty_bucket(engine: Engine, user: UserId, manifest: str | None) -> Iterator[Placing]:
    """Gives a user's bucket to put files into; its lock is held until the block ends.

    A bucket that is missing is made. One that a restore left half-way is gone on with.

    Args:
        engine: The store.
        user: Whose bucket it is.
        manifest: The SHA-256 of the `memory.json` that is to come.

    Raises:
        RestoreConflict: Somebody has begun another memory meanwhile; nothing was written.
    """
    make_bucket(engine.file_system, user)
    sync_above_bucket(engine.file_system, user)
    with engine.maintenance(user) as bucket:
        complete(engine, bucket)
        begun = read_file(bucket, (bucket.manifest_name,))
        if begun is not None and sha256(begun).hexdigest() != manifest:
            raise RestoreConflict(str(user))
        placing = Placing(bucket, engine.stamps.operation())
        try:
            yield placing
        except BaseException:
            placing.abandon()
            raise


class Placing:
    """Takes the files of a user; documents that begin a memory are kept until all others are durable.

    Until `memory.json` is there the facts are not read by anybody: facts without it are `Corruption`.
    """

    def __init__(self, bucket: Bucket, operation: str) -> None:
        self._bucket = bucket
        self._operation = operation
        self._number = 0
        self._batch: list[tuple[Parts, bytes]] = []
        self._bytes = 0
        self._last: list[tuple[Parts, bytes]] = []
        self._folders: set[Parts] = set()

    def add(self, parts: Parts, data: bytes) -> None:
        """Takes a file; an agent's configuration that is there is the host's and stays.

        Raises:
            RestoreConflict: Another file has its name; it was not touched.
        """
        if parts[-1] == self._bucket.manifest_name:
            self._last.append((parts, data))
            return
        if is_agents_own(parts) and read_file(self._bucket, parts) is not None:
            return
        self._batch.append((parts, data))
        self._bytes += len(data)
        if len(self._batch) >= _BATCH_FILES or self._bytes >= _BATCH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Makes everything durable, then puts the documents that begin a memory, `memory.json` last.

        That one comes by the steps of a transaction: a reader that saw it and then a loss of power must
        not find it gone.
        """
        self._flush()
        self._sync()
        for parts, data in sorted(self._last, key=lambda file: -len(file[0])):
            revision = revision_of(data) if len(parts) == 1 else None
            if revision is not None and not self._is_there(parts, data):
                write_all(self._bucket, self._operation, (0, revision), (), (parts, data), ())
                continue
            self._batch = [(parts, data)]
            self._flush()
            self._sync()

    def abandon(self) -> None:
        """Removes what was staged and not put in place."""
        with suppress(OSError), self._bucket.directory_at((RECOVERY,)) as recovery:
            discard(recovery, self._operation)

    def _flush(self) -> None:
        missing = [(parts, data) for parts, data in self._batch if not self._is_there(parts, data)]
        self._folders.update(parts[:-1] for parts, _ in self._batch)
        self._batch, self._bytes = [], 0
        if not missing:
            return
        staged = [staged_name(self._operation, self._number + n) for n in range(len(missing))]
        self._number += len(missing)
        with ExitStack() as stack:
            recovery = stack.enter_context(self._bucket.directory_at((RECOVERY,), make=True))
            recovery.create_all(list(zip(staged, (data for _, data in missing), strict=True)))
            for name, (parts, _) in zip(staged, missing, strict=True):
                with self._bucket.directory_at(parts[:-1], make=True) as directory:
                    recovery.rename(name, directory, parts[-1])

    def _is_there(self, parts: Parts, data: bytes) -> bool:
        found = read_file(self._bucket, parts)
        if found is not None and found != data:
            raise RestoreConflict(str(self._bucket.user))
        return found is not None

    def _sync(self) -> None:
        """Makes the names of all that was put, and of the directories on the way, durable."""
        ways = {parts[:depth] for parts in self._folders for depth in range(len(parts) + 1)}
        for parts in sorted(ways, key=len, reverse=True):
            with self._bucket.directory_at(parts) as directory:
                directory.sync()


def put_if_missing(bucket: Bucket, operation: str, parts: Parts, data: bytes) -> bool:
    """Puts a file that nobody has, durably; tells whether the name was free."""
    with trusted(), suppress(FileNotFoundError), bucket.directory_at(parts[:-1]) as directory:
        directory.read(parts[-1], MAX_FILE_BYTES)
        return False
    placing = Placing(bucket, operation)
    placing.add(parts, data)
    placing.finish()
    return True
