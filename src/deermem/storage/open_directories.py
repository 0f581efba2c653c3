"""Directories below a user bucket, opened once for all steps of a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deermem.storage.opening import trusted
from deermem.storage.port import Directory

_MAX_OPEN: Final = 32


class OpenDirectories:
    """Keeps directories open until it is closed, up to a limit: a transaction comes back to them."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._open: dict[tuple[str, ...], Directory] = {(): directory}

    def close(self) -> None:
        """Closes the bucket and everything that was opened below it."""
        while self._open:
            self._open.popitem()[1].close()

    @contextmanager
    def directory_at(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[Directory]:
        """Opens a directory below the bucket.

        Args:
            parts: The way to it.
            make: Whether to make what is missing; nothing of it is durable yet.

        Raises:
            FileNotFoundError: It is missing.
            Corruption: There is a link or a file in its place.
        """
        known = self._open.get(parts)
        if known is not None:
            yield known
            return
        with self.directory_at(parts[:-1], make=make) as parent, trusted():
            try:
                opened = parent.child(parts[-1])
            except FileNotFoundError:
                if not make:
                    raise
                parent.make_child(parts[-1])
                opened = parent.child(parts[-1])
            if len(self._open) < _MAX_OPEN:
                self._open[parts] = opened
                yield opened
                return
            with opened:
                yield opened

    def path_of(self, parts: tuple[str, ...]) -> str:
        """Returns a path below the storage root, for messages."""
        prefix = () if self.directory.path == "." else (self.directory.path,)
        return "/".join((*prefix, *parts))
