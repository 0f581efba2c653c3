"""The floors: the cheapest honest way to do the disk's part of a row with plain system calls.

Folders are opened once, outside of what is timed, where that makes a floor cheaper.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class DurableReplacements:
    """Replaces a journal, a fact and a manifest durably and atomically; the fact has a folder of its own."""

    def __init__(self, folder: Path, journal: bytes, fact: bytes, manifest: bytes) -> None:
        (folder / "facts").mkdir(parents=True)
        self._bucket = os.open(folder, os.O_RDONLY)
        self._facts = os.open(folder / "facts", os.O_RDONLY)
        self._journal, self._fact, self._manifest = journal, fact, manifest
        self._number = count()

    def __call__(self) -> None:
        """Does it once; each time the fact is one of a hundred."""
        replace_durably(self._bucket, "journal", self._journal)
        replace_durably(self._facts, f"fact_{next(self._number) % 100}.md", self._fact)
        replace_durably(self._bucket, "memory.json", self._manifest)

    def close(self) -> None:
        """Closes the folders."""
        os.close(self._bucket)
        os.close(self._facts)


def replace_durably(folder: int, name: str, data: bytes) -> None:
    """Writes a file beside the old one, syncs it, renames it into its place and syncs the folder."""
    _write_and_rename(folder, name, data)
    os.fsync(folder)


def _write_and_rename(folder: int, name: str, data: bytes) -> None:
    temporary = name + ".tmp"
    descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=folder)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)
    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def check_and_parse(path: Path) -> object:
    """Stats, opens, reads and parses a JSON file."""
    os.stat(path)
    with open(path, "rb") as file:
        return json.loads(file.read())


def read_files(facts: str) -> None:
    """Lists the shards of a folder of facts and reads each file once."""
    with os.scandir(facts) as shards:
        for shard in shards:
            with os.scandir(shard.path) as entries:
                for entry in entries:
                    with open(entry.path, "rb") as file:
                        file.read()


def stat_files(facts: str) -> None:
    """Lists the shards of a folder of facts and stats each file once."""
    with os.scandir(facts) as shards:
        for shard in shards:
            with os.scandir(shard.path) as entries:
                for entry in entries:
                    entry.stat(follow_symlinks=False)


class DurableRemovals:
    """Unlinks all facts below a folder and makes that durable, one sync a shard."""

    def __init__(self, facts: Path) -> None:
        self._shards = [(path, os.listdir(path)) for path in facts.iterdir()]

    def __call__(self) -> None:
        """Does it; what to unlink is already known."""
        for path, names in self._shards:
            folder = os.open(path, os.O_RDONLY)
            for name in names:
                os.unlink(name, dir_fd=folder)
            os.fsync(folder)
            os.close(folder)


class DurableFiles:
    """Writes files into folders that are there: each is synced and renamed, then its folder is synced."""

    def __init__(self, root: Path, users: Iterable[Mapping[Path, bytes]]) -> None:
        self._folders: list[tuple[str, list[tuple[str, bytes]]]] = []
        for files in users:
            by_folder: dict[Path, list[tuple[str, bytes]]] = {}
            for path, data in files.items():
                by_folder.setdefault(root / path.parent, []).append((path.name, data))
            for folder, inside in by_folder.items():
                folder.mkdir(parents=True, exist_ok=True)
                self._folders.append((str(folder), inside))

    def __call__(self) -> None:
        """Does it once."""
        for path, files in self._folders:
            folder = os.open(path, os.O_RDONLY)
            for name, data in files:
                _write_and_rename(folder, name, data)
            os.fsync(folder)
            os.close(folder)
