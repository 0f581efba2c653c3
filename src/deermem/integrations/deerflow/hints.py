"""Usage and eviction hints: what DeerFlow keeps beside the facts of an agent, under the user's lock.

Memory never fails for a hint: a damaged file counts as empty, with a warning, and what the disk refuses while
hints are cleared is logged, since the facts they were about are gone already.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from deermem.errors import Corruption, DeerMemError
from deermem.integrations.deerflow.side_json import (
    AUDIT,
    USAGE,
    Events,
    Usage,
    decode,
    encode,
    usage_entries,
    with_accesses,
    without_facts,
)
from deermem.model.identity import AgentName, Scope, UserId
from deermem.storage.access import BucketAccess
from deermem.storage.side_files import SideFiles, agents_with_side_files, has_side_files, side_files

_log = logging.getLogger(__name__)


class Hints:
    """Reads, writes and clears the side files of agents.

    Args:
        access: The store's access to buckets.
        half_life_days: In how many days the heat of an access halves.
        max_events: How many entries the audit of evictions keeps; 0 keeps none.
    """

    def __init__(self, access: BucketAccess, *, half_life_days: float, max_events: int) -> None:
        self._access = access
        self._half_life_days = half_life_days
        self._max_events = max_events

    def usage(self, scope: Scope) -> Usage:
        """Returns how often and when facts were found, by fact id."""
        if not has_side_files(self._access, scope.user, scope.agent):
            return {}
        with side_files(self._access, scope.user, scope.agent) as files:
            return {} if files is None else _usage(files)

    def note_accesses(self, scope: Scope, fact_ids: Iterable[str], now: datetime) -> None:
        """Counts that facts were found; facts that are not there any more are left out, and forgotten."""
        wanted = dict.fromkeys(fact_id for fact_id in fact_ids if fact_id)
        if not wanted:
            return
        with side_files(self._access, scope.user, scope.agent) as files:
            if files is None:
                return
            present = files.fact_ids()
            if present.isdisjoint(wanted):
                return
            usage = with_accesses(_usage(files), wanted, present, now, self._half_life_days)
            files.write(USAGE, encode(usage))

    def note_eviction(self, scope: Scope, event: dict[str, Any]) -> None:
        """Adds an entry to the audit; the oldest make room."""
        if self._max_events == 0:
            return
        with side_files(self._access, scope.user, scope.agent) as files:
            if files is not None:
                files.write(AUDIT, encode([*_events(files), event][-self._max_events :]))

    def forget(self, scope: Scope, fact_ids: Collection[str] | None) -> None:
        """Removes what is known of some facts, or of all; never raises what the disk or the lock does."""
        self._clear(scope.user, scope.agent, None if fact_ids is None else frozenset(fact_ids))

    def forget_user(self, user: UserId) -> None:
        """Removes the side files of all agents of a user; never raises what the disk or the lock does."""
        try:
            agents = agents_with_side_files(self._access, user)
        except (OSError, DeerMemError) as error:
            _log.warning("the side files of %s were not looked for: %s", user, error)
            return
        for agent in agents:
            self._clear(user, agent, None)

    def _clear(self, user: UserId, agent: AgentName, fact_ids: frozenset[str] | None) -> None:
        if fact_ids is not None and not fact_ids:
            return
        try:
            if not has_side_files(self._access, user, agent):
                return
            with side_files(self._access, user, agent) as files:
                if files is None:
                    return
                if fact_ids is None:
                    files.remove_all()
                    return
                usage = {key: entry for key, entry in _usage(files).items() if key not in fact_ids}
                _put(files, USAGE, usage)
                _put(files, AUDIT, without_facts(_events(files), fact_ids))
        except (OSError, DeerMemError) as error:
            _log.warning("side files of %s/%s were not cleared: %s", user, agent, error)


def _put(files: SideFiles, name: str, value: Usage | Events) -> None:
    if value:
        files.write(name, encode(value))
    else:
        files.remove(name)


def _usage(files: SideFiles) -> Usage:
    return usage_entries(_read(files, USAGE, dict))


def _events(files: SideFiles) -> Events:
    return [event for event in _read(files, AUDIT, list) if isinstance(event, dict)]


def _read(files: SideFiles, name: str, kind: type[dict[Any, Any] | list[Any]]) -> Any:
    try:
        value, readable = decode(files.read(name), kind)
    except Corruption as error:
        value, readable = kind(), False
        _log.warning("a side file cannot be read and counts as empty: %s", error)
    else:
        if not readable:
            _log.warning("the side file %s is damaged and counts as empty", name)
    return value
