"""`memory.json`, the manifest of a user bucket.

    {"version": "2.0", "revision": 12, "lastUpdated": "…Z",
     "user":    {"workContext": SECTION, "personalContext": SECTION, "topOfMind": SECTION},
     "history": {"recentMonths": SECTION, "earlierContext": SECTION, "longTermBackground": SECTION}}

    SECTION = {"summary": "…", "updatedAt": "…Z"}

Keys that the store does not know are kept, at the top, beside the sections and inside them. Facts
are never in it (plan section 3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from deermem.errors import Corruption, InvalidInputError, LegacyFormat, UnsupportedFormat
from deermem.format.legacy_version import is_legacy_manifest, is_legacy_text
from deermem.format.strict_json import dump_compact, dump_document, load_object
from deermem.model.fact import ExtraField
from deermem.model.manifest import MANIFEST_VERSION, Manifest
from deermem.model.rules import MAX_COUNT
from deermem.model.summaries import SECTIONS, Section, SectionKey, Summaries
from deermem.model.timestamps import parse_timestamp

MAX_MANIFEST_BYTES: Final = 4_000_000

_KNOWN: Final = ("version", "revision", "lastUpdated", "user", "history")


def encode_manifest(manifest: Manifest) -> bytes:
    """Returns the bytes of `memory.json`.

    Raises:
        InvalidInputError: They could not be read again.
    """
    if manifest.revision > MAX_COUNT:
        raise InvalidInputError("revision", f"has reached {MAX_COUNT:,}, its limit")
    groups: dict[str, dict[str, Any]] = {group: {} for group in SECTIONS}
    for (group, name), section in manifest.summaries.sections.items():
        groups[group][name] = section_document(section)
    document: dict[str, Any] = {
        "version": MANIFEST_VERSION,
        "revision": manifest.revision,
        "lastUpdated": manifest.last_updated,
        **groups,
    }
    document.update((field.key, json.loads(field.json)) for field in manifest.extra)
    try:
        data = dump_document(document)
    except ValueError:
        raise InvalidInputError("summaries", "cannot be written as JSON") from None
    if len(data) > MAX_MANIFEST_BYTES:
        raise InvalidInputError("summaries", f"need more than {MAX_MANIFEST_BYTES:,} bytes")
    return data


def section_document(section: Section) -> dict[str, Any]:
    """Returns a section as the JSON object that stands for it."""
    try:
        extra = json.loads(section.extra) if section.extra else {}
    except ValueError:
        raise InvalidInputError("summaries", "have an unknown field that is no JSON") from None
    return {"summary": section.summary, "updatedAt": section.updated_at, **extra}


def decode_manifest(data: bytes, path: str) -> Manifest:
    """Reads `memory.json`.

    Raises:
        Corruption: The document breaks a rule; the reason names the key.
        LegacyFormat: The document has version 1, or facts inside as version 1 has.
        UnsupportedFormat: The document has another version.
    """
    document = _load(data, path)
    revision = document.get("revision")
    if isinstance(revision, bool) or not isinstance(revision, int) or not 1 <= revision <= MAX_COUNT:
        raise Corruption(path, "revision: must be an integer of at least 1")
    last_updated = document.get("lastUpdated")
    try:
        parse_timestamp(last_updated, "lastUpdated")  # type: ignore[arg-type]  # it checks the type
    except InvalidInputError as error:
        raise Corruption(path, str(error)) from None
    sections: dict[SectionKey, Section] = {}
    for group in SECTIONS:
        children = document.get(group, {})
        if not isinstance(children, dict):
            raise Corruption(path, f"{group}: must be an object")
        for name, value in children.items():
            sections[group, name] = _decode_section(value, path, f"{group}.{name}")
    extra = tuple(
        ExtraField(key, dump_compact(value)) for key, value in document.items() if key not in _KNOWN
    )
    return Manifest(revision, str(last_updated), Summaries.of(sections), extra)


def _load(data: bytes, path: str) -> dict[str, Any]:
    """Reads the JSON object, if it is of this version."""
    try:
        document = load_object(data, path)
        legacy = is_legacy_manifest(document)
    except Corruption:
        if not is_legacy_text(data):
            raise
        document, legacy = {}, True
    if legacy:
        raise LegacyFormat(path, "1.0", MANIFEST_VERSION)
    version = document.get("version")
    if version != MANIFEST_VERSION:
        raise UnsupportedFormat(path, str(version)[:40], MANIFEST_VERSION)
    if len(data) > MAX_MANIFEST_BYTES:
        raise Corruption(path, f"is larger than {MAX_MANIFEST_BYTES:,} bytes")
    return document


def _decode_section(value: Any, path: str, name: str) -> Section:
    if not isinstance(value, Mapping):
        raise Corruption(path, f"{name}: must be an object")
    summary, updated_at = value.get("summary", ""), value.get("updatedAt", "")
    if not isinstance(summary, str) or not isinstance(updated_at, str):
        raise Corruption(path, f"{name}: summary and updatedAt must be strings")
    extra = {key: item for key, item in value.items() if key not in ("summary", "updatedAt")}
    return Section(summary, updated_at, dump_compact(extra) if extra else "")
