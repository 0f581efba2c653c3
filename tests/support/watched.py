"""The local file system as a double that counts, fails and dies: every call passes through `_enter`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.port import Directory, EntryStatus, FileIdentity, LockFile


class Call(NamedTuple):
    """Is one call of the port; `path` is where it acts, below the storage root."""

    kind: str
    path: str


class Killed(BaseException):
    """Stands for the death of the process: nothing that the store does afterwards reaches the disk."""


CallTest = Callable[[Call], bool]
CHANGING = frozenset(["create", "make_child", "make_root", "remove_child", "rename", "sync", "unlink"])


def call_of(kind: str, ending: str = "") -> CallTest:
    """Returns the test for calls of one kind on paths with an ending."""
    return lambda call: call.kind == kind and call.path.endswith(ending)


class WatchedFileSystem:
    """Passes calls on to the machine's file system; waiting costs no time."""

    def __init__(self, root: Path, *, windows_names: bool = False) -> None:
        self._inner = LocalFileSystem(root)
        self._windows_names = windows_names
        self.calls: list[Call] = []
        self.waits: list[float] = []
        self.on_call: Callable[[Call], None] = lambda _: None
        self._faults: list[tuple[CallTest, OSError]] = []
        self._deadly: CallTest | None = None
        self._dead = False

    @property
    def root(self) -> str:
        return self._inner.root

    @property
    def windows_names(self) -> bool:
        return self._windows_names

    def open_root(self) -> Directory:
        self.enter("open_root", ".")
        return WatchedDirectory(self, self._inner.open_root())

    def make_root(self) -> None:
        self.enter("make_root", ".")
        self._inner.make_root()

    def accept_root(self) -> None:
        self._inner.accept_root()

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    def enter(self, kind: str, path: str) -> None:
        """Counts a call, and keeps it from happening where it is to fail."""
        call = Call(kind, path)
        self._dead = self._dead or (self._deadly is not None and self._deadly(call))
        if self._dead:
            raise Killed
        self.calls.append(call)
        for applies, error in self._faults:
            if applies(call):
                raise error
        self.on_call(call)

    def fail(self, applies: CallTest, error: int) -> None:
        """Lets every call that passes the test fail, until `heal`."""
        self._faults.append((applies, OSError(error, os.strerror(error))))

    def die_at(self, applies: CallTest) -> None:
        """Lets the process die in place of the first call that passes the test."""
        self._deadly = applies

    def die_at_change(self, number: int) -> None:
        """Lets the process die in place of a call that changes the disk, counted from 0."""
        self._deadly = lambda call: call.kind in CHANGING and self.count(*CHANGING) >= number

    def heal(self) -> None:
        """Ends all faults."""
        self._faults.clear()

    def count(self, *kinds: str, ending: str = "") -> int:
        """Returns how many calls of these kinds there were on paths with an ending."""
        return sum(call.kind in kinds and call.path.endswith(ending) for call in self.calls)

    def syncs(self) -> int:
        """Returns how many times the disk was told to make something durable, `make_root` left out."""
        return self.count("create", "sync")


class WatchedDirectory:
    """Passes calls on to an open directory."""

    def __init__(self, owner: WatchedFileSystem, inner: Directory) -> None:
        self._owner = owner
        self._inner = inner

    @property
    def path(self) -> str:
        return self._inner.path

    def _enter(self, kind: str, name: str = "") -> None:
        here = "" if self.path == "." else self.path
        self._owner.enter(kind, f"{here}/{name}".strip("/") or ".")

    def read(self, name: str, limit: int) -> tuple[bytes, FileIdentity]:
        self._enter("read", name)
        return self._inner.read(name, limit)

    def identify(self, name: str) -> FileIdentity:
        self._enter("identify", name)
        return self._inner.identify(name)

    def names(self) -> list[str]:
        self._enter("names")
        return self._inner.names()

    def identities(self) -> dict[str, FileIdentity | None]:
        self._enter("identities")
        return self._inner.identities()

    def statuses(self) -> dict[str, EntryStatus]:
        self._enter("identities")
        return self._inner.statuses()

    def tighten(self, name: str) -> None:
        self._enter("tighten", name)
        self._inner.tighten(name)

    def is_empty(self) -> bool:
        self._enter("is_empty")
        return self._inner.is_empty()

    def child(self, name: str) -> Directory:
        self._enter("child", name)
        return WatchedDirectory(self._owner, self._inner.child(name))

    def make_child(self, name: str) -> bool:
        self._enter("make_child", name)
        return self._inner.make_child(name)

    def check_changeable(self) -> None:
        self._inner.check_changeable()

    def remove_child(self, name: str) -> None:
        self._enter("remove_child", name)
        self._inner.remove_child(name)

    def create(self, name: str, data: bytes) -> FileIdentity:
        self._enter("create", name)
        return self._inner.create(name, data)

    def create_all(self, files: Sequence[tuple[str, bytes]]) -> list[FileIdentity]:
        return [self.create(name, data) for name, data in files]

    def rename(self, name: str, target: Directory, new_name: str) -> None:
        assert isinstance(target, WatchedDirectory)
        target._enter("rename", new_name)
        self._inner.rename(name, target._inner, new_name)

    def unlink(self, name: str) -> None:
        self._enter("unlink", name)
        self._inner.unlink(name)

    def sync(self) -> None:
        self._enter("sync")
        self._inner.sync()

    def lock_file(self, name: str) -> LockFile:
        self._enter("lock_file", name)
        return self._inner.lock_file(name)

    def close(self) -> None:
        self._inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
