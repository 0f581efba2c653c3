"""Directories and files that the contract tests make beside a storage, as a host or a person would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def temporary_root() -> Iterator[Path]:
    """Makes an empty directory for a storage root, which is deleted afterwards."""
    with TemporaryDirectory(prefix="deermem-") as directory:
        yield Path(directory)


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
