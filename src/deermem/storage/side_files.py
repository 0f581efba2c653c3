"""Side files: what a host keeps beside the facts of an agent, below `agents/{agent}/.metadata/`.

They are hints and never canonical: no read of the memory looks at them, none of them is part of a
transaction, and what is wrong with one is its host's to shrug off. They are written under the user's lock,
each replaced as a whole, and go with the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from deermem.errors import Corruption, InvalidInputError
from deermem.format.journal_json import Parts
from deermem.format.layout import AGENTS, METADATA, is_agent_file
from deermem.model.identity import AgentName, FactId, UserId
from deermem.storage.access import BucketAccess
from deermem.storage.bucket import Bucket
from deermem.storage.journal import replace_file
from deermem.storage.opening import BucketGone, trusted

MAX_SIDE_FILE_BYTES: Final = 16_000_000


class SideFiles:
    """Is the side files of one agent, while the user's lock is held."""

    def __init__(self, bucket: Bucket, agent: AgentName, operation: str) -> None:
        self._bucket = bucket
        self._operation = operation
        self._agent = agent
        self._place: Parts = (AGENTS, agent, METADATA)

    def read(self, name: str) -> bytes | None:
        """Returns what a side file holds, `None` when there is none.

        Raises:
            Corruption: There is a link, a directory or a file of more than 16 MB in its place.
        """
        with suppress(FileNotFoundError), self._bucket.directory_at(self._place) as directory, trusted():
            return directory.read(name, MAX_SIDE_FILE_BYTES)[0]
        return None

    def write(self, name: str, data: bytes) -> bool:
        """Replaces a side file as a whole; after a loss of power it is the old one or the new one.

        Returns:
            `False` when the agent has no directory any more: a late hint does not bring one back.
        """
        if not is_agent_file((*self._place, name)) or "/" in name:
            raise InvalidInputError("name", "is no name of a side file")
        try:
            with self._bucket.directory_at(self._place[:-1]) as agent:
                if agent.make_child(METADATA):
                    agent.sync()
        except FileNotFoundError:
            return False
        with self._bucket.directory_at(self._place) as directory:
            replace_file(self._bucket, self._operation, directory, name, data)
            directory.sync()
        return True

    def remove(self, name: str) -> None:
        """Removes a side file, and its directory with the last one."""
        with suppress(FileNotFoundError), self._bucket.directory_at(self._place) as directory:
            directory.unlink(name)
            directory.sync()
        self._remove_place()

    def remove_all(self) -> None:
        """Removes all side files of the agent; directories among them stay."""
        with suppress(FileNotFoundError), self._bucket.directory_at(self._place) as directory, trusted():
            for name, file in directory.identities().items():
                if file is not None:
                    directory.unlink(name)
            directory.sync()
        self._remove_place()

    def fact_ids(self) -> frozenset[FactId]:
        """Returns the ids of the facts that the agent has."""
        return frozenset(file.fact_id for file in self._bucket.list_facts(self._agent))

    def _remove_place(self) -> None:
        with suppress(OSError, Corruption), self._bucket.directory_at(self._place[:-1]) as agent:
            agent.remove_child(METADATA)
            agent.sync()


def has_side_files(access: BucketAccess, user: UserId, agent: AgentName) -> bool:
    """Tells whether an agent has any side file; takes no lock."""
    with access.opened(user) as bucket:
        return bucket is not None and _place_is_there(bucket, agent)


def agents_with_side_files(access: BucketAccess, user: UserId) -> list[AgentName]:
    """Returns the agents that have side files, sorted; takes no lock."""
    with access.opened(user) as bucket:
        if bucket is None:
            return []
        return [agent for agent in bucket.agent_directories() if _place_is_there(bucket, agent)]


def _place_is_there(bucket: Bucket, agent: AgentName) -> bool:
    with suppress(FileNotFoundError), bucket.directory_at((AGENTS, agent)) as directory:
        return METADATA in directory.names()
    return False


@contextmanager
def side_files(access: BucketAccess, user: UserId, agent: AgentName) -> Iterator[SideFiles | None]:
    """Holds the user's lock and gives the side files of an agent; `None` for a user without a bucket.

    Raises:
        LockTimeout: Another writer held the lock too long.
    """
    with ExitStack() as stack:
        bucket = stack.enter_context(access.opened(user))
        if bucket is None:
            yield None
            return
        try:
            stack.enter_context(access.locked(bucket))
        except BucketGone:
            yield None
            return
        yield SideFiles(bucket, agent, access.stamps.operation())
