"""How an edit by hand differs from a commit (guarantee G5)."""

from __future__ import annotations

from deermem.model.fact import Fact


def is_hand_edit(before: Fact, after: Fact) -> bool:
    """Tells whether a fact got another meaning without a commit: revision and time stamps are the same.

    A read does not show such an edit before a reload. A fact that was deleted and imported again may
    have the old revision and creation time, but not the old time of change.
    """
    return before is not after and _stamps_of(before) == _stamps_of(after) and not before.same_meaning(after)


def differs(before: Fact, after: Fact) -> bool:
    """Tells whether anything at all is another in two facts of one id."""
    return before is not after and (_stamps_of(before) != _stamps_of(after) or not before.same_meaning(after))


def _stamps_of(fact: Fact) -> tuple[int, str, str]:
    return fact.revision, fact.created_at, fact.updated_at
