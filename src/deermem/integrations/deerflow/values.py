"""DeerFlow's dictionaries to values of the store, and back.

Pure. What differs from the historical document: `source` is `{type, threadId}`, and `scope` always names the
user as the caller does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from deermem.compat import fact_document, manifest_document, read_summaries
from deermem.errors import InvalidInputError
from deermem.model.fact import CONVERSATION, PLAIN_SOURCES, Fact
from deermem.model.identity import DEFAULT_AGENT, Scope, UserId, parse_agent_name
from deermem.model.manifest import Manifest
from deermem.model.rules import derive_title
from deermem.model.summaries import SECTIONS, SummaryPatch
from deermem.model.timestamps import normalise_timestamp

Document = dict[str, Any]

_TIMES: Final = frozenset(["createdAt", "consolidatedAt", "lastConfirmedAt"])
_SAID_OR_NOT: Final = _TIMES | {"category", "categoryExtension", "sourceError"}

# How DeerFlow's names of fields are called in filters of the store.
_FILTER_NAMES: Final = {"createdAt": "created_at", "updatedAt": "updated_at"}


def scope_of(user_id: str | None, agent_name: str | None, operation: str) -> Scope:
    """Returns the scope that DeerFlow means; it calls the default agent by the name of its bucket.

    Raises:
        InvalidInputError: There is no agent, or a name breaks its rule.
    """
    if agent_name is None:
        raise InvalidInputError("agent_name", f"is required to {operation}")
    agent = DEFAULT_AGENT if agent_name == DEFAULT_AGENT else parse_agent_name(agent_name)
    return Scope(UserId.parse(user_id), agent)


def fact_dictionary(fact: Fact, user_id: str | None) -> Document:
    """Returns a fact as DeerFlow's storages hand it out."""
    source = fact.source
    return {
        **fact_document(fact),
        "source": {
            "type": source.type,
            "threadId": source.thread_id,
            **{extra.key: json.loads(extra.json) for extra in source.extra},
        },
        "scope": {"userId": user_id, "agentName": fact.scope.agent},
    }


def document_of(manifest: Manifest, facts: Iterable[Fact], user_id: str | None) -> Document:
    """Returns a whole document."""
    return {**manifest_document(manifest), "facts": [fact_dictionary(fact, user_id) for fact in facts]}


def storable(fact: Any) -> Any:
    """Returns a fact without values that DeerFlow takes and the store does not.

    A model that answers with a blank category, or an import without time stamps, must not cost the other
    facts of a change. A source of a type that the store does not have is kept by its public form, in which
    DeerFlow itself would take it for a thread.
    """
    if not isinstance(fact, Mapping):
        return fact
    kept = {key: value for key, value in fact.items() if not (key in _SAID_OR_NOT and _is_blank(key, value))}
    source = fact.get("source")
    if isinstance(source, Mapping) and source.get("type") not in (None, CONVERSATION, *PLAIN_SOURCES):
        kept["source"] = source.get("threadId") or source.get("type")
    if isinstance(fact.get("topics"), list):
        kept["topics"] = [topic for topic in fact["topics"] if topic != ""]
    if isinstance(fact.get("title"), str):
        kept["title"] = derive_title(fact["title"]) if fact["title"].strip() else None
    return kept


def _is_blank(key: str, value: Any) -> bool:
    """Tells whether a value says nothing: white space, or a time stamp that is none."""
    if not isinstance(value, str):
        return False
    if not value.strip():
        return True
    try:
        return key in _TIMES and not normalise_timestamp(value, key)
    except InvalidInputError:
        return True


def read_patch(given: Any, manifest: Manifest) -> SummaryPatch | None:
    """Reads summaries as a patch of those that are there; `None` for no change.

    DeerFlow hands back whole groups, with all that was in the file. What is as it is stored is no change,
    whatever it is; other sections than the six are not written.

    Raises:
        InvalidInputError: A section that would change has a wrong shape.
    """
    if given is None:
        return None
    stored = manifest_document(manifest)
    changed: dict[str, dict[str, Any]] = {}
    for group, names in SECTIONS.items():
        children = _group(given, group)
        changed[group] = {
            name: children[name]
            for name in names
            if name in children and children[name] != stored[group].get(name)
        }
    for group, children in changed.items():
        changed[group] = {name: _with_known_time(child) for name, child in children.items()}
    sections = read_summaries(changed).sections
    patch = {key: sections[key] for key in sections if key[1] in changed[key[0]]}
    return SummaryPatch(patch) if patch else None


def _with_known_time(section: Any) -> Any:
    """Returns a section without a time stamp that is none; it then gets the time of the commit."""
    if not isinstance(section, Mapping):
        return section
    try:
        normalise_timestamp(section.get("updatedAt") or "", "updatedAt")
    except InvalidInputError:
        return {**section, "updatedAt": ""}
    return section


def _group(given: Any, group: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInputError("summaries", "must be an object")
    children = given.get(group)
    if children is None:
        return {}
    if not isinstance(children, Mapping):
        raise InvalidInputError(f"summaries.{group}", "must be an object")
    return children


def store_filters(filters: Mapping[str, Any] | None) -> dict[str, object]:
    """Returns filters with the names that the store has for fields."""
    return {_FILTER_NAMES.get(name, name): wanted for name, wanted in (filters or {}).items()}


def passes(fact: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Tells whether a fact has exactly these values."""
    return all(name in fact and fact[name] == wanted for name, wanted in filters.items())
