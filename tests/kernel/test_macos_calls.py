"""What a sync is on macOS, run here with system calls that are made to answer as there."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from deermem import MemoryRepository
from deermem.storage.filesystem import LocalFileSystem, calls
from tests.support.stores import ALICE, draft

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fcntl to stand in for")

F_FULLFSYNC = 51


class Drive:
    """Answers `F_FULLFSYNC`, with an error if it has one, and `fsync`; notes which was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import fcntl

        self.full: list[bool] = []
        self.plain: list[bool] = []
        self.error = 0
        monkeypatch.setattr(calls, "sys", SimpleNamespace(platform="darwin"))
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", self._control)
        monkeypatch.setattr(os, "fsync", self._sync)

    def _control(self, descriptor: int, command: int) -> int:
        assert command == F_FULLFSYNC
        self.full.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        return 0

    def _sync(self, descriptor: int) -> None:
        self.plain.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Drive:
    return Drive(monkeypatch)


def test_on_macos_files_and_directories_are_flushed_to_the_medium(tmp_path: Path, drive: Drive) -> None:
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x"))
    assert drive.plain == []
    assert set(drive.full) == {True, False}


@pytest.mark.parametrize("error", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_where_macos_has_no_full_flush_the_plain_sync_has_to_do(
    tmp_path: Path, drive: Drive, error: int
) -> None:
    drive.error = error
    MemoryRepository(tmp_path).upsert_fact(ALICE, draft("x"))
    assert drive.plain == drive.full


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_full_flush_that_failed_is_not_followed_by_a_plain_sync_that_may_pretend_to_succeed(
    tmp_path: Path, drive: Drive, error: int
) -> None:
    drive.error = error
    root = LocalFileSystem(tmp_path).open_root()
    for sync in (lambda: root.create("a", b"text"), root.sync):
        with pytest.raises(OSError, match=os.strerror(error)):
            sync()
    assert drive.plain == []
    assert root.is_empty()
