"""The probe finds what a file system lacks, and leaves nothing behind."""

from __future__ import annotations

import errno
import logging
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deermem import DeerMem, DeerMemConfig
from deermem.storage.filesystem import probe as module
from deermem.storage.filesystem.probe import PREFIX, ProbeReport, probe, warn_once
from deermem.storage.mounts import Mount
from tests.support.stores import store_with, tree


def refuse(number: int) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


def test_a_local_disk_has_all_that_the_store_needs(tmp_path: Path) -> None:
    report = probe(str(tmp_path))
    assert (report.skipped, report.failure, report.advice) == ("", "", "")
    assert report.locks
    assert report.replaces
    assert report.syncs_files
    assert report.syncs_directories is not False
    assert report.timestamp_ns is not None
    assert report.timestamp_ns < 1_000_000_000
    assert report.warnings == ()


def test_nothing_is_left_behind_and_no_bucket_is_touched(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    before = tree(tmp_path)
    probe(str(tmp_path))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("call", ["replace", "fsync", "utime", "unlink"])
def test_nothing_is_left_behind_when_a_call_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(os, call, refuse(errno.EIO))
    probe(str(tmp_path))
    monkeypatch.undo()
    left = list(tmp_path.iterdir())
    if call == "unlink":  # then it stays for the next probe
        os.utime(left[0], (0, 0))
        probe(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_probe_left_goes_after_an_hour_and_a_link_is_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for path in (root / f"{PREFIX}old", root / f"{PREFIX}young", outside):
        path.mkdir(parents=True)
        (path / "new").write_bytes(b"new")
    (root / f"{PREFIX}link").symlink_to(outside)
    os.utime(root / f"{PREFIX}old", (0, 0))
    os.utime(root / f"{PREFIX}link", (0, 0), follow_symlinks=False)
    probe(str(root))
    assert sorted(path.name for path in root.iterdir()) == [f"{PREFIX}link", f"{PREFIX}young"]
    assert (outside / "new").exists()


def test_locks_that_do_not_exclude_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "try_lock", lambda _: True)
    report = probe(str(tmp_path))
    assert report.locks is False
    assert "locks do not work here" in report.warnings[0]


def test_a_lock_call_that_fails_is_a_lock_that_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "try_lock", refuse(errno.ENOLCK))
    assert probe(str(tmp_path)).locks is False


def test_a_rename_that_does_not_replace_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", refuse(errno.EEXIST))
    report = probe(str(tmp_path))
    assert report.replaces is False
    assert "rename" in report.warnings[0]


@pytest.mark.skipif(os.name == "nt", reason="the system has no sync of directories")
def test_directories_that_cannot_be_synced_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def only_files(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EINVAL, "not for directories")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    report = probe(str(tmp_path))
    assert (report.syncs_files, report.syncs_directories) == (True, False)
    assert "directories cannot be synced" in report.warnings[0]


@pytest.mark.parametrize(
    ("unit", "warns"), [(1, False), (100, False), (1_000_000_000, True), (2_000_000_000, True)]
)
def test_the_distance_of_time_stamps_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: int, warns: bool
) -> None:
    utime = os.utime

    def coarse(path: Path, ns: tuple[int, int]) -> None:
        utime(path, ns=(ns[0] // unit * unit, ns[1] // unit * unit))

    monkeypatch.setattr(os, "utime", coarse)
    report = probe(str(tmp_path))
    assert report.timestamp_ns == unit
    assert any("whole seconds" in text for text in report.warnings) == warns


def test_a_root_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    report = probe(str(tmp_path / "store"))
    assert report.skipped == "there is no such directory yet"
    assert report.warnings == ()
    assert list(tmp_path.iterdir()) == []


def test_a_root_that_is_mounted_read_only_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "mounted_at", lambda _: Mount("/data", "ext4", "/dev/sdb", ("ro",)))
    monkeypatch.setattr(os, "mkdir", refuse(errno.EROFS))
    report = probe(str(tmp_path))
    assert report.skipped == "/data is mounted read-only"
    assert (report.locks, report.warnings) == (None, ())


def test_a_root_that_cannot_be_written_is_told_of_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", refuse(errno.EACCES))
    monkeypatch.setattr(module, "foreign_owner", lambda path: f"run `chown -R 1000 {path}`")
    report = probe(str(tmp_path))
    assert report.warnings == (
        f"{tmp_path}: it cannot be written: {os.strerror(errno.EACCES)}",
        f"run `chown -R 1000 {tmp_path}`",
    )


def test_a_file_system_with_local_locks_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mounted_at", lambda _: Mount("/mnt", "fuse.sshfs", "me@host:", ("rw",)))
    assert "fuse.sshfs: locks do not reach other hosts" in probe(str(tmp_path)).warnings[0]


@pytest.mark.stress
def test_a_probe_takes_less_than_50_ms(tmp_path: Path) -> None:
    times = []
    for _ in range(20):
        start = time.perf_counter()
        probe(str(tmp_path))
        times.append(time.perf_counter() - start)
    assert statistics.median(times) < 0.05


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lets every probe find something, and tells which roots were looked at."""
    looked_at: list[str] = []

    def find(root: str) -> ProbeReport:
        looked_at.append(root)
        return ProbeReport(root, locks=False)

    monkeypatch.setattr(module, "probe", find)
    return looked_at


def test_a_process_warns_once_of_each_root(
    tmp_path: Path, lacking: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for _ in range(3):
            warn_once(str(tmp_path / name))
    assert lacking == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_a_root_that_is_made_later_is_looked_at_then(tmp_path: Path, lacking: list[str]) -> None:
    warn_once(str(tmp_path / "a"))
    (tmp_path / "a").mkdir()
    warn_once(str(tmp_path / "a"))
    warn_once(str(tmp_path / "a"))
    assert len(lacking) == 2


def test_a_memory_manager_warns_when_it_is_made(
    tmp_path: Path, lacking: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        DeerMem(DeerMemConfig(storage_path=str(tmp_path))).close()
    assert lacking == [str(tmp_path)]
    assert "locks do not work here" in caplog.text
