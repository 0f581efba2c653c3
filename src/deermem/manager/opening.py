"""Opens the repository that the settings describe."""

from __future__ import annotations

from inspect import signature
from pkgutil import resolve_name
from typing import Any

from deermem.config import DeerMemConfig
from deermem.errors import InvalidInputError
from deermem.repository import MemoryRepository


def open_repository(config: DeerMemConfig) -> MemoryRepository:
    """Builds the repository; nothing is read or written.

    Raises:
        InvalidInputError: The storage root is a file, or a class that a setting names cannot be used.
    """
    repository_class = _find_class(config.storage_class)
    settings: dict[str, Any] = {
        "lock_timeout": config.file_lock_timeout_seconds,
        "manifest_filename": config.manifest_filename,
        "retrieval_adapter": config.retrieval_adapter,
        "strict_user_scope": config.strict_user_scope,
        "undo_days": config.undo_days,
    }
    root = config.storage_root()
    _check_call(repository_class, config.storage_class, root, settings)
    return repository_class(root, **settings)


def _find_class(name: str) -> type[MemoryRepository]:
    if not name:
        return MemoryRepository
    try:
        found = resolve_name(name)
    except Exception as error:  # whatever the module of somebody else raises
        reason = f"{name!r} cannot be imported: {type(error).__name__}: {error}"
        raise InvalidInputError("storage_class", reason) from error
    if not (isinstance(found, type) and issubclass(found, MemoryRepository)):
        raise InvalidInputError("storage_class", f"{name!r} is no subclass of MemoryRepository")
    return found


def _check_call(
    repository_class: type[MemoryRepository], name: str, root: str, settings: dict[str, Any]
) -> None:
    try:
        signature(repository_class).bind(root, **settings)
    except TypeError as error:
        raise InvalidInputError("storage_class", f"{name!r} does not take the settings: {error}") from error
