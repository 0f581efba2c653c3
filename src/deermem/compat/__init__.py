"""The historical document: facts and snapshots as dictionaries with camelCase keys (contract section 6).

Pure in both directions; no other module knows this shape.
"""

from __future__ import annotations

from deermem.compat.incoming import (
    DOCUMENT_PARTS,
    located,
    read_changes,
    read_document,
    read_facts,
    read_summaries,
)
from deermem.compat.outgoing import (
    delta_document,
    fact_document,
    manifest_document,
    snapshot_document,
    summaries_document,
)

__all__ = [
    "DOCUMENT_PARTS",
    "delta_document",
    "fact_document",
    "located",
    "manifest_document",
    "read_changes",
    "read_document",
    "read_facts",
    "read_summaries",
    "snapshot_document",
    "summaries_document",
]
