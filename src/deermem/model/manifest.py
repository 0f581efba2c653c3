"""The manifest: what `memory.json` says of a user at one revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deermem.model.fact import ExtraField
from deermem.model.summaries import EMPTY_SUMMARIES, Summaries

MANIFEST_VERSION: Final = "2.0"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Holds the shared revision of a user's memory and the summaries.

    Revision 0 stands for a user about whom nothing was ever stored. `extra` keeps keys of the
    document that the store does not know.
    """

    revision: int = 0
    last_updated: str = ""
    summaries: Summaries = EMPTY_SUMMARIES
    extra: tuple[ExtraField, ...] = ()


NO_MANIFEST: Final = Manifest()
