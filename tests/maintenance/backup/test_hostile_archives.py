"""Archives that somebody forged or that were damaged are refused, and nothing is written."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import zlib
from pathlib import Path

import pytest

from deermem import ArchiveError, MemoryRepository
from deermem.maintenance import archive_reader
from deermem.maintenance.backup import verify
from deermem.maintenance.restore import Selection, plan_restore
from tests.maintenance.backup.archives import Change, files_below, members_of, mended, packed, restored, saved
from tests.support.stores import ALICE, CODER, draft, store_with

Members = list[tuple[str, bytes]]


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Members:
    store = store_with(tmp_path_factory.mktemp("store"), "a", "b")
    store.upsert_fact(CODER, draft("c"))
    return members_of(saved(store))


def refused(archive: bytes, root: Path) -> ArchiveError:
    """Returns why an archive was refused, by both who verify it and who restore it."""
    with pytest.raises(ArchiveError) as by_verify:
        verify(io.BytesIO(archive))
    with pytest.raises(ArchiveError) as by_restore:
        restored(MemoryRepository(root), archive)
    assert str(by_verify.value) == str(by_restore.value)
    assert not root.exists()
    return by_restore.value


def with_file(name: str, data: bytes = b"x") -> Change:
    return lambda members: [members[0], (name, data), *members[1:]]


def test_members_that_are_packed_by_another_program_are_accepted(members: Members, tmp_path: Path) -> None:
    restored(MemoryRepository(tmp_path), packed(mended(members)))
    assert len(MemoryRepository(tmp_path).snapshot(ALICE).facts) == 2


OUTSIDE = [
    "/etc/passwd",
    "../outside",
    "users/alice/../../outside",
    "users/alice/agents/../../../outside",
    "users/../outside",
    "users/alice//memory.json",
    "users/alice/./memory.json",
    "./users/alice/memory.json",
    "users\\alice\\memory.json",
    "C:/outside",
    "users/alice/agents/coder/.metadata/a\\b",
    "users/alice/agents/coder/.metadata/C:x",
    "users/alice/agents/coder/.metadata/a\nb",
    "users/alice/agents/coder/.metadata/ends.",
    "users/alice/agents/coder/.metadata/ends ",
]
FOREIGN = [
    "users/alice/.memory.lock",
    "users/alice/.memory.journal.json",
    "users/alice/.recovery/00000000000000000000000000000000.000",
    "users/alice/.safety/1-clear.json",
    "users/alice/.quarantine/x/y.md",
    "users/alice/threads/t.json",
    "users/alice/notes.md",
    "users/alice/agents/coder/config.yaml",
    "users/alice/agents/coder/SOUL.md",
    "users/alice/agents/coder/facts/zz/a.md",
    "users/alice/agents/coder/facts/ab/README.md",
    "users/alice/agents/coder/facts/ab/.#a.md",
    "users/alice/agents/Coder/facts/ab/a.md",
    "users/alice/agents/coder/.metadata/deep/x",
    "users/a.b/memory.json",
    "users/alice",
    "users/" + "a" * 218 + "/memory.json",
    ".gateway-tokens.json",
    ".erased/x.json",
    "memory.json/x",
]


@pytest.mark.parametrize("name", [*OUTSIDE, *FOREIGN])
def test_a_name_that_no_backup_has_is_refused(members: Members, tmp_path: Path, name: str) -> None:
    changed = [members[0], (name, b"{}"), *members[1:]]
    assert refused(packed(mended(changed)), tmp_path / "root").member == name


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE,
     tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, b"Z"],
)  # fmt: skip
def test_what_is_no_regular_file_is_refused(members: Members, tmp_path: Path, kind: bytes) -> None:
    special = tarfile.TarInfo("users/alice/agents/coder/facts/ab/link.md")
    special.type, special.linkname = kind, "/etc/passwd"
    error = refused(packed([members[0], special, *members[1:]]), tmp_path / "root")
    assert "is not a regular file" in error.reason


TWINS: dict[str, Change] = {
    "the same name": lambda members: [*members[:2], members[1], *members[2:]],
    "another case": lambda members: [
        *members[:2],
        (members[1][0].replace("a.md", "A.md"), b"x"),
        *members[2:],
    ],
    "another form": lambda members: [
        members[0],
        ("users/alice/agents/coder/.metadata/\u00e9", b"x"),
        ("users/alice/agents/coder/.metadata/e\u0301", b"x"),
        *members[1:],
    ],
    "file, then directory": lambda members: [
        members[0],
        ("users/alice/memory.json.v1.bak", b"x"),
        ("users/alice/memory.json.v1.bak/x.md", b"x"),
        *members[1:],
    ],
    "directory, then file": lambda members: [
        members[0],
        ("users/alice/memory.json.v1.bak/x.md", b"x"),
        ("users/alice/memory.json.v1.bak", b"x"),
        *members[1:],
    ],
    "a second time": lambda members: [*members[:-1], *members[1:-1], members[-1]],
}


@pytest.mark.parametrize("change", TWINS.values(), ids=TWINS)
def test_names_that_are_one_on_some_file_system_are_refused(
    members: Members, tmp_path: Path, change: Change
) -> None:
    refused(packed(mended(change(members))), tmp_path / "root")


STRUCTURE: dict[str, Change] = {
    "no header": lambda members: members[1:],
    "no manifest": lambda members: members[:-1],
    "no index": lambda members: [*members[:-2], members[-1]],
    "nothing at all": lambda _: [],
    "the header twice": lambda members: [members[0], *members],
    "the manifest twice": lambda members: [*members, members[-1]],
    "something behind the manifest": lambda members: [*members, members[1]],
    "a file that no index has": lambda members: [members[0], members[2], *members[3:]],
    "a changed fact": lambda members: [members[0], (members[1][0], members[1][1] + b"!"), *members[2:]],
    "a changed index": lambda members: [*members[:-2], (members[-2][0], members[-2][1] + b"\n"), members[-1]],
    "a changed manifest": lambda members: [*members[:-1], (members[-1][0], members[-1][1] + b" ")],
    "files of two users mixed": lambda members: [
        *members[:2],
        (members[2][0].replace("alice", "bob"), b"x"),
        *members[2:],
    ],
    "another index": lambda members: [*members[:-2], ("deermem-backup/users/bob.jsonl", b""), members[-1]],
    "an unknown document": lambda members: [members[0], ("deermem-backup/x", b""), *members[1:]],
}


@pytest.mark.parametrize("change", STRUCTURE.values(), ids=STRUCTURE)
def test_an_archive_that_is_not_whole_is_refused(members: Members, tmp_path: Path, change: Change) -> None:
    refused(packed(change(members)), tmp_path / "root")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 2),
        ("format", None),
        ("tool", 1),
        ("created", None),
        ("withAgents", 1),
        ("manifestName", "../x"),
        ("manifestName", None),
        ("more", 1),
    ],
)
def test_a_header_that_is_none_is_refused(members: Members, tmp_path: Path, key: str, value: object) -> None:
    header = {**json.loads(members[0][1]), key: value}
    refused(packed([(members[0][0], json.dumps(header).encode()), *members[1:]]), tmp_path / "root")


def test_a_changed_file_is_named(members: Members, tmp_path: Path) -> None:
    name = members[2][0]
    changed = [*members[:2], (name, members[2][1].replace(b"text of", b"text  of")), *members[3:]]
    assert refused(packed(changed), tmp_path / "root").member == name


def plain(archive: bytes) -> bytes:
    return gzip.decompress(archive)


def test_an_archive_cut_short_anywhere_is_refused(members: Members, tmp_path: Path) -> None:
    archive = packed(members)
    for end in {*range(0, len(archive), 97), len(archive) - 1}:
        refused(archive[:end], tmp_path / "root")


def test_a_tar_cut_short_anywhere_is_refused(members: Members, tmp_path: Path) -> None:
    tar = plain(packed(members)).rstrip(b"\0")
    for end in range(0, len(tar) + 512, 512):
        refused(gzip.compress(tar[:end]), tmp_path / "root")


def test_a_changed_byte_anywhere_is_refused_or_makes_no_difference(members: Members) -> None:
    archive = packed(members)
    accepted = members_of(archive)
    chosen = random.Random(1)  # noqa: S311 - a sample, not a secret
    for _ in range(400):
        changed = bytearray(archive)
        place = chosen.randrange(10, len(changed))  # the first ten bytes are gzip's header: a time, a system
        changed[place] ^= 1 << chosen.randrange(8)
        try:
            verify(io.BytesIO(bytes(changed)))
        except ArchiveError:
            continue
        assert members_of(bytes(changed)) == accepted


def test_a_changed_byte_of_the_tar_is_refused_or_makes_no_difference(members: Members) -> None:
    tar = plain(packed(members))
    accepted = members_of(packed(members))
    chosen = random.Random(2)  # noqa: S311 - a sample, not a secret
    for _ in range(1_000):
        changed = bytearray(tar)
        changed[chosen.randrange(len(changed))] ^= 1 << chosen.randrange(8)
        archive = gzip.compress(bytes(changed), 1)
        try:
            verify(io.BytesIO(archive))
        except ArchiveError:
            continue
        assert members_of(archive) == accepted


@pytest.mark.parametrize(
    "tail", [b"x", b"\0", gzip.compress(b"", mtime=0)], ids=["text", "zero", "a second stream"]
)
def test_bytes_behind_the_end_are_refused(members: Members, tmp_path: Path, tail: bytes) -> None:
    error = refused(packed(members) + tail, tmp_path / "root")
    assert "behind its end" in error.reason


@pytest.mark.parametrize(
    "data", [b"", b"\x1f\x8b", b"no archive", b"BZh91AY&SY", gzip.compress(b"text" * 500, mtime=0)]
)
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    refused(data, tmp_path / "root")


def raw_header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """Returns a header of a member with a size that no library would write."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124:136] = size.ljust(12, b"\0")
    block[156:157] = kind
    block[257:265] = b"ustar\x0000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize(
    "size", [b"77777777777", b"-1", b"", b"99", b"\x80" + b"\0" * 10 + b"\1", b"\xff" * 12, b" 1 1"]
)
@pytest.mark.parametrize("kind", [b"0", b"x", b"L", b"g"])
def test_a_size_that_cannot_be_is_refused(members: Members, tmp_path: Path, size: bytes, kind: bytes) -> None:
    first = plain(packed(members[:1])).rstrip(b"\0")
    first += bytes(-len(first) % 512)
    refused(gzip.compress(first + raw_header(b"users/alice/x", size, kind) + bytes(1024)), tmp_path / "root")


@pytest.mark.parametrize(
    "record",
    [
        b"12 path=a/b\n",
        b"99 path=x\n",
        b"x path=y\n",
        b"11 size=99\n",
        b"17 GNU.sparse=1\n",
        b"",
        b"9 path=\xff\n",
        b"8 path=\n",
        b"12 path=../\n",
    ],
)
def test_an_extended_header_with_more_than_a_path_of_ours_is_refused(
    members: Members, tmp_path: Path, record: bytes
) -> None:
    first = plain(packed(members[:1])).rstrip(b"\0")
    first += bytes(-len(first) % 512)
    extended = raw_header(b"x", b"%o" % len(record), b"x") + record + bytes(-len(record) % 512)
    refused(gzip.compress(first + extended + raw_header(b"y", b"0") + bytes(1024)), tmp_path / "root")


class Bomb(io.RawIOBase):
    """Is a gzip stream of zeros without end, made as it is read."""

    def __init__(self, start: bytes) -> None:
        self._packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        self._ready = self._packer.compress(start)
        self.given = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._ready) < size:
            self._ready += self._packer.compress(bytes(1 << 22))
        part, self._ready = self._ready[:size], self._ready[size:]
        self.given += len(part)
        return part


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_reader, "RATIO_ALLOWANCE", 10_000_000)
    monkeypatch.setattr(archive_reader, "MAX_MEMBERS", 10)


@pytest.mark.usefixtures("small_limits")
def test_a_decompression_bomb_is_refused_before_it_goes_off(members: Members) -> None:
    first = plain(packed(members[:1])).rstrip(b"\0")
    first += bytes(-len(first) % 512)
    bomb = Bomb(first + raw_header(b"users/alice/memory.json", b"%o" % 31_000_000))
    with pytest.raises(ArchiveError, match="a bomb"):
        verify(bomb)  # type: ignore[arg-type]  # it reads, which is all that is needed
    assert bomb.given < 1_000_000


@pytest.mark.usefixtures("small_limits")
def test_too_many_members_are_refused(members: Members, tmp_path: Path) -> None:
    many = [(f"users/alice/agents/coder/.metadata/{number}", b"") for number in range(20)]
    error = refused(packed(mended([members[0], *many, *members[1:]])), tmp_path / "root")
    assert "more than 10 members" in error.reason


def test_a_file_larger_than_any_of_ours_is_refused(members: Members, tmp_path: Path) -> None:
    large = ("users/alice/agents/coder/.metadata/large", random.Random(3).randbytes(32_000_001))  # noqa: S311
    error = refused(packed([members[0], large, *members[1:]]), tmp_path / "root")
    assert "is larger than 32,000,000 bytes" in error.reason


def test_a_live_memory_is_not_touched_by_a_forged_archive(members: Members, tmp_path: Path) -> None:
    store = store_with(tmp_path, "live")
    before = files_below(tmp_path)
    changed = [members[0], ("users/bob/memory.json", b"{}"), *members[1:]]
    with pytest.raises(ArchiveError):
        plan_restore(store.engine, io.BytesIO(packed(changed)), Selection())
    assert files_below(tmp_path) == before
