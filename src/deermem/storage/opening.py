"""Opens, makes and lists what lies between the storage root and a user's files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from deermem.errors import Corruption, InvalidInputError
from deermem.format.layout import USERS, bucket_parts, is_windows_device
from deermem.model.identity import AgentName, FactId, UserId, is_bucket_name
from deermem.storage.port import Directory, FileSystem, UnexpectedFileType

_MAX_EXACT_NAMES: Final = 10_000


class BucketGone(FileNotFoundError):
    """Says that a user's bucket is not there, or not any more: the user may have been erased meanwhile."""


@contextmanager
def trusted() -> Iterator[None]:
    """Turns a link, a directory or a device in place of a file of ours into `Corruption`."""
    try:
        yield
    except UnexpectedFileType as error:
        raise Corruption(error.path, error.reason, "nothing is followed out of the user's bucket") from None


def has_root(file_system: FileSystem) -> bool:
    """Tells whether there is a storage root; one that cannot be opened is there."""
    with suppress(PermissionError):
        try:
            file_system.open_root().close()
        except FileNotFoundError:
            return False
    return True


def open_bucket(file_system: FileSystem, user: UserId, exact_names: set[str]) -> Directory | None:
    """Opens a user's bucket; `None` when there is none.

    Args:
        file_system: The disk.
        user: Whose bucket to open.
        exact_names: Buckets whose names are known to be just these, and not another user's in
            another case; the function adds to it.

    Raises:
        InvalidInputError: The file system ignores case and the bucket is another user's, or the
            name is one of a Windows device.
        Corruption: A link or a file lies where the bucket should be.
    """
    parts = bucket_parts(user)
    if file_system.windows_names and parts:
        _refuse_device("user_id", parts[-1])
    try:
        root = file_system.open_root()
    except FileNotFoundError:
        return None
    if not parts:
        return root
    with trusted(), root:
        try:
            with root.child(parts[0]) as users:
                bucket = users.child(parts[1])
                if parts[1] not in exact_names:
                    if not _is_own_directory(users, parts[1]):
                        bucket.close()
                        raise InvalidInputError(
                            "user_id", f"{user} differs only in case from another user's id"
                        )
                    if len(exact_names) >= _MAX_EXACT_NAMES:
                        exact_names.clear()
                    exact_names.add(parts[1])
                return bucket
        except FileNotFoundError:
            exact_names.discard(parts[1])  # what comes next may have the name in another case
            return None


def refuse_devices(agent: AgentName, fact_id: FactId | None = None) -> None:
    """Refuses names that Windows would take for devices, whatever comes after them.

    Raises:
        InvalidInputError: The agent or the fact has such a name.
    """
    _refuse_device("agent_name", agent)
    if fact_id is not None:
        _refuse_device("id", fact_id)


def _refuse_device(field: str, name: str) -> None:
    if is_windows_device(name):
        raise InvalidInputError(field, f"{name!r} is the name of a device on Windows")


def make_bucket(file_system: FileSystem, user: UserId) -> None:
    """Makes the directories down to a user's bucket; `sync_above_bucket` makes them durable.

    Raises:
        BucketGone: What was made is gone again, since the user was erased at the same time.
    """
    with trusted(), ExitStack() as stack:
        try:
            current = stack.enter_context(file_system.open_root())
        except FileNotFoundError:
            file_system.make_root()
            current = stack.enter_context(file_system.open_root())
        for part in bucket_parts(user):
            try:
                current.make_child(part)
                current = stack.enter_context(current.child(part))
            except FileNotFoundError as error:
                raise BucketGone(*error.args) from None


def sync_above_bucket(file_system: FileSystem, user: UserId) -> None:
    """Makes the way from the storage root to a bucket durable, before the first commit in it."""
    file_system.make_root()
    with ExitStack() as stack:
        current = stack.enter_context(file_system.open_root())
        for part in bucket_parts(user):
            current.sync()
            current = stack.enter_context(current.child(part))


def _is_own_directory(users: Directory, name: str) -> bool:
    if name.swapcase() == name:
        return True
    try:
        users.child(name.swapcase()).close()
    except OSError:
        return True
    return name in users.names()


def list_buckets(file_system: FileSystem) -> tuple[str, ...]:
    """Returns the names of all user buckets, sorted; other entries of `users` are left out."""
    with trusted():
        try:
            root = file_system.open_root()
        except FileNotFoundError:
            return ()
        with root:
            try:
                users = root.child(USERS)
            except FileNotFoundError:
                return ()
            with users:
                entries = users.identities().items()
                return tuple(sorted(name for name, file in entries if file is None and is_bucket_name(name)))
