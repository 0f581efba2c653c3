"""What a search's filter and a listing's conditions match."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final

from langgraph.store.base import MatchCondition

from deermem.errors import InvalidInputError
from deermem.integrations.langgraph.namespaces import Labels

MAX_DEPTH: Final = 100
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
OPERATORS: Final = ("$eq", "$ne", *_ORDERS)


def check_filter(wanted: object, depth: int = 0) -> None:
    """Makes sure that a filter can be applied to any value.

    Raises:
        InvalidInputError: It is no mapping, names an operator that there is not, or is nested too deep.
    """
    if not isinstance(wanted, Mapping):
        raise InvalidInputError("filter", f"must be a mapping, and is of type {type(wanted).__name__}")
    for condition in wanted.values():
        _check_condition(condition, depth + 1)


def _check_condition(condition: object, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInputError("filter", f"is nested more than {MAX_DEPTH} levels deep")
    if isinstance(condition, list | tuple):
        for item in condition:
            _check_condition(item, depth + 1)
    elif isinstance(condition, Mapping) and _is_operation(condition):
        unknown = [name for name in condition if name not in OPERATORS]
        if unknown:
            raise InvalidInputError(
                "filter", f"has {unknown[0]!r}, which is not one of {', '.join(OPERATORS)}"
            )
    elif isinstance(condition, Mapping):
        check_filter(condition, depth)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tells whether a value has all that a filter wants; a missing field counts as `None`."""
    return all(_matches(value.get(name), condition) for name, condition in wanted.items())


def _matches(item: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if _is_operation(condition):
            return all(_holds(item, name, operand) for name, operand in condition.items())
        return isinstance(item, Mapping) and matches(item, condition)
    if isinstance(condition, list | tuple):
        return (
            isinstance(item, list | tuple)
            and len(item) == len(condition)
            and all(map(_matches, item, condition))
        )
    return bool(item == condition)


def _is_operation(condition: Mapping[str, Any]) -> bool:
    return any(str(name).startswith("$") for name in condition)


def _holds(item: Any, operator: str, operand: Any) -> bool:
    if operator == "$eq":
        return bool(item == operand)
    if operator == "$ne":
        return bool(item != operand)
    return _comparable(item, operand) and _ORDERS[operator](item, operand)


def _comparable(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return (isinstance(left, int | float) and isinstance(right, int | float)) or (
        isinstance(left, str) and isinstance(right, str)
    )


def fits(namespace: Labels, condition: MatchCondition) -> bool:
    """Tells whether a namespace begins, or ends, with a path in which `*` is any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        part = namespace[: len(path)]
    elif condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    else:
        raise InvalidInputError("match_type", "is not one of prefix, suffix")
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
