"""What the index of each user is known to show; bounded, and free to forget.

The one rule: of every agent in `current`, the index shows exactly the facts as of `revision`. A
ledger that is lost or forgotten only means that scopes are rebuilt before they are searched.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Final

from deermem.model.changes import Delta
from deermem.model.identity import AgentName, UserId

UNKNOWN: Final = -1
BACKLOG: Final = 256  # commits that may wait to be told; beyond it a rebuild is cheaper

_arrivals = count()


class Ledger:
    """Keeps account of one user's index. Its owner guards it with a lock.

    `busy` marks that a thread has the turn to change this user's part of the index. `epoch` changes
    whenever knowledge is given up, so that work begun before does not vouch for the state after.
    """

    __slots__ = ("busy", "current", "epoch", "pending", "revision")

    def __init__(self) -> None:
        self.revision = UNKNOWN
        self.current: set[AgentName] = set()
        self.pending: list[tuple[int, int, Delta]] = []
        self.busy = False
        self.epoch = 0

    def shows(self, revision: int | None, agents: Iterable[AgentName]) -> bool:
        """Tells whether the index is known to show these agents' facts at this revision."""
        return self.revision == revision and self.current.issuperset(agents)

    def forget(self) -> None:
        """Gives up all knowledge: every scope of the user is stale."""
        self.revision = UNKNOWN
        self.current.clear()
        self.epoch += 1

    def suspect(self, agent: AgentName) -> None:
        """Gives up the knowledge of one agent."""
        self.current.discard(agent)
        self.epoch += 1

    def drop_pending(self) -> None:
        """Gives up the commits that wait to be told, and with them all knowledge."""
        self.pending.clear()
        self.forget()

    def queue(self, delta: Delta) -> None:
        """Puts a commit in its place among those that wait; too many of them are all given up."""
        if len(self.pending) >= BACKLOG:
            self.drop_pending()
        else:
            heappush(self.pending, (delta.revision, next(_arrivals), delta))

    def next_pending(self, up_to: int | None = None) -> Delta | None:
        """Takes the oldest commit that waits, unless it is above a revision."""
        if not self.pending or (up_to is not None and self.pending[0][0] > up_to):
            return None
        return heappop(self.pending)[2]

    def begin(self, delta: Delta) -> tuple[set[AgentName], set[AgentName]]:
        """Moves on to a commit; nothing vouches any more for the agents that it touched.

        Returns:
            The agents to tell of it, and those of them that are current again once told. An agent
            that is current at a later revision already has nothing to be told.
        """
        cleared = set(delta.cleared)
        touched = (
            cleared | {agent for agent, _ in delta.deleted} | {fact.scope.agent for fact in delta.written}
        )
        if delta.revision <= self.revision:
            return touched - self.current, set()
        if delta.revision != self.revision + 1:
            self.current.clear()  # another process committed in between
        known = touched & self.current
        self.current -= touched
        self.revision = delta.revision
        return touched, known | cleared

    def restart(self, revision: int, stale: Iterable[AgentName]) -> None:
        """Moves to the revision of a snapshot from which the stale agents are about to be rebuilt."""
        if revision != self.revision:
            self.current.clear()
            self.revision = revision
        self.current.difference_update(stale)

    def vouch(self, epoch: int, agents: Iterable[AgentName]) -> None:
        """Takes agents as current, unless knowledge was given up since the epoch."""
        if epoch == self.epoch:
            self.current.update(agents)


class Ledgers:
    """Holds the ledgers of the users seen last; a user who is dropped is rebuilt when searched."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_bucket: OrderedDict[str, Ledger] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_bucket)

    def of(self, user: UserId) -> Ledger:
        """Returns the user's ledger; a new one pushes out the least recently used idle one."""
        bucket = user.bucket or ""
        ledger = self._by_bucket.get(bucket)
        if ledger is not None:
            self._by_bucket.move_to_end(bucket)
            return ledger
        if len(self._by_bucket) >= self._limit:
            idle = (key for key, kept in self._by_bucket.items() if not kept.busy and not kept.pending)
            oldest = next(idle, None)
            if oldest is not None:
                del self._by_bucket[oldest]
        ledger = self._by_bucket[bucket] = Ledger()
        return ledger

    def forget(self, user: UserId | None) -> None:
        """Gives up what is known of one user, or of all."""
        ledgers = list(self._by_bucket.values()) if user is None else [self.of(user)]
        for ledger in ledgers:
            ledger.forget()
