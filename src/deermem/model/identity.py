"""Who a memory belongs to: user, agent and fact ids, parsed once and trusted afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final, NewType

from deermem.errors import InvalidInputError

AgentName = NewType("AgentName", str)
FactId = NewType("FactId", str)

DEFAULT_AGENT: Final = AgentName("__default__")

MAX_USER_ID: Final = 200
_MAX_BUCKET_NAME: Final = MAX_USER_ID + 17
MAX_AGENT_NAME: Final = 64
MAX_FACT_ID: Final = 128

_SAFE_USER_ID = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_AGENT_NAME = re.compile(r"[A-Za-z0-9-]+")
_STORED_AGENT_NAME = re.compile(rf"[a-z0-9-]{{1,{MAX_AGENT_NAME}}}")
_FACT_ID = re.compile(r"[A-Za-z0-9_-]+")
_NOTE = "readme"
_ENCODED = re.compile(r"[A-Za-z0-9_-]*-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class UserId:
    """Names a user by the raw id that the caller knows.

    `raw` is `None` for the one user of a store without users, whose bucket is the storage root.
    """

    raw: str | None
    bucket: str | None

    def __post_init__(self) -> None:
        if (self.raw is None) != (self.bucket is None) or not (
            self.bucket is None or (isinstance(self.bucket, str) and is_bucket_name(self.bucket))
        ):
            raise InvalidInputError("user_id", "has no valid bucket; use UserId.parse")

    @classmethod
    def parse(cls, raw: str | None) -> UserId:
        """Checks a raw user id and derives its bucket name.

        Raises:
            InvalidInputError: The id is empty, too long, or not text that UTF-8 can hold.
        """
        return _parsed(raw) if isinstance(raw, str) else cls(raw, None if raw is None else safe_user_id(raw))

    def __str__(self) -> str:
        return "(no user)" if self.raw is None else self.raw


# To parse a name takes a fifth of what a cached read does, and most calls are of users that were just there.
@lru_cache(maxsize=1_024)
def _parsed(raw: str) -> UserId:
    return UserId(raw, safe_user_id(raw))


@dataclass(frozen=True, slots=True)
class Scope:
    """Names the place where facts live: one agent of one user."""

    user: UserId
    agent: AgentName = DEFAULT_AGENT

    def __post_init__(self) -> None:
        check_stored_agent_name(self.agent)

    @classmethod
    def of(cls, user_id: str | None, agent_name: str | None = None) -> Scope:
        """Checks both names; `agent_name=None` means the reserved default agent.

        Raises:
            InvalidInputError: Either name breaks its rule.
        """
        return cls(UserId.parse(user_id), parse_agent_name(agent_name))

    def __str__(self) -> str:
        return f"{self.user}/{self.agent}"


def safe_user_id(raw: str) -> str:
    """Returns the bucket name of a raw user id.

    An id of letters, digits, `_` and `-` is its own bucket name. In any other id each other
    character becomes `-`, and `-` with the first 16 hex digits of the SHA-256 of the raw id is
    added, so that `a@b.c` and `a-b-c` stay apart. What this returns for an id is its own bucket name.
    """
    if not isinstance(raw, str) or not raw:
        raise InvalidInputError("user_id", "must be a non-empty string")
    if len(raw) > MAX_USER_ID and not is_bucket_name(raw):
        raise InvalidInputError("user_id", f"is longer than {MAX_USER_ID} characters")
    if _SAFE_USER_ID.fullmatch(raw):
        return raw
    try:
        digest = sha256(raw.encode("utf-8")).hexdigest()[:16]
    except UnicodeEncodeError:
        raise InvalidInputError("user_id", "contains a lone surrogate") from None
    return f"{_UNSAFE_CHARACTER.sub('-', raw)}-{digest}"


def is_bucket_name(name: str) -> bool:
    """Tells whether `safe_user_id` could have returned this name."""
    if len(name) > MAX_USER_ID:
        return len(name) <= _MAX_BUCKET_NAME and looks_encoded(name)
    return _SAFE_USER_ID.fullmatch(name) is not None


def looks_encoded(raw: str) -> bool:
    """Tells whether an id has the form that `safe_user_id` gives to an id it had to change."""
    return _ENCODED.fullmatch(raw) is not None


def parse_agent_name(name: str | None) -> AgentName:
    """Returns the canonical agent name: lower case, or the reserved default for `None`.

    Raises:
        InvalidInputError: The name is not 1 to 64 of `[A-Za-z0-9-]`.
    """
    if name is None:
        return DEFAULT_AGENT
    if not isinstance(name, str) or not _AGENT_NAME.fullmatch(name):
        raise InvalidInputError("agent_name", "must consist of letters, digits and '-'")
    if len(name) > MAX_AGENT_NAME:
        raise InvalidInputError("agent_name", f"is longer than {MAX_AGENT_NAME} characters")
    return AgentName(name.lower())


def stored_agent_name(directory: str) -> AgentName | None:
    """Returns the agent whose directory has this name, or `None` if no agent's has."""
    if directory == DEFAULT_AGENT:
        return DEFAULT_AGENT
    return AgentName(directory) if _STORED_AGENT_NAME.fullmatch(directory) else None


def check_stored_agent_name(agent: AgentName) -> None:
    """Makes sure that an agent name is canonical, so that it may name a directory.

    Raises:
        InvalidInputError: It is not.
    """
    if not isinstance(agent, str) or stored_agent_name(agent) is None:
        raise InvalidInputError("agent_name", "is not canonical; use parse_agent_name")


def parse_fact_id(value: str) -> FactId:
    """Checks a fact id.

    Raises:
        InvalidInputError: The id is not 1 to 128 of `[A-Za-z0-9_-]`, or would name a `README.md`.
    """
    if not is_fact_id(value):
        reason = "must consist of letters, digits, '_' and '-'"
        if isinstance(value, str) and len(value) > MAX_FACT_ID:
            reason = f"is longer than {MAX_FACT_ID} characters"
        elif isinstance(value, str) and value.lower() == _NOTE:
            reason = "is the name of a note about the files, which is never a fact"
        raise InvalidInputError("id", reason)
    return FactId(value)


def is_fact_id(value: object) -> bool:
    """Tells whether a value could be a fact id."""
    return (
        isinstance(value, str)
        and len(value) <= MAX_FACT_ID
        and _FACT_ID.fullmatch(value) is not None
        and value.lower() != _NOTE
    )
