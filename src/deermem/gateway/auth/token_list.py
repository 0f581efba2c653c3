"""Tokens and the list of their hashes: what the file says, without touching it.

A token is `deermem_`, its public id of 16 hex digits, `_`, and 64 hex digits of secret. The list knows it by
its id and has the SHA-256 of the whole token, which 256 random bits make enough: there is nothing to guess.

    {
      "version": 1,
      "tokens": [
        {
          "id": "0123456789abcdef",
          "sha256": "<64 hex digits>",
          "user": "alice@example.com",
          "role": "user",
          "created": "2026-01-31T12:00:00Z",
          "note": "laptop"
        }
      ]
    }
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from deermem.errors import Corruption, InvalidInputError
from deermem.format.strict_json import load_object
from deermem.gateway.auth.caller import Role
from deermem.gateway.auth.subjects import user_id_of

VERSION: Final = 1
MAX_NOTE: Final = 200

_TOKEN: Final = re.compile(r"deermem_([0-9a-f]{16})_[0-9a-f]{64}")
_ID: Final = re.compile(r"[0-9a-f]{16}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_KEYS: Final = frozenset(["id", "sha256", "user", "role", "created", "note"])
# What the hash of a token with an unknown id is compared with; no token has it.
_NOBODY: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """Is what is known of a token, which is not the token itself."""

    id: str
    sha256: str
    user: str
    role: Role
    created: str
    note: str = ""


def token_of(token_id: str, secret: str) -> str:
    """Returns a token.

    Args:
        token_id: 16 hex digits.
        secret: 64 hex digits.
    """
    return f"deermem_{token_id}_{secret}"


def hash_of(token: str) -> str:
    """Returns what the list keeps of a token."""
    return sha256(token.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TokenList:
    """Is every token that counts, by its id."""

    entries: Mapping[str, TokenEntry] = field(default_factory=dict)

    def find(
        self, token: str, *, same: Callable[[str, str], bool] = hmac.compare_digest
    ) -> TokenEntry | None:
        """Returns the entry of a token; `None` if it is not in the list.

        Args:
            token: What a client sent.
            same: Compares two hashes in a time that does not depend on where they differ.
        """
        match = _TOKEN.fullmatch(token)
        entry = self.entries.get(match[1]) if match else None
        is_same = same(hash_of(token), entry.sha256 if entry else _NOBODY)
        return entry if is_same else None

    def with_entry(self, entry: TokenEntry) -> TokenList:
        """Returns the list with one token more."""
        return TokenList({**self.entries, entry.id: entry})

    def without(self, token_ids: frozenset[str]) -> TokenList:
        """Returns the list without some tokens."""
        return TokenList({key: entry for key, entry in self.entries.items() if key not in token_ids})

    def dump(self) -> bytes:
        """Returns the file's bytes."""
        document = {"version": VERSION, "tokens": [asdict(entry) for entry in self.entries.values()]}
        return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode()


def parse_tokens(data: bytes | None, path: str) -> TokenList:
    """Reads the file's bytes; a missing file is an empty list.

    Raises:
        InvalidInputError: The bytes are not such a list. What this release does not know is refused,
            since it may have been meant to restrict a token.
    """
    if data is None:
        return TokenList()
    try:
        document = load_object(data, path)
    except Corruption as error:
        raise InvalidInputError(path, error.reason) from None
    if document.get("version") != VERSION:
        raise InvalidInputError(path, f"is not of version {VERSION}")
    tokens = document.get("tokens")
    if not isinstance(tokens, list) or document.keys() != {"version", "tokens"}:
        raise InvalidInputError(path, "must have a version and a list of tokens, and nothing else")
    entries: dict[str, TokenEntry] = {}
    for position, values in enumerate(tokens, start=1):
        entry = _entry(values, f"{path}, token {position}")
        if entry.id in entries:
            raise InvalidInputError(path, f"has the token {entry.id} twice")
        entries[entry.id] = entry
    return TokenList(MappingProxyType(entries))


def _entry(values: Any, where: str) -> TokenEntry:
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise InvalidInputError(where, "must be an object of texts")
    if values.keys() - {"note"} != _KEYS - {"note"}:
        raise InvalidInputError(where, f"must have {', '.join(sorted(_KEYS))}, and nothing else")
    if not _ID.fullmatch(values["id"]) or not _HASH.fullmatch(values["sha256"]):
        raise InvalidInputError(where, "must have an id of 16 and a sha256 of 64 hex digits")
    if values["role"] not in list(Role):
        raise InvalidInputError(where, f"must have a role of {', '.join(Role)}")
    try:
        user_id_of(values["user"])
    except InvalidInputError as error:
        raise InvalidInputError(where, f"has a user that {error.reason}") from None
    return TokenEntry(**{**values, "role": Role(values["role"])})
