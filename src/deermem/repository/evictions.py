"""Says which facts a cap took, so that whoever misses one can find out why."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from deermem.model.changes import ChangeSet
from deermem.model.identity import Scope, UserId

_log = logging.getLogger(__name__)

IDS_IN_A_LINE: Final = 100


def tell_evicted(user: UserId, changes: ChangeSet, revision: int, *, kept_days: int) -> None:
    """Logs the ids of all evicted facts, never what they say (contract section 6).

    Args:
        user: Whose memory it is.
        changes: What was committed.
        revision: The manifest revision of the commit.
        kept_days: For how long the store keeps what can be taken back.
    """
    evicted: dict[Scope, list[str]] = {}
    for agent, fact_id in changes.evicts:
        evicted.setdefault(Scope(user, agent), []).append(fact_id)
    for scope, fact_ids in evicted.items():
        _tell(scope, fact_ids, revision)
        if changes.keeps:
            way_back = f"; for {kept_days} days `deermem undo` brings them back" if kept_days else ""
            _log.warning(
                "%s held more facts than its cap, %d went at revision %d%s",
                scope,
                len(fact_ids),
                revision,
                way_back,
            )


def _tell(scope: Scope, fact_ids: Sequence[str], revision: int) -> None:
    for start in range(0, len(fact_ids), IDS_IN_A_LINE):
        ids = ", ".join(fact_ids[start : start + IDS_IN_A_LINE])
        _log.info("the cap evicted from %s at revision %d: %s", scope, revision, ids)
