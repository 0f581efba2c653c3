"""Finds the retrieval adapter that the settings name."""

from __future__ import annotations

from importlib.metadata import entry_points
from inspect import Signature, iscoroutinefunction, signature
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.search.port import RetrievalAdapter

ENTRY_POINTS: Final = "deermem.retrieval_adapters"
SETTING: Final = "retrieval_adapter"

# How the store calls each method: how many positional arguments, and which by name.
_CALLS: Final = MappingProxyType(
    {
        "upsert": (1, ("scope", "path")),
        "remove": (1, ("scope",)),
        "search": (1, ("scopes", "top_k", "mode", "filters")),
        "clear": (0, ("scopes",)),
        "rebuild": (1, ("scopes",)),
        "close": (0, ()),
    }
)


def load_adapter(name: str) -> RetrievalAdapter | None:
    """Builds the adapter of this name, without arguments; the empty name means none.

    Args:
        name: An entry point of the group `deermem.retrieval_adapters`, or a dotted path:
            `package.module:Class` or `package.module.Class`.

    Raises:
        InvalidInputError: There is no such adapter, it cannot be imported or built, or it is none.
    """
    if not isinstance(name, str):
        raise InvalidInputError(SETTING, "must be a string")
    name = name.strip()
    if not name:
        return None
    factory = _find(name)
    if not callable(factory):
        raise InvalidInputError(SETTING, f"{name!r} is no class and no function that builds an adapter")
    try:
        adapter = factory()
    except Exception as error:
        raise InvalidInputError(SETTING, f"{name!r} cannot be built: {_told(error)}") from error
    return check_adapter(adapter, name)


def check_adapter(adapter: Any, name: str) -> RetrievalAdapter:
    """Returns the adapter if the store can call all its methods.

    Raises:
        InvalidInputError: Names the method that is missing or takes other arguments.
    """
    for method, (positional, named) in _CALLS.items():
        fault = _fault_of(getattr(adapter, method, None), positional, named)
        if fault:
            raise InvalidInputError(SETTING, f"{name!r} is no retrieval adapter: its {method}() {fault}")
    fitting: RetrievalAdapter = adapter
    return fitting


def _find(name: str) -> Any:
    found = {point.value: point for point in entry_points(group=ENTRY_POINTS, name=name)}
    if len(found) > 1:
        values = ", ".join(sorted(found))
        raise InvalidInputError(SETTING, f"{name!r} is registered by several packages: {values}")
    try:
        for point in found.values():
            return point.load()
        if "." in name or ":" in name:
            return resolve_name(name)
    except Exception as error:
        raise InvalidInputError(SETTING, f"{name!r} cannot be imported: {_told(error)}") from error
    known = ", ".join(sorted({point.name for point in entry_points(group=ENTRY_POINTS)})) or "none"
    reason = f"{name!r} is neither an installed adapter (there are: {known}) nor a dotted path"
    raise InvalidInputError(SETTING, reason)


def _fault_of(method: Any, positional: int, named: tuple[str, ...]) -> str:
    if not callable(method):
        return "is missing"
    if iscoroutinefunction(method):
        return "is asynchronous; the store calls it without await"
    try:
        taken: Signature = signature(method)
    except (TypeError, ValueError):
        return ""  # written in C, and silent about its arguments
    try:
        taken.bind(*[None] * positional, **dict.fromkeys(named))
    except TypeError as error:
        return f"does not take the arguments of the port ({error})"
    return ""


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
