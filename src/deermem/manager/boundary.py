"""The one table of errors at the boundary of a memory manager.

Conflicts and corruption get names that belong to no storage. What is left of the store's errors may
cross as it is: `InvalidInputError` (a `ValueError`), `DuplicateFact` (the same), `FactNotFoundError`
(a `KeyError`), `LockTimeout` (a `TimeoutError`), `CommitInDoubt` (an `OSError`), and any `OSError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from deermem.errors import (
    Corruption,
    DeerMemError,
    FactConflict,
    ManifestConflict,
    MemoryConflictError,
    MemoryCorruptionError,
    MemoryManagerError,
    MigrationError,
    RevisionConflict,
    SearchIndexError,
    UnsupportedFormat,
)


def _manifest_conflict(error: ManifestConflict) -> MemoryManagerError:
    return MemoryConflictError(str(error), expected_revision=error.expected, current_revision=error.actual)


def _fact_conflict(error: FactConflict) -> MemoryManagerError:
    return MemoryConflictError(
        str(error), error.fact_id, error.expected, error.actual, error.expected_text, error.actual_text
    )


def _corruption(error: Corruption) -> MemoryManagerError:
    return MemoryCorruptionError(error.path, error.reason, error.hint)


def _unsupported(error: UnsupportedFormat) -> MemoryManagerError:
    return MemoryCorruptionError(
        error.path, f"version {error.found} is not supported (supported: {error.supported})"
    )


def _migration(error: MigrationError) -> MemoryManagerError:
    return MemoryCorruptionError(error.path, error.reason, "the version-1 source was kept")


# The first entry that fits counts.
TRANSLATIONS: Final[tuple[tuple[type[DeerMemError], Callable[[Any], MemoryManagerError]], ...]] = (
    (ManifestConflict, _manifest_conflict),
    (FactConflict, _fact_conflict),
    (RevisionConflict, lambda error: MemoryConflictError(str(error))),
    (Corruption, _corruption),
    (UnsupportedFormat, _unsupported),
    (MigrationError, _migration),
    (SearchIndexError, lambda error: MemoryManagerError(str(error))),
)


@contextmanager
def translated() -> Iterator[None]:
    """Turns what the store raises inside the block into what may cross the boundary.

    Raises:
        MemoryConflictError: Another writer came first.
        MemoryCorruptionError: What is stored cannot be read safely.
    """
    try:
        yield
    except DeerMemError as error:
        for kind, translate in TRANSLATIONS:
            if isinstance(error, kind):
                raise translate(error) from error
        raise
