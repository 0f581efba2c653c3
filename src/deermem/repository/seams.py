"""The seams: three methods that a storage overrides, and that all reads and commits pass."""

from __future__ import annotations

from dataclasses import replace

from deermem.model.changes import ChangeSet, Delta
from deermem.model.identity import UserId
from deermem.model.summaries import SectionKey
from deermem.storage.view import View


class Seams:
    """Lets everything through; a storage overrides what it wants to watch, to change or to refuse.

    A user can be known by two ids, the raw one and the name of the bucket: compare `user.bucket`.
    """

    def before_read(self, user: UserId) -> None:
        """Is called before a user's memory is read, and refuses the read by raising.

        What was read cannot be changed: programs write back what they read. The reads that a commit makes
        for itself do not pass here; nor does the memory that a manager answers a write with, where it is
        still cached. Several requests of one moment may share a read.
        """

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:  # noqa: ARG002 - for overriding
        """Is called with what is about to be committed; returns what is committed, or refuses by raising.

        It runs under the user's lock, perhaps several times for one commit: it has to be quick and to
        write nothing. To the storage itself it must not talk; `view` is there to be read.

        Args:
            user: Whose memory is about to change.
            changes: What is to change. It may come to nothing.
            view: The memory as it is, at one state.

        Returns:
            The same change set, or a `dataclasses.replace` of it in which facts and summaries say something
            else. All the rest has to stay, for callers rely on it: which facts are written and deleted, on
            which conditions.
        """
        return changes

    def after_commit(self, user: UserId, delta: Delta) -> None:
        """Is called after a commit that changed something, and before its caller gets the answer.

        No lock is held, so commits of several threads may come out of order: `delta.revision` tells. An
        exception becomes a line in the log and nothing else, since what is stored has not failed. Commits
        of other storages and processes are not told.
        """


def check_passed(passed: object, changes: ChangeSet, name: str) -> ChangeSet:
    """Returns what a `before_commit` returned, if callers can rely on it.

    Args:
        passed: What was returned.
        changes: What it was given.
        name: The class that it is of.

    Raises:
        TypeError: It is no change set, or differs in more than what facts and summaries say.
    """
    if passed is changes:
        return changes
    if not isinstance(passed, ChangeSet):
        raise TypeError(f"{name}.before_commit returned {type(passed).__name__} and not a ChangeSet")
    drafts = {upsert.key: upsert.draft for upsert in changes.upserts}
    upserts = tuple(replace(each, draft=drafts.get(each.key, each.draft)) for each in passed.upserts)
    same_summaries = _sections(passed) == _sections(changes)
    if not same_summaries or replace(passed, upserts=upserts, summaries=changes.summaries) != changes:
        raise TypeError(f"{name}.before_commit changed more than what facts and summaries say")
    return passed


def _sections(changes: ChangeSet) -> frozenset[SectionKey] | None:
    return None if changes.summaries is None else frozenset(changes.summaries.sections)
