"""A table of what is planted: under the name of each rule the thing that breaks it, and how much else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Broken(NamedTuple, Generic[T]):
    """A thing, and the rules that it breaks besides the one that it stands for; `None`: any."""

    thing: T
    also: frozenset[str] | None


class Planted(dict[str, Broken[T]], Generic[T]):
    """Has things by the rule that each breaks. Each breaks as little as it can."""

    def breaks(self, rule: str, *, also: Iterable[str] | None = ()) -> Callable[[T], T]:
        """Registers the thing below as one that the test of this rule refuses.

        Args:
            rule: The name of the test.
            also: Other tests in which the same fault cannot but show.
        """

        def register(thing: T) -> T:
            assert rule not in self
            self[rule] = Broken(thing, None if also is None else frozenset(also))
            return thing

        return register
