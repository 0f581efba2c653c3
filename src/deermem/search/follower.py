"""The follower: tells an adapter of commits in order, and rebuilds scopes whose index is stale."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from deermem.model.changes import Delta
from deermem.model.identity import AgentName, Scope, UserId
from deermem.model.snapshot import Snapshot
from deermem.search.guarded import GuardedAdapter
from deermem.search.ledger import BACKLOG, Ledger, Ledgers

LoadAll = Callable[[Sequence[Scope]], Sequence[Snapshot]]

_TRIES_FOR_ONE_REVISION: Final = 8


@dataclass(frozen=True, slots=True)
class View:
    """Holds some scopes of one user at one revision.

    `reason` says why the index does not show the same, for the agents in `failed`; empty if it does.
    """

    snapshots: Sequence[Snapshot]
    reason: str = ""
    failed: frozenset[AgentName] = frozenset()


class Follower:
    """Changes an adapter's index, one thread at a time for each user, and never under a lock.

    The thread that has a user's turn tells all commits that wait; others leave theirs in the ledger
    and go on. Nobody waits for an adapter without a limit, so an adapter may use the store that it
    serves, also from threads of its own.
    """

    def __init__(self, adapter: GuardedAdapter, load_all: LoadAll, patience: float, max_users: int) -> None:
        self._adapter = adapter
        self._load_all = load_all
        self._patience = patience
        self._changed = threading.Condition()  # guards all that follows, and every ledger
        self._ledgers = Ledgers(max_users)
        self._running = 0
        self._closed = False

    @property
    def name(self) -> str:
        """What the adapter is called in messages."""
        return self._adapter.name

    def committed(self, user: UserId, delta: Delta) -> None:
        """Tells of a commit, or leaves that to the thread that has the turn."""
        with self._changed:
            if self._closed:
                return
            self._ledgers.of(user).queue(delta)
        self.catch_up(user)

    def catch_up(self, user: UserId) -> None:
        """Tells what waits to be told, unless a thread is at it."""
        with self.at_work() as adapter:
            if adapter is None:
                return
            with self._changed:
                ledger = self._ledgers.of(user)
                if ledger.busy or not ledger.pending:
                    return
                ledger.busy = True
            self._finish(user, ledger)

    def bring_up_to_date(self, scopes: Sequence[Scope], *, everything: bool = False) -> View:
        """Reads scopes of one user and has the index show the same.

        Args:
            scopes: At least one.
            everything: Whether to rebuild also what is not stale.
        """
        user, agents = scopes[0].user, frozenset(scope.agent for scope in scopes)
        if not everything:
            snapshots = self._load_all(scopes)
            with self._changed:
                if self._ledgers.of(user).shows(_revision_of(snapshots), agents):
                    return View(snapshots)
        with self._turn(user) as ledger:
            if ledger is None:
                return View(self._load_all(scopes), "the index is busy", agents)
            return self._refresh(user, ledger, scopes, everything)

    def clear(self, scopes: Sequence[Scope]) -> str:
        """Has the index forget scopes of one user; returns why it did not, empty if it did."""
        with self.at_work() as adapter:
            if adapter is None:
                return "the adapter is closed or is the caller"
            with self._turn(scopes[0].user) as ledger:
                if ledger is None:
                    return "the index is busy"
                with self._changed:
                    ledger.drop_pending()
                return adapter.clear(scopes)

    def mark_stale(self, user: UserId | None) -> None:
        """Forgets what the index of one user shows, or of every user."""
        with self._changed:
            self._ledgers.forget(user)

    def still_shows(self, snapshots: Iterable[Snapshot]) -> bool:
        """Tells whether the index shows just these snapshots."""
        with self._changed:
            return all(
                self._ledgers.of(each.scope.user).shows(each.revision, [each.scope.agent])
                for each in snapshots
            )

    def suspect(self, snapshots: Iterable[Snapshot], *, even_if_newer: bool) -> None:
        """Takes scopes for stale.

        Args:
            snapshots: What their index was believed to show.
            even_if_newer: Whether also those count that have followed a commit since.
        """
        with self._changed:
            for snapshot in snapshots:
                scope = snapshot.scope
                ledger = self._ledgers.of(scope.user)
                if even_if_newer or ledger.shows(snapshot.revision, [scope.agent]):
                    ledger.suspect(scope.agent)

    def close(self) -> None:
        """Closes the adapter once, after the calls that are under way."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            if not self._adapter.inside:
                self._changed.wait_for(lambda: not self._running, self._patience)
        self._adapter.close()

    @contextmanager
    def at_work(self) -> Iterator[GuardedAdapter | None]:
        """Yields the adapter, kept open meanwhile; `None` if it is closed or is itself the caller."""
        with self._changed:
            usable = not (self._closed or self._adapter.inside)
            self._running += usable
        try:
            yield self._adapter if usable else None
        finally:
            with self._changed:
                self._running -= usable
                self._changed.notify_all()

    @contextmanager
    def _turn(self, user: UserId) -> Iterator[Ledger | None]:
        """Yields the user's ledger for this thread to change the index; `None` if others take too long."""
        with self._changed:
            free = self._changed.wait_for(lambda: not self._ledgers.of(user).busy, self._patience)
            ledger = self._ledgers.of(user)
            if free:
                ledger.busy = True
        if not free:
            yield None
            return
        try:
            yield ledger
        finally:
            self._finish(user, ledger)

    def _refresh(self, user: UserId, ledger: Ledger, scopes: Sequence[Scope], everything: bool) -> View:
        with self._changed:
            epoch = ledger.epoch  # before the reading: whoever marks it stale may have changed what is read
        snapshots = self._load_all(scopes)
        revision = _revision_of(snapshots)
        if revision is None:
            return View(snapshots, "the store is changing", frozenset(each.scope.agent for each in snapshots))
        self._tell_pending(user, ledger, revision)
        with self._changed:
            stale = [
                each for each in snapshots if everything or not ledger.shows(revision, [each.scope.agent])
            ]
            ledger.restart(revision, (each.scope.agent for each in stale))
        failed: dict[AgentName, str] = {}
        for snapshot in stale:
            reason = self._adapter.rebuild(snapshot)
            if reason:
                failed[snapshot.scope.agent] = reason
                continue
            with self._changed:
                ledger.vouch(epoch, [snapshot.scope.agent])
        return View(snapshots, next(iter(failed.values()), ""), frozenset(failed))

    def _tell_pending(self, user: UserId, ledger: Ledger, up_to: int) -> None:
        for _ in range(BACKLOG):
            with self._changed:
                delta = ledger.next_pending(up_to)
            if delta is None:
                return
            self._tell(user, ledger, delta)

    def _tell(self, user: UserId, ledger: Ledger, delta: Delta) -> None:
        with self._changed:
            agents, sure = ledger.begin(delta)
            epoch = ledger.epoch
        told = self._adapter.follow(user, delta, agents)
        with self._changed:
            ledger.vouch(epoch, told & sure)

    def _finish(self, user: UserId, ledger: Ledger) -> None:
        """Tells what came in meanwhile and gives the turn back.

        Where commits come in faster than the adapter takes them, the rest is given up, so that this
        caller gets on: the scopes are rebuilt when somebody searches.
        """
        try:
            for _ in range(BACKLOG):
                with self._changed:
                    delta = ledger.next_pending()
                    if delta is None:
                        self._give_back(ledger)
                        return
                self._tell(user, ledger, delta)
        except BaseException:
            with self._changed:
                ledger.drop_pending()
                self._give_back(ledger)
            raise
        with self._changed:
            ledger.drop_pending()
            self._give_back(ledger)

    def _give_back(self, ledger: Ledger) -> None:
        ledger.busy = False
        self._changed.notify_all()


def load_together(load: Callable[[Scope], Snapshot], scopes: Sequence[Scope]) -> list[Snapshot]:
    """Reads scopes of one user at one revision; a few tries, as another commit may come in between."""
    snapshots = [load(scope) for scope in scopes]
    for _ in range(_TRIES_FOR_ONE_REVISION):
        if _revision_of(snapshots) is not None:
            break
        snapshots = [load(scope) for scope in scopes]
    return snapshots


def _revision_of(snapshots: Sequence[Snapshot]) -> int | None:
    revisions = {snapshot.revision for snapshot in snapshots}
    return revisions.pop() if len(revisions) == 1 else None
