"""Entries that front doors keep in the front matter of a fact: a small JSON object as one line of text.

    langgraph: "{'namespace':['notes'],'key':'tea','user':'alice','value':{'since':2019}}"

The quotation marks of the JSON are exchanged, ' for ", so that the text needs no escapes as a rule: the
fast reader of fact documents takes such a line, while a YAML mapping needs the full parser.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from deermem.format.strict_json import dump_compact
from deermem.model.fact import ExtraField, Fact

_EXCHANGED: Final = str.maketrans("'\"", "\"'")


def entry_field(key: str, entry: Mapping[str, Any]) -> ExtraField:
    """Returns the front-matter field of an entry."""
    return ExtraField(key, dump_compact(dump_compact(entry).translate(_EXCHANGED)))


def entry_of(fact: Fact, key: str) -> dict[str, Any] | None:
    """Returns a fact's entry as a new dictionary; `None` where it has none that can be read."""
    field = next((field for field in fact.extra if field.key == key), None)
    text = None if field is None else json.loads(field.json)
    if not isinstance(text, str):
        return None
    try:
        entry = json.loads(text.translate(_EXCHANGED))
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def with_entry(fact: Fact, key: str, field: ExtraField | None) -> tuple[ExtraField, ...]:
    """Returns a fact's unknown keys with another entry, or without one; the others stay as they are."""
    kept = {each.key: each for each in fact.extra}
    if field is None:
        kept.pop(key, None)
    else:
        kept[key] = field
    return tuple(kept.values())


def edges_of(text: str, content: str) -> dict[str, str]:
    """Returns what stands before and after a trimmed content in its text, where there is anything."""
    before, _, after = text.partition(content)
    return {name: quote(edge, safe="") for name, edge in (("before", before), ("after", after)) if edge}


def surrounded(entry: Mapping[str, Any], content: str) -> str:
    """Returns the text of which a content was trimmed."""
    return f"{_edge(entry, 'before')}{content}{_edge(entry, 'after')}"


def _edge(entry: Mapping[str, Any], name: str) -> str:
    edge = entry.get(name, "")
    return unquote(edge) if isinstance(edge, str) else ""
