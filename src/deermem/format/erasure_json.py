"""`.erased/{digest}.json`: the revision that a user's memory had when the user was erased.

{"format": 1, "revision": 13}
"""

from __future__ import annotations

from typing import Final

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.strict_json import dump_document, load_object

ERASURE_FORMAT: Final = 1
MAX_ERASURE_BYTES: Final = 1_000


def encode_erasure(revision: int) -> bytes:
    """Returns the bytes of the file."""
    return dump_document({"format": ERASURE_FORMAT, "revision": revision})


def decode_erasure(data: bytes, path: str) -> int:
    """Reads the file.

    Raises:
        Corruption: The document breaks a rule.
        UnsupportedFormat: The document is of a later format.
    """
    document = load_object(data, path)
    if document.get("format") != ERASURE_FORMAT:
        raise UnsupportedFormat(path, str(document.get("format"))[:40], str(ERASURE_FORMAT))
    revision = document.get("revision")
    if isinstance(revision, bool) or not isinstance(revision, int) or revision < 1:
        raise Corruption(path, "revision: must be an integer of at least 1")
    return revision
