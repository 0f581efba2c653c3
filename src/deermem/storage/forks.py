"""What a forked child begins anew: the threads that held a lock of the parent do not exist in it."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Holds what other threads may be in the midst of when the process forks."""

    def begin_in_child(self) -> None:
        """Makes it usable in a forked child, which has one thread."""
        ...


_forkable: weakref.WeakSet[Forkable] = weakref.WeakSet()


def follows_forks(each: Forkable) -> None:
    """Lets an object begin anew in every child that is forked while it lives."""
    _forkable.add(each)


def _begin_in_child() -> None:
    for each in list(_forkable):
        each.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)
