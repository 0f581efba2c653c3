"""How the contract tests claim something, so that a failure says which rule is broken and how."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T", bound=Exception)


def require(kept: bool, rule: str) -> None:
    """Fails the test that calls it unless the rule is kept; says more than a bare `assert`."""
    if not kept:
        raise AssertionError(rule)


@contextmanager
def allowed(what: str) -> Iterator[None]:
    """Fails the test, naming what was tried, if the block raises."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__}: {error}") from error


@contextmanager
def refused(kind: type[T], what: str) -> Iterator[list[T]]:
    """Fails the test unless the block raises this error; the list holds it afterwards."""
    caught: list[T] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    except Exception as error:
        raise AssertionError(f"{what} raises {type(error).__name__}, not {kind.__name__}: {error}") from error
    if not caught:
        raise AssertionError(f"{what} is not refused with {kind.__name__}")
