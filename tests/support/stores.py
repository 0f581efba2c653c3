"""What the tests of the store share: scopes, a clock, looking at the disk, and damaging it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deermem import FactDraft, MemoryRepository, Scope
from deermem.format.layout import bucket_parts, fact_parts
from deermem.model.identity import FactId, UserId
from tests.support.watched import CallTest, Killed, WatchedFileSystem

ALICE = Scope.of("alice")
CODER = Scope.of("alice", "coder")
BOB = Scope.of("bob")

JOURNAL = ".memory.journal.json"


class Clock:
    """Shows a later second each time it is asked, unless it stands still."""

    def __init__(self) -> None:
        self.now = datetime(2026, 7, 19, tzinfo=UTC)
        self.step = timedelta(seconds=1)

    def __call__(self) -> datetime:
        self.now += self.step
        return self.now


def draft(fact_id: str, content: str | None = None, **fields: Any) -> FactDraft:
    """Returns a draft with an id; the content tells the id unless it is given."""
    return FactDraft(content or f"text of {fact_id}", id=FactId(fact_id), **fields)


def store_with(root: Path, *fact_ids: str, scope: Scope = ALICE) -> MemoryRepository:
    """Returns a repository whose user has these facts; nothing is cached yet."""
    store = MemoryRepository(root)
    for fact_id in fact_ids:
        store.upsert_fact(scope, draft(fact_id))
    return store


def bucket_path(root: Path, user_id: str | None = "alice") -> Path:
    """Returns where a user's bucket lies."""
    return root.joinpath(*bucket_parts(UserId.parse(user_id)))


def fact_path(root: Path, scope: Scope, fact_id: str) -> Path:
    """Returns where a fact's file lies."""
    parts = fact_parts(scope.agent, FactId(fact_id))
    return root.joinpath(*bucket_parts(scope.user), *parts)


def manifest(root: Path, user_id: str | None = "alice") -> dict[str, Any]:
    """Returns `memory.json` as JSON."""
    document = json.loads(bucket_path(root, user_id).joinpath("memory.json").read_bytes())
    assert isinstance(document, dict)
    return document


def edit(path: Path, old: str, new: str) -> None:
    """Changes a file as an editor does: the old text must be there once."""
    text = path.read_bytes().decode("utf-8")
    assert text.count(old) == 1
    path.write_bytes(text.replace(old, new).encode("utf-8"))


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Returns every entry below a directory: kind, mode, and of files inode, time stamp and bytes."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content: tuple[object, ...] = ()
        if path.is_symlink():
            content = (os.readlink(path),)
        elif path.is_file():
            content = (status.st_ino, status.st_mtime_ns, path.read_bytes())
        found[path.relative_to(root).as_posix()] = (oct(status.st_mode), *content)
    return found


def files(root: Path) -> set[str]:
    """Returns the paths of all files below a directory."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def settle(root: Path) -> None:
    """Makes every file an hour old, so that none is too young for its time stamp to prove anything."""
    for path in root.rglob("*"):
        if path.is_file():
            then = path.stat().st_mtime_ns - 3_600_000_000_000
            os.utime(path, ns=(then, then))


def interrupt(root: Path, change: Callable[[MemoryRepository], object], at: CallTest) -> None:
    """Starts a change and lets its process die in place of a call of the disk."""
    disk = WatchedFileSystem(root)
    disk.die_at(at)
    with suppress(Killed):
        change(MemoryRepository(disk))
        raise AssertionError("the change came to its end")


def open_descriptors() -> int:
    """Returns how many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))
