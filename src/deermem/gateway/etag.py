"""Entity tags: what a client has seen of a document or a fact (RFC 9110, section 8.8).

    "m12-9f86d081884c7d65"    a document at manifest revision 12
    "f3-60303ae22b998861"     a fact at fact revision 3

The digits after the revision are of the SHA-256 of the body, so that two documents of one revision (of two
agents, or before and after an edit by hand) have two tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

DOCUMENT: Final = "m"
FACT: Final = "f"

_TAG: Final = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_TAGS: Final = re.compile(rf"\*|{_TAG.pattern}(?:[ \t]*,[ \t]*{_TAG.pattern})*")
# The same for readers of the OpenAPI document, in ASCII.
TAGS_PATTERN: Final = r'^(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*$'


def make_etag(kind: str, revision: int, body: bytes) -> str:
    """Returns the strong tag of a body."""
    return f'"{kind}{revision}-{sha256(body).hexdigest()[:16]}"'


def is_fresh(etag: str, if_none_match: Iterable[str]) -> bool:
    """Tells whether the client has this very representation already (weak comparison)."""
    header = ", ".join(if_none_match)
    if not header or header == etag:
        return bool(header)
    return header.strip() == "*" or any(f'"{tag}"' == etag for _, tag in _TAG.findall(header))


def are_tags(header: Iterable[str]) -> bool:
    """Tells whether a header is a list of entity tags, or `*`."""
    return _TAGS.fullmatch(", ".join(header).strip()) is not None


def is_current(etag: str, if_match: Iterable[str]) -> bool:
    """Tells whether a change may be made to what the client has seen (strong comparison).

    Without the header it may. What is no entity tag matches nothing.
    """
    values = list(if_match)
    if not values:
        return True
    header = ", ".join(values)
    return header.strip() == "*" or any(not weak and f'"{tag}"' == etag for weak, tag in _TAG.findall(header))
