"""What a simulated disk holds: what processes see, what is durable, and what hangs between the two.

The model is the strict one of POSIX. A file's data is durable after a sync of that file; a name is
durable after a sync of the directory that holds it; until then each change of names may or may not
survive a loss of power, independently of every other.

Inodes are immutable and replaced as a whole, so a copy of a disk shares all of them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final

SECTOR: Final = 512
TOP: Final = 0
MAX_NAME: Final = 255
DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def remnants(data: bytes) -> tuple[bytes, ...]:
    """Returns what a file may hold when power fails before its data was synced.

    The data itself comes first; then nothing, zeros, the data cut short, and the data torn between
    two sectors.
    """
    size = len(data)
    half = size // 2 // SECTOR * SECTOR or size // 2
    last = (size - 1) // SECTOR * SECTOR if size else 0
    torn = (data[:last] + bytes(size - last), bytes(min(size, SECTOR)) + data[SECTOR:])
    return tuple(dict.fromkeys((data, b"", bytes(size), data[:half], data[:last], *torn)))


@lru_cache(maxsize=10_000)
def _content_digest(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class FileInode:
    """Is a file's content and identity.

    `survivors` is what the file may hold after a loss of power: exactly `data` once it is synced.
    After a failed sync the kernel may have dropped the data and forgotten about it: `forsaken` files
    sync without an error and without an effect. `fingerprint` stands for all of this in digests.
    """

    number: int
    data: bytes
    mtime_ns: int
    survivors: tuple[bytes, ...]
    forsaken: bool = False
    mode: int = FILE_MODE
    fingerprint: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        contents = ":".join(map(_content_digest, (self.data, *self.survivors)))
        object.__setattr__(self, "fingerprint", f"{contents}:{self.forsaken}:{self.mode:o}")


@dataclass(frozen=True, slots=True)
class DirectoryInode:
    """Is a directory's names: as processes see them, and as they are durable.

    `entries` is `durable` with every pending effect on this directory applied in order.
    """

    path: str
    entries: Mapping[str, int]
    durable: Mapping[str, int]
    mode: int = DIRECTORY_MODE


Change = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Effect:
    """Is a change of names in one directory that is not durable yet; it survives as a whole or not.

    Each change is a name and the inode that it stands for afterwards, `None` for no inode.
    """

    directory: int
    changes: tuple[Change, ...]
    text: str


class DiskState:
    """Holds inodes, names and pending effects; a copy is cheap and independent."""

    __slots__ = ("directories", "effects", "files", "free_numbers", "next_inode", "next_number")

    def __init__(self) -> None:
        self.files: dict[int, FileInode] = {}
        self.directories: dict[int, DirectoryInode] = {TOP: DirectoryInode("", {}, {})}
        self.effects: tuple[Effect, ...] = ()
        self.next_inode = TOP + 1
        self.free_numbers: tuple[int, ...] = ()
        self.next_number = 11

    def copy(self) -> DiskState:
        """Returns a copy that shares the inodes."""
        other = DiskState.__new__(DiskState)
        other.files = dict(self.files)
        other.directories = dict(self.directories)
        other.effects = self.effects
        other.next_inode = self.next_inode
        other.free_numbers = self.free_numbers
        other.next_number = self.next_number
        return other

    def path_of(self, directory: int, name: str) -> str:
        """Returns the path of a name; the storage root's own path is `.`."""
        parent = self.directories[directory].path
        if not parent:
            return "."
        return name if parent == "." else f"{parent}/{name}"

    def make_directory(self, directory: int, name: str) -> int:
        """Adds an empty directory under a free name."""
        inode = self._new_inode()
        path = self.path_of(directory, name)
        self.directories[inode] = DirectoryInode(path, {}, {})
        self._change(directory, ((name, inode),), f"mkdir {path}")
        return inode

    def create_file(self, directory: int, name: str, mtime_ns: int, reuse_numbers: bool) -> int:
        """Adds an empty file under a free name; like ext4 it may get the number of one that is gone."""
        inode = self._new_inode()
        self.files[inode] = FileInode(self._new_number(reuse_numbers), b"", mtime_ns, (b"",))
        self._change(directory, ((name, inode),), f"create {self.path_of(directory, name)}")
        return inode

    def write_file(self, inode: int, data: bytes, mtime_ns: int) -> None:
        """Replaces a file's content; what it held before may survive just as well."""
        file = self.files[inode]
        survivors = tuple(dict.fromkeys((*remnants(data), *file.survivors)))
        self.files[inode] = replace(file, data=data, mtime_ns=mtime_ns, survivors=survivors)

    def sync_file(self, inode: int) -> None:
        """Makes a file's content durable."""
        file = self.files[inode]
        if not file.forsaken and file.survivors != (file.data,):
            self.files[inode] = replace(file, survivors=(file.data,))

    def forsake_file(self, inode: int) -> None:
        """Lets the kernel forget that a file has data to be synced."""
        self.files[inode] = replace(self.files[inode], forsaken=True)

    def rename(self, directory: int, name: str, target: int, new_name: str) -> None:
        """Moves a file.

        Within one directory that is one effect. Across two, the new name and the disappearance of
        the old one are effects of their own. Two names of one file stay as they are (POSIX).
        """
        inode = self.directories[directory].entries[name]
        replaced = self.directories[target].entries.get(new_name)
        if replaced == inode:
            return
        old, new = self.path_of(directory, name), self.path_of(target, new_name)
        if directory == target:
            self._change(directory, ((name, None), (new_name, inode)), f"rename {old} to {new}")
        else:
            self._change(target, ((new_name, inode),), f"appearance of {new} (rename from {old})")
            self._change(directory, ((name, None),), f"disappearance of {old} (rename to {new})")
        self._release(replaced)

    def link(self, inode: int, directory: int, name: str) -> None:
        """Gives a file one more name, which must be free."""
        self._change(directory, ((name, inode),), f"link {self.path_of(directory, name)}")

    def set_mode(self, inode: int, mode: int) -> None:
        """Changes the permissions of a file or directory, durably."""
        if inode in self.files:
            self.files[inode] = replace(self.files[inode], mode=mode)
        else:
            self.directories[inode] = replace(self.directories[inode], mode=mode)

    def unlink(self, directory: int, name: str) -> None:
        """Removes a file's name."""
        inode = self.directories[directory].entries[name]
        self._change(directory, ((name, None),), f"unlink {self.path_of(directory, name)}")
        self._release(inode)

    def remove_directory(self, directory: int, name: str) -> None:
        """Removes an empty directory's name."""
        self._change(directory, ((name, None),), f"rmdir {self.path_of(directory, name)}")

    def is_removed(self, directory: int) -> bool:
        """Tells whether a directory that a process has open has no name any more."""
        return directory != TOP and all(
            directory not in d.entries.values() for d in self.directories.values()
        )

    def sync_directory(self, directory: int) -> None:
        """Makes every pending change of names in a directory durable."""
        inode = self.directories[directory]
        if inode.durable is not inode.entries:
            self.directories[directory] = replace(inode, durable=inode.entries)
            self.effects = tuple(effect for effect in self.effects if effect.directory != directory)

    def settle(self) -> None:
        """Makes everything durable."""
        for directory in list(self.directories):
            self.sync_directory(directory)
        for inode, file in list(self.files.items()):
            self.files[inode] = replace(file, survivors=(file.data,))

    def walk(self, directory: int = TOP) -> Iterator[tuple[str, bytes | None]]:
        """Yields the path of everything that processes see, sorted, with the content of files."""
        for name, inode in sorted(self.directories[directory].entries.items()):
            file = self.files.get(inode)
            yield self.path_of(directory, name), None if file is None else file.data
            if file is None:
                yield from self.walk(inode)

    def used_bytes(self) -> int:
        """Returns the size of all files that processes see."""
        return sum(len(data) for _, data in self.walk() if data is not None)

    def digest(self) -> bytes:
        """Returns a digest of all that the future of a disk depends on but inode numbers and times."""
        order: dict[int, int] = {}
        lines: list[str] = []

        def reference(inode: int | None) -> str:
            file = None if inode is None else self.files.get(inode)
            if inode is None or file is None:
                return "nothing" if inode is None else self.directories[inode].path
            # The order tells two names of one file from two files with the same content.
            return f"{order.setdefault(inode, len(order))}:{file.fingerprint}"

        waiting = [TOP]
        while waiting:
            directory = self.directories[waiting.pop()]
            lines.append(f"{directory.path} {directory.mode:o}")
            for name, entry in sorted(directory.entries.items()):
                lines.append(f"{name}={reference(entry)}")
                if entry in self.directories:
                    waiting.append(entry)
        for effect in self.effects:
            lines.append(self.directories[effect.directory].path)
            lines += [f"{name}={reference(entry)}" for name, entry in effect.changes]
        for number in sorted({effect.directory for effect in self.effects}):
            durable = self.directories[number].durable
            lines += [f"{name}={reference(entry)}" for name, entry in durable.items()]
        return blake2b("\n".join(lines).encode(), digest_size=16).digest()

    def check_name(self, directory: int, name: str) -> None:
        """Refuses what a disk refuses as the name of an entry."""
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            raise ValueError(f"not the name of an entry: {name!r}")
        if len(os.fsencode(name)) > MAX_NAME:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), self.path_of(directory, name))

    def _new_inode(self) -> int:
        self.next_inode += 1
        return self.next_inode - 1

    def _new_number(self, reuse: bool) -> int:
        if reuse and self.free_numbers:
            lowest = min(self.free_numbers)
            self.free_numbers = tuple(number for number in self.free_numbers if number != lowest)
            return lowest
        self.next_number += 1
        return self.next_number - 1

    def _change(self, directory: int, changes: tuple[Change, ...], text: str) -> None:
        entries = dict(self.directories[directory].entries)
        apply_changes(entries, changes)
        self.directories[directory] = replace(self.directories[directory], entries=entries)
        self.effects = (*self.effects, Effect(directory, changes, text))

    def _release(self, inode: int | None) -> None:
        if inode is None or any(inode in d.entries.values() for d in self.directories.values()):
            return
        self.free_numbers = (*self.free_numbers, self.files[inode].number)


def apply_changes(names: dict[str, int], changes: Iterable[Change]) -> None:
    """Applies changes of names to a mapping of them."""
    for name, inode in changes:
        if inode is None:
            names.pop(name, None)
        else:
            names[name] = inode
