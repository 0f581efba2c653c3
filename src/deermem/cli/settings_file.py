"""The settings file that `serve` and `token` take with --config."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from deermem.cli.exits import UsageError

_TABLES: Final = ("gateway", "auth", "limits")


def read_tables(path: str | None) -> dict[str, dict[str, Any]]:
    """Returns the tables of a settings file by their names; each is there, also without a file.

    Raises:
        UsageError: The file cannot be read, or has another table.
        InvalidInputError: It is no settings file.
    """
    from deermem.config import read_settings_file

    try:
        settings = {} if path is None else read_settings_file(path)
    except OSError as error:
        raise UsageError(f"the settings file {path} cannot be read: {error.strerror}") from None
    for name, value in settings.items():
        if isinstance(value, dict) and name not in _TABLES:
            raise UsageError(f"{path}: [{name}] is no table of settings; there are {', '.join(_TABLES)}")
    return {name: _table(path, settings, name) for name in _TABLES}


@contextmanager
def told_by_file(path: str | None) -> Iterator[None]:
    """Names the settings file in what is said to be wrong with a setting that no variable has set.

    Raises:
        InvalidInputError: What is wrong inside.
    """
    from deermem.errors import InvalidInputError

    try:
        yield
    except InvalidInputError as error:
        if path is None or error.field == path or error.field.startswith("DEERMEM_"):
            raise
        raise InvalidInputError(f"{path}: {error.field}", error.reason) from None


def _table(path: str | None, settings: dict[str, Any], name: str) -> dict[str, Any]:
    table = settings.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: the setting {name} must be a table")
    return dict(table)
