"""`.memory.journal.json`: the redo record of one transaction.

    {"format": 2, "state": "redo", "operation": 32 hex digits,
     "baseRevision": 11, "revision": 12,
     "base":     SHA-256 of the `memory.json` of version 1 that is replaced; only there is it
     "images":   [IMAGE, …],          fact documents, the fences, a safety copy
     "manifest": IMAGE,
     "deletes":  ["agents/…/{id}.md", …],
     "checksum": SHA-256 of the document without this key, compact}

    IMAGE = {"path": "agents/…", "staged": name in .recovery, "sha256": "…", "text": "…"}

The journal holds every image itself, however large: the staged files are moved into place, and a move
across directories may lose both names when the power fails half-way. The state is neither `prepared` nor
`committed`, so that the predecessor refuses the journal instead of discarding it (contract section 4).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from deermem.errors import Corruption, LegacyFormat, UnsupportedFormat
from deermem.format.layout import (
    BACKUP_SUFFIX,
    FENCES,
    is_agent_file,
    is_fact_place,
    legacy_parts,
    parse_fact_parts,
)
from deermem.format.legacy_journal import is_legacy_journal, is_like_legacy_journal
from deermem.format.legacy_version import is_legacy_text
from deermem.format.safety_json import is_safety_copy
from deermem.format.strict_json import dump_compact, load_object
from deermem.model.identity import stored_agent_name

JOURNAL_FORMAT: Final = 2
JOURNAL_STATE: Final = "redo"
MAX_JOURNAL_BYTES: Final = 500_000_000
_MAX_FOREIGN_BYTES: Final = 1_000_000

_STAGED = re.compile(r"[0-9a-f]{32}\.[0-9]{1,7}")
_KEPT = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")

Parts = tuple[str, ...]


def staged_name(operation: str, number: int) -> str:
    """Returns the name in `.recovery` of an operation's image."""
    return f"{operation}.{number}"


def is_staged_name(name: str) -> bool:
    """Tells whether a file in `.recovery` is one that a transaction staged."""
    return _STAGED.fullmatch(name) is not None


def is_kept_name(name: str) -> bool:
    """Tells whether a directory in `.recovery` is one in which the predecessor kept old files."""
    return _KEPT.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Image:
    """Is the complete new content of one file; `parts` is its path below the user bucket."""

    parts: Parts
    staged: str
    digest: str
    text: str

    @classmethod
    def of(cls, parts: Parts, staged: str, data: bytes) -> Image:
        """Describes the bytes that a file will have."""
        return cls(parts, staged, sha256(data).hexdigest(), data.decode("utf-8"))

    def is_content(self, data: bytes) -> bool:
        """Tells whether these bytes are the image."""
        return sha256(data).hexdigest() == self.digest


@dataclass(frozen=True, slots=True)
class Journal:
    """Holds everything that is needed to complete a transaction, however often.

    `base_digest` is the SHA-256 of the `memory.json` that it replaces, if that is of version 1, which has
    no revision to be known by.
    """

    operation: str
    base_revision: int
    revision: int
    images: tuple[Image, ...]
    manifest: Image
    deletes: tuple[Parts, ...]
    base_digest: str = ""

    def starts_from(self, data: bytes | None) -> bool:
        """Tells whether these bytes are the `memory.json` of version 1 that is replaced.

        Nothing, `None`, will do as well: then there is nothing to lose.
        """
        return bool(self.base_digest) and (data is None or sha256(data).hexdigest() == self.base_digest)


def encode_journal(journal: Journal) -> bytes:
    """Returns the bytes of the journal file."""
    document: dict[str, Any] = {
        "format": JOURNAL_FORMAT,
        "state": JOURNAL_STATE,
        "operation": journal.operation,
        "baseRevision": journal.base_revision,
        "revision": journal.revision,
        **({"base": journal.base_digest} if journal.base_digest else {}),
        "images": [_image_document(image) for image in journal.images],
        "manifest": _image_document(journal.manifest),
        "deletes": ["/".join(parts) for parts in journal.deletes],
    }
    body = dump_compact(document).encode("utf-8")
    return body[:-1] + b',"checksum":"' + sha256(body).hexdigest().encode("ascii") + b'"}\n'


def decode_journal(data: bytes, path: str, manifest_name: str) -> Journal:
    """Reads a journal; every path in it must be one that a transaction may touch.

    Raises:
        Corruption: The bytes are not what `encode_journal` wrote.
        LegacyFormat: The journal is the predecessor's.
        UnsupportedFormat: The journal is of another format.
    """
    body, _, rest = data.rpartition(b',"checksum":"')
    sealed = rest[:-3] == sha256(body + b"}").hexdigest().encode("ascii") and rest[-3:] == b'"}\n'
    if not sealed and len(data) > _MAX_FOREIGN_BYTES and not is_like_legacy_journal(data):
        # Parsing takes many times the memory of the bytes, and they are not what a transaction wrote.
        raise Corruption(path, "the checksum does not fit", _HINT)
    document = load_object(data, path)
    if is_legacy_journal(document):
        raise LegacyFormat(path, "1.0", str(JOURNAL_FORMAT))
    if document.get("format") != JOURNAL_FORMAT or document.get("state") != JOURNAL_STATE:
        found = f"{document.get('format', 1)}, state {document.get('state')}"
        raise UnsupportedFormat(path, found[:80], f"{JOURNAL_FORMAT}, state {JOURNAL_STATE}")
    if not sealed:
        raise Corruption(path, "the checksum does not fit", _HINT)
    try:
        manifest = _image(document["manifest"])
        journal = Journal(
            operation=document["operation"],
            base_revision=document["baseRevision"],
            revision=document["revision"],
            images=tuple(_image(image) for image in document["images"]),
            manifest=manifest,
            deletes=tuple(tuple(deleted.split("/")) for deleted in document["deletes"]),
            base_digest=document.get("base", ""),
        )
        sound = (
            manifest.parts == (manifest_name,)
            and _may_write_all(journal, manifest_name)
            and all(_may_delete(parts, manifest_name) for parts in journal.deletes)
            and journal.revision > journal.base_revision >= 0
            and (not journal.base_digest or _DIGEST.fullmatch(journal.base_digest) is not None)
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Corruption(path, "lacks a key or has one of the wrong type", _HINT) from None
    if not sound:
        raise Corruption(path, "names a file that no transaction touches", _HINT)
    return journal


_HINT: Final = "deermem check tells what the interrupted change was"


def _image_document(image: Image) -> dict[str, Any]:
    path = "/".join(image.parts)
    return {"path": path, "staged": image.staged, "sha256": image.digest, "text": image.text}


def _image(document: dict[str, Any]) -> Image:
    image = Image(
        tuple(document["path"].split("/")), document["staged"], document["sha256"], document["text"]
    )
    if not is_staged_name(image.staged) or not _DIGEST.fullmatch(image.digest):
        raise ValueError("no image")
    if not image.is_content(image.text.encode("utf-8")):
        raise ValueError("the text is another")
    return image


def _may_write_all(journal: Journal, manifest_name: str) -> bool:
    others = [image.parts for image in journal.images if not _may_write(image.parts, manifest_name)]
    return not others or (all(map(is_fact_place, others)) and _rolls_back(journal, manifest_name))


def _may_write(parts: Parts, manifest_name: str) -> bool:
    """Rolling a migration back writes the files of version 1 again."""
    return (
        parts == (FENCES,)
        or parse_fact_parts(parts) is not None
        or _is_legacy(parts, manifest_name)
        or is_safety_copy(parts)
    )


def _rolls_back(journal: Journal, manifest_name: str) -> bool:
    """Tells whether files of version 1 come back, and so files of facts where they had lain."""
    return any(_is_legacy(image.parts, manifest_name) for image in journal.images) or is_legacy_text(
        journal.manifest.text.encode("utf-8")
    )


def _may_delete(parts: Parts, manifest_name: str) -> bool:
    """A clear also removes a fact file in the wrong shard, a migration its sources, a rollback backups."""
    source = (*parts[:-1], parts[-1].removesuffix(BACKUP_SUFFIX))
    return (
        is_agent_file(parts)
        or _is_legacy(source, manifest_name)
        or (source != parts and source == (manifest_name,))
        or is_safety_copy(parts)
        or is_fact_place(parts)
    )


def _is_legacy(parts: Parts, manifest_name: str) -> bool:
    agent = None if len(parts) != 3 else stored_agent_name(parts[1])
    return agent is not None and parts == legacy_parts(agent, manifest_name)
