"""Reads a trace of strace: the calls that change a store, told in the words of the simulated disk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final, NamedTuple

# Everything that can change a file or a name, or make a change durable. What of this the engine does not
# use stands here all the same: a step that the simulated disk knows nothing of must show.
TRACED: Final = tuple(
    """
    open openat openat2 creat write pwrite64 writev pwritev pwritev2 sendfile copy_file_range splice
    fsync fdatasync sync syncfs sync_file_range msync rename renameat renameat2 unlink unlinkat rmdir
    mkdir mkdirat link linkat symlink symlinkat mknod mknodat truncate ftruncate fallocate
    utime utimes utimensat futimesat setxattr fsetxattr chown fchown lchown fchownat
    chmod fchmod fchmodat fchmodat2 fadvise64
    """.split()  # noqa: SIM905 - a list of names is no better for quotes and commas
)
# Permissions are not in the model; advice changes nothing that lasts.
LEFT_OUT: Final = frozenset(["chmod", "fchmod", "fadvise64"])

_CALL: Final = re.compile(
    r"(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|\?)(?P<rest>.*)"
)
_UNFINISHED: Final = re.compile(r"(?P<pid>\d+) +(?P<start>\w+\(.*) <unfinished \.\.\.>")
_RESUMED: Final = re.compile(r"(?P<pid>\d+) +<\.\.\. \w+ resumed>(?P<end>.*)")
_DESCRIPTOR: Final = re.compile(r"(?:\d+|AT_FDCWD)<([^>]*)>")
_PLACE: Final = re.compile(r'(?:(?:\d+|AT_FDCWD)<([^>]*)>, )?"([^"]*)"')


class Call(NamedTuple):
    """Is a system call that succeeded."""

    name: str
    arguments: str
    result: str

    def descriptor(self) -> str:
        """Returns the path of the first descriptor among the arguments."""
        found = _DESCRIPTOR.match(self.arguments)
        return "" if found is None else found.group(1)

    def paths(self) -> list[str]:
        """Returns the paths that are named, each joined to the directory that it starts from."""
        return [str(Path(start or "/", name)) for start, name in _PLACE.findall(self.arguments)]


def calls_in(lines: Iterable[str]) -> Iterator[Call]:
    """Yields the calls that succeeded, in the order in which they ended."""
    begun: dict[str, str] = {}
    for line in lines:
        whole = line.rstrip("\n")
        if interrupted := _UNFINISHED.fullmatch(whole):
            begun[interrupted["pid"]] = interrupted["start"]
            continue
        if resumed := _RESUMED.fullmatch(whole):
            whole = f"{resumed['pid']} {begun.pop(resumed['pid'])}{resumed['end']}"
        found = _CALL.fullmatch(whole)
        if found is None:
            if re.match(r"\d+ (\+\+\+|---) ", whole):
                continue  # the process ended, or got a signal
            raise ValueError(f"cannot be read: {whole}")
        if found["result"] not in ("?", "-1"):
            yield Call(found["name"], found["arguments"], found["result"] + found["rest"])


def in_one_order(steps: Iterable[str]) -> list[str]:
    """Sorts removals that follow one another in one directory: they come in the order of a listing.

    Nothing is made durable between them, so their order makes no difference to what a disk may lose.
    """

    def directory(step: str) -> str:
        return step.rpartition("/")[0] if step.startswith("unlink ") else ""

    return [step for place, run in groupby(steps, key=directory) for step in (sorted(run) if place else run)]


class Steps:
    """Turns calls below one storage root into steps.

    What is normalised, and nothing else: a failed call is no step; `O_CREAT` makes a step only where the
    name was free; several writes in a row to one file are one; what is in `LEFT_OUT` is left out; paths
    count from the root, and the directory above it is `..`. Removals in a row in one directory are sorted
    (`in_one_order`), since a listing tells names in an order of its own.

    Args:
        root: The storage root.
        tree: What is there first, by path below the root; directories have `None`.
        rooted: Whether the root is there.
    """

    def __init__(self, root: Path, tree: dict[str, bytes | None], *, rooted: bool) -> None:
        self._root = str(root)
        self._above = str(root.parent)
        self._directories = {path for path, data in tree.items() if data is None} | {".."}
        if rooted:
            self._directories.add(".")
        self._files = {path for path, data in tree.items() if data is not None}
        self._steps: list[str] = []

    def of(self, calls: Iterable[Call]) -> list[str]:
        """Returns the steps of the calls that touch this root."""
        for call in calls:
            if call.name not in LEFT_OUT:
                self._add(call)
        return in_one_order(
            step
            for before, step in pairwise(["", *self._steps])
            if not (step.startswith("write ") and step == before)
        )

    def _below(self, path: str) -> str | None:
        if path == self._above:
            return ".."
        if path == self._root:
            return "."
        return path.removeprefix(f"{self._root}/") if path.startswith(f"{self._root}/") else None

    def _add(self, call: Call) -> None:
        if call.name in {"write", "fsync"}:
            path = self._below(call.descriptor())
            if path is not None:
                kind = "sync" if call.name == "fsync" and path in self._directories else call.name
                self._steps.append(f"{kind} {path}")
            return
        paths = [path for each in call.paths() if (path := self._below(each)) is not None]
        descriptor = self._below(call.descriptor())
        if call.name == "openat":
            self._open(call, paths)
        elif call.name in {"mkdir", "mkdirat"} and paths:
            self._directories.add(paths[0])
            self._steps.append(f"mkdir {paths[0]}")
        elif call.name in {"rename", "renameat"} and len(paths) == 2:
            self._files.discard(paths[0])
            self._files.add(paths[1])
            self._steps.append(f"rename {paths[0]} to {paths[1]}")
        elif call.name in {"unlink", "unlinkat", "rmdir"} and paths:
            removes_directory = call.name == "rmdir" or "AT_REMOVEDIR" in call.arguments
            (self._directories if removes_directory else self._files).discard(paths[0])
            self._steps.append(f"{'rmdir' if removes_directory else 'unlink'} {paths[0]}")
        elif paths or descriptor is not None:
            self._steps.append(f"{call.name}({call.arguments})")

    def _open(self, call: Call, paths: list[str]) -> None:
        if not paths:
            return
        if re.search(r"O_(TRUNC|APPEND|D?SYNC|TMPFILE)\b", call.arguments):
            self._steps.append(f"{call.name}({call.arguments})")
        elif "O_CREAT" in call.arguments and paths[0] not in self._files:
            self._files.add(paths[0])
            self._steps.append(f"create {paths[0]}")
