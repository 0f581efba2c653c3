"""What is taken from DeerFlow: its classes, found when this package is imported, and its errors.

DeerFlow is on no package index, so nothing here can be imported by name while this package is built and
checked. All that touches it goes through `Host`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from deermem.errors import (
    Corruption,
    DeerMemError,
    FactConflict,
    ManifestConflict,
    MigrationError,
    RevisionConflict,
    SearchIndexError,
    UnsupportedFormat,
)

STORAGE_MODULE: Final = "deerflow.agents.memory.backends.deermem.deermem.core.storage"
MANAGER_MODULE: Final = "deerflow.agents.memory.backends.deermem.deer_mem"


@dataclass(frozen=True, slots=True)
class Host:
    """Is the storage side of a DeerFlow installation: the base class of storages, and their errors."""

    storage_class: type[Any]
    storage_error: type[Exception]
    corruption: type[Exception]
    conflict: type[Exception]
    manifest_conflict: type[Exception]
    fact_conflict: type[Exception]

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turns what the store raises inside the block into what DeerFlow's callers catch.

        Bad input stays a `ValueError`, a lock that is held too long a `TimeoutError`, and trouble with the
        disk an `OSError`: DeerFlow takes them as they are.
        """
        try:
            yield
        except DeerMemError as error:
            for ours, theirs in self._table():
                if isinstance(error, ours):
                    raise theirs(str(error)) from error
            raise

    def _table(self) -> tuple[tuple[type[DeerMemError], type[Exception]], ...]:
        """Returns the table of errors; the first entry that fits counts."""
        return (
            (ManifestConflict, self.manifest_conflict),
            (FactConflict, self.fact_conflict),
            (RevisionConflict, self.conflict),
            (Corruption, self.corruption),
            (UnsupportedFormat, self.corruption),
            (MigrationError, self.corruption),
            (SearchIndexError, self.storage_error),
        )


def load_host() -> Host:
    """Finds DeerFlow's storage classes.

    Raises:
        ImportError: There is no DeerFlow here, or one without the file storage that this package replaces.
    """
    module = _import(STORAGE_MODULE)
    try:
        return Host(
            storage_class=module.MemoryStorage,
            storage_error=module.MemoryStorageError,
            corruption=module.MemoryStorageCorruption,
            conflict=module.MemoryRevisionConflict,
            manifest_conflict=module.MemoryManifestRevisionConflict,
            fact_conflict=module.MemoryFactRevisionConflict,
        )
    except AttributeError as error:
        raise ImportError(f"this DeerFlow is of a version that DeerMem does not know: {error}") from error


def load_manager_class() -> type[Any]:
    """Finds DeerFlow's own memory manager.

    Raises:
        ImportError: There is none.
    """
    manager: type[Any] = _import(MANAGER_MODULE).DeerMem
    return manager


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != "deerflow" and not name.startswith(f"{missing}."):
            raise
        raise ImportError(
            "deermem.integrations.deerflow works inside DeerFlow, and there is no DeerFlow in this "
            f'environment ({missing} is missing). Run `pip install "deermem[deerflow]"` in the environment '
            "that DeerFlow runs in; DeerFlow itself is on no package index"
        ) from error
