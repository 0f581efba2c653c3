"""How long an error is doubted that may come from a stale client or from a file being replaced."""

from __future__ import annotations

import errno
from typing import Final

from deermem.errors import Corruption

# A caching network client may show a replaced file's old state, or none, for about a second.
STALE_PAUSES: Final = (0.01, 0.05, 0.2, 0.5, 0.7)
_BROKEN_PAUSES: Final = 2


class StaleManifest(Corruption):
    """Says that `memory.json` is older than this process has seen it."""


def patience(error: OSError | Corruption) -> int:
    """Returns how many pauses an error is worth before it is believed.

    A file that is being replaced, or a stale network client, may pass for one that is missing; one
    that an editor is just writing may pass for a broken one.
    """
    if isinstance(error, Corruption):
        return len(STALE_PAUSES) if isinstance(error, StaleManifest) else _BROKEN_PAUSES
    passing = isinstance(error, FileNotFoundError) or error.errno == errno.ESTALE
    return len(STALE_PAUSES) if passing else 0
