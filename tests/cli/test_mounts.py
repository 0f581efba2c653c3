"""Which mount a directory lies on, and what is known of its locks."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem.storage.mounts import (
    Mount,
    is_local,
    lies_on_local_disks,
    lock_warning,
    mount_of,
    parse_mountinfo,
)

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=continue
60 22 0:50 / /mnt/with\\040blank rw,nosuid - fuse.sshfs me@host:/dir rw,user_id=0
61 22 0:51 / /mnt/moose rw,nosuid - fuse mfs\\043HOST:9421 rw
62 22 0:52 /sub /data ro,relatime master:3 propagate_from:2 - nfs4 server:/export rw,vers=4.2,local_lock=none
63 22 0:53 / /data rw - tmpfs tmpfs rw
not a line of the table
64 22 0:54 / /short rw - proc
"""


@pytest.mark.parametrize(
    ("path", "point", "type_"),
    [
        ("/", "/", "ext4"),
        ("/home", "/", "ext4"),
        ("/mnt/with blank", "/mnt/with blank", "fuse.sshfs"),
        ("/mnt/with blank/store", "/mnt/with blank", "fuse.sshfs"),
        ("/mnt/with blanks", "/", "ext4"),
        ("/data/x", "/data", "tmpfs"),
    ],
)
def test_the_deepest_and_then_the_newest_mount_counts(path: str, point: str, type_: str) -> None:
    mount = mount_of(path, parse_mountinfo(TABLE))
    assert mount is not None
    assert (mount.point, mount.type) == (point, type_)


def test_escapes_and_options_are_read_and_broken_lines_left_out() -> None:
    mounts = {mount.source: mount for mount in parse_mountinfo(TABLE)}
    assert set(mounts) == {"/dev/vda", "me@host:/dir", "mfs#HOST:9421", "server:/export", "tmpfs"}
    assert mounts["server:/export"].read_only
    assert not mounts["/dev/vda"].read_only


def test_without_a_table_nothing_is_known() -> None:
    assert mount_of("/data", parse_mountinfo("")) is None


@pytest.mark.parametrize(
    ("type_", "options", "expected"),
    [
        ("fuse.sshfs", (), "do not reach other hosts"),
        ("fuse.rclone", (), "do not reach other hosts"),
        ("fuse.glusterfs", (), "late"),
        ("fuse.juicefs", (), "late"),
        ("nfs4", ("local_lock=none",), "may not reach"),
        ("nfs", ("nolock",), "do not reach other hosts"),
        ("nfs4", ("local_lock=all",), "do not reach other hosts"),
    ],
)
def test_mounts_with_local_locks_or_caches_are_warned_of(
    type_: str, options: tuple[str, ...], expected: str
) -> None:
    warning = lock_warning(Mount("/m", type_, "s", options))
    assert warning is not None
    assert expected in warning


@pytest.mark.parametrize("type_", ["ext4", "xfs", "btrfs", "apfs", "fuse.ceph-fuse", "fuse"])
def test_no_warning_is_made_up(type_: str) -> None:
    assert lock_warning(Mount("/m", type_, "s", ("rw",))) is None


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/home/store", True),
        ("/data/store", True),
        ("/mnt/with blank/store", False),
        ("/mnt/moose", False),
        ("/mnt", False),  # two are mounted below it
        ("/mnt/with", True),
        ("/", False),
    ],
)
def test_a_store_is_local_where_all_of_it_is(path: str, local: bool) -> None:
    assert lies_on_local_disks(path, parse_mountinfo(TABLE)) is local


def test_of_a_file_system_that_is_not_known_nothing_is_promised() -> None:
    assert not lies_on_local_disks("/x", [Mount("/", "fuse.of-somebody", "s", ("rw",))])
    assert not lies_on_local_disks("/x", [])


def test_a_link_to_a_store_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc")
    assert not is_local(str(tmp_path / "link"))
