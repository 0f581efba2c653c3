"""Every parser of bytes that somebody else may have written, with samples of what it should read.

A target returns, or raises one of ours; whatever else it does is a fault.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from deermem.compat import read_document
from deermem.errors import DeerMemError
from deermem.format.erasure_json import decode_erasure
from deermem.format.fact_markdown import decode_fact, encode_fact
from deermem.format.fences_json import decode_fences, encode_fences
from deermem.format.journal_json import Image, Journal, decode_journal, encode_journal, staged_name
from deermem.format.layout import fact_parts
from deermem.format.legacy_journal import decode_legacy_journal
from deermem.format.legacy_v1 import decode_legacy
from deermem.format.manifest_json import decode_manifest, encode_manifest
from deermem.maintenance.archive_reader import read_members
from deermem.maintenance.records import decode_record
from deermem.model.fact import FactDraft, next_fact
from deermem.model.identity import DEFAULT_AGENT, FactId, Scope
from deermem.model.manifest import Manifest
from deermem.model.resolution import Fences

NOW: Final = "2026-07-19T00:00:00Z"
SCOPE: Final = Scope.of("alice")
FACT: Final = next_fact(
    FactDraft("Likes tea.\n---\n# No title", id=FactId("a"), topics=("tea",), category="taste"),
    SCOPE,
    NOW,
    None,
)


class Target(NamedTuple):
    """Is a parser and what it reads."""

    read: Callable[[bytes], object]
    samples: tuple[bytes, ...]


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()


def _journal() -> bytes:
    parts = fact_parts(DEFAULT_AGENT, FACT.id)
    operation = "0" * 32
    images = (Image.of(parts, staged_name(operation, 0), encode_fact(FACT)),)
    manifest = Image.of(("memory.json",), staged_name(operation, 1), encode_manifest(Manifest(2, NOW)))
    return encode_journal(Journal(operation, 1, 2, images, manifest, ()))


def _archive() -> bytes:
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        for name, data in (("deermem-backup.json", b"{}"), ("users/alice/memory.json", b"{}")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _read_document(data: bytes) -> object:
    """Reads what a client posts for an import, once it is JSON at all."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return read_document(document)


_V1: Final = {
    "version": "1.0",
    "lastUpdated": NOW,
    "user": {"workContext": {"summary": "Works.", "updatedAt": NOW}},
    "facts": [{"id": "a", "content": "Tea.", "confidence": "0.9", "source": None}, {"content": "Milk."}],
}
_OLD_JOURNAL: Final = {
    "operationId": "0" * 32,
    "state": "prepared",
    "agentName": "__default__",
    "expectedRevision": 1,
    "nextRevision": 2,
    "factIds": ["a"],
    "oldEntries": {"a": {"path": "/".join(fact_parts(DEFAULT_AGENT, FactId("a")))}},
}

TARGETS: Final[Mapping[str, Target]] = {
    "fact document": Target(
        lambda data: decode_fact(data, path="a.md", scope=SCOPE, fact_id=FactId("a")),
        (encode_fact(FACT), encode_fact(FACT).replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + encode_fact(FACT)),
    ),
    "manifest": Target(
        lambda data: decode_manifest(data, "memory.json"), (encode_manifest(Manifest(2, NOW)), _json(_V1))
    ),
    "journal": Target(
        lambda data: decode_journal(data, "j.json", "memory.json"), (_journal(), _json(_OLD_JOURNAL))
    ),
    "predecessor's journal": Target(
        lambda data: decode_legacy_journal(data, "j.json"), (_json(_OLD_JOURNAL),)
    ),
    "version-1 document": Target(
        lambda data: decode_legacy(data, "memory.json", SCOPE, NOW),
        (_json(_V1), _json({"facts": {"a": {"path": "agents/x/a.md", "contentHash": "0" * 64}}})),
    ),
    "fences": Target(
        lambda data: decode_fences(data, "f.json"), (encode_fences(Fences(3, {DEFAULT_AGENT: 4})),)
    ),
    "erasure": Target(lambda data: decode_erasure(data, "e.json"), (b'{"format": 1, "revision": 3}',)),
    "record of a repair": Target(lambda data: decode_record(data, "r.json"), (b'{"format": 1}',)),
    "archive": Target(lambda data: list(read_members(io.BytesIO(data))), (_archive(),)),
    "posted document": Target(_read_document, (_json(_V1), b'{"facts": [{"content": "x", "own": [1, {}]}]}')),
}


def try_target(name: str, data: bytes) -> bool:
    """Gives bytes to a target; tells whether they were accepted.

    Raises:
        Exception: Anything that is none of ours: a fault.
    """
    try:
        TARGETS[name].read(data)
    except DeerMemError:
        return False
    return True
