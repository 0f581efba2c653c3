"""Which user and agent a namespace means, and which fact a key; no two of them mean the same.

A layout says what the first labels of every namespace are:

    layout = ("{user}",)                 ("alice", "notes", "2026")  is user alice, rest ("notes", "2026")
    layout = ("memories", "{user}")      ("memories", "alice")       is user alice, rest ()
    layout = ("{user}", "{agent}")       ("alice", "writer")         is agent writer of alice, rest ()

What a layout leaves over, the rest, is kept as data of the fact. Namespaces that do not fit a layout hold
nothing, and nothing can be put there.

A user's label is the user id, with `%2E` for `.`, which LangGraph allows in no label (and `%252E` for `%2E`).
An id that looks like the name of a bucket is encoded once more, as the gateway does with a subject, so that
nobody reads another's memory by the name of its directory. An agent's label is its canonical name, or
`__default__`. A key with rest `()` that can be a fact id is the fact id; any other key, and every key
below a rest, has the id `lg-` and the SHA-256 of rest and key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import EllipsisType
from typing import Final

from langgraph.store.base import GetOp, InvalidNamespaceError, validate_op_namespace

from deermem.errors import InvalidInputError
from deermem.format.layout import is_windows_device
from deermem.model.identity import (
    AgentName,
    FactId,
    Scope,
    UserId,
    is_fact_id,
    looks_encoded,
    parse_agent_name,
    stored_agent_name,
)
from deermem.model.rules import check_utf8

USER: Final = "{user}"
AGENT: Final = "{agent}"
MAX_ADDRESS_BYTES: Final = 4_000

_HASHED = re.compile(r"lg-[0-9a-f]{64}")
_ESCAPE = re.compile("%((?:25)*)2E")

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Is where a namespace's facts live: a scope, the user's label, and what the layout leaves over."""

    scope: Scope
    label: str
    rest: Labels


@dataclass(frozen=True, slots=True)
class Reach:
    """Is what a prefix reaches; `None` stands for every user or every agent."""

    user: UserId | None
    agent: AgentName | None
    label: str = ""
    rest: Labels = ()


class Layout:
    """Maps namespaces to places and back.

    Args:
        labels: What the first labels are: `"{user}"`, `"{agent}"`, or fixed text.
        user_id: The user of every namespace, for a layout without `"{user}"`; `None` is the one user of a
            store without users.
        agent_name: The agent of every namespace, for a layout without `"{agent}"`.

    Raises:
        InvalidInputError: The layout contradicts itself, or LangGraph allows no such namespace.
    """

    def __init__(
        self,
        labels: Sequence[str],
        user_id: str | EllipsisType | None = ...,
        agent_name: str | None = None,
    ) -> None:
        if isinstance(labels, str) or not all(isinstance(label, str) and label for label in labels):
            raise InvalidInputError("layout", "must be a sequence of non-empty labels")
        self.labels: Final = tuple(labels)
        _check_layout(self.labels)
        for label, given, name in (
            (USER, user_id is not ..., "user_id"),
            (AGENT, agent_name is not None, "agent_name"),
        ):
            if self.labels.count(label) > 1:
                raise InvalidInputError("layout", f"has {label} more than once")
            if label in self.labels and given:
                raise InvalidInputError(name, f"is given, and the layout has {label}")
        if USER not in self.labels and isinstance(user_id, EllipsisType):
            raise InvalidInputError("user_id", f"is required: the layout has no {USER}")
        self._user = None if isinstance(user_id, EllipsisType) else UserId.parse(user_id)
        self._agent = None if AGENT in self.labels else parse_agent_name(agent_name)

    def place(self, namespace: Labels) -> Place | None:
        """Returns where a namespace's facts live; `None` if it does not fit the layout.

        Raises:
            InvalidNamespaceError: A label cannot be a user or an agent.
        """
        if len(namespace) < len(self.labels):
            return None
        reach = self.reach(namespace)
        if reach is None or reach.user is None or reach.agent is None:
            return None
        return Place(Scope(reach.user, reach.agent), reach.label, reach.rest)

    def reach(self, prefix: Labels) -> Reach | None:
        """Returns what lies below a prefix; `None` if nothing can.

        Raises:
            InvalidNamespaceError: A label cannot be a user or an agent.
        """
        user, agent, user_label = self._user, self._agent, ""
        for wanted, label in zip(self.labels, prefix, strict=False):
            if wanted == USER:
                user, user_label = user_of(label), label
            elif wanted == AGENT:
                agent = _agent_of(label)
            elif wanted != label:
                return None
        return Reach(user, agent, user_label, prefix[len(self.labels) :])

    def everything(self) -> Reach:
        """Returns what the empty prefix reaches."""
        return Reach(self._user, self._agent)

    def namespace(self, user_label: str, agent: AgentName, rest: Labels) -> Labels:
        """Returns the namespace of facts: the inverse of `place`."""
        values = {USER: user_label, AGENT: str(agent)}
        return (*(values.get(label, label) for label in self.labels), *rest)


def _check_layout(labels: Labels) -> None:
    """Makes sure that LangGraph allows namespaces with the fixed labels of a layout."""
    check_utf8("layout", "".join(labels))
    try:
        validate_op_namespace(GetOp(labels, ""))
    except InvalidNamespaceError as error:
        raise InvalidInputError("layout", f"is no namespace: {error}") from None
    if labels[:1] == ("langgraph",):
        raise InvalidInputError("layout", "begins with 'langgraph', which LangGraph keeps for itself")


def user_of(label: str) -> UserId:
    """Returns the user that a label means.

    Raises:
        InvalidNamespaceError: The label cannot be a user.
    """
    user_id = _ESCAPE.sub(lambda match: f"%{match[1][2:]}2E" if match[1] else ".", label)
    if looks_encoded(user_id):
        user_id = f"{user_id}-{sha256(user_id.encode()).hexdigest()[:16]}"
    try:
        return UserId.parse(user_id)
    except InvalidInputError as error:
        raise InvalidNamespaceError(f"The label {label!r} cannot be a user: {error.reason}.") from error


def label_of(user_id: str) -> str:
    """Returns the label of a user id."""
    return _ESCAPE.sub(r"%25\g<1>2E", user_id).replace(".", "%2E")


def _agent_of(label: str) -> AgentName:
    agent = stored_agent_name(label)
    if agent is None:
        raise InvalidNamespaceError(
            f"The label {label!r} cannot be an agent: 1 to 64 of a-z, 0-9 and '-', or __default__."
        )
    return agent


def fact_id_of(rest: Labels, key: str) -> FactId:
    """Returns the id of the fact that a key means.

    Raises:
        InvalidInputError: The labels or the key are too long, or no text that UTF-8 can hold.
    """
    if not rest and _stands_for_itself(key):
        return FactId(key)
    address = json.dumps([*rest, key], ensure_ascii=False)
    if check_utf8("namespace and key", address) > MAX_ADDRESS_BYTES:
        raise InvalidInputError("namespace and key", f"are longer than {MAX_ADDRESS_BYTES:,} bytes")
    return FactId(f"lg-{sha256(address.encode()).hexdigest()}")


def candidates(rest: Labels, key: str) -> tuple[FactId, ...]:
    """Returns the ids under which the fact of a key may lie, the usual one first.

    A fact of another front door may have an id that a key would not get here.
    """
    usual = fact_id_of(rest, key)
    return (usual,) if rest or usual == key or not is_fact_id(key) else (usual, FactId(key))


def _stands_for_itself(key: str) -> bool:
    # On a disk that ignores case, two keys that differ in nothing else need two names.
    return (
        is_fact_id(key) and key == key.lower() and not _HASHED.fullmatch(key) and not is_windows_device(key)
    )
