"""Which documents are of version 1: what is still to be migrated, and what another program may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deermem.errors import Corruption
from deermem.format.legacy_json import load_legacy_object, verbatim
from deermem.model.manifest import MANIFEST_VERSION

LEGACY_VERSIONS: Final = ("", "1", "1.0")


def is_legacy_manifest(document: Mapping[str, Any]) -> bool:
    """Tells whether `memory.json` is of version 1, or holds facts as version 1 does."""
    version = version_text(document)
    return version in LEGACY_VERSIONS or (version == MANIFEST_VERSION and "facts" in document)


def is_legacy_text(data: bytes) -> bool:
    """Tells whether a document that is no strict JSON is one of version 1, which was laxer."""
    try:
        return is_legacy_manifest(load_legacy_object(data, ""))
    except Corruption:
        return False


def version_text(document: Mapping[str, Any]) -> str:
    """Returns the version that a document names, empty when it names none."""
    match document.get("version"):
        case None:
            return ""
        case str(text):
            return text
        case bool():
            return "of another type"
        case int() | float() as number if number == 1:
            return str(number)
        case other:
            return f"{verbatim(other)[:40]} (no string)"
