"""How many files the process may have open: connections must leave enough of them to the store.

Without that, clients that only connect would keep everybody's memory from being read.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import Final

# Of a process that serves nobody, and of the connections that are taken before they are counted.
_OTHERS: Final = 160
# A write has the directories from the root to a shard open, with a lock and a file.
_OF_A_THREAD: Final = 16

_log = logging.getLogger(__name__)


def room_for(connections: int, threads: int) -> int:
    """Returns how many connections there may be, at most `connections`; may raise the process's limit.

    Args:
        connections: How many are wished for.
        threads: How many calls work on the store at once.
    """
    if sys.platform == "win32":
        return connections
    import resource

    reserved = _OTHERS + threads * _OF_A_THREAD
    wanted = connections + reserved
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):  # some systems have a lower limit than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    room = max(soft - reserved, 1)
    _log.warning(
        "only %d connections at once: the process may have %d files open, %d are needed", room, soft, wanted
    )
    return room
