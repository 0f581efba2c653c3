"""The summaries of a version-1 document, and its keys that nobody knows.

A section is `{"summary": "…", "updatedAt": "…"}`; a string alone is a summary, and null is an empty one.
Sections and keys that the store does not know are kept, as in `memory.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.format.legacy_document import Refusal
from deermem.format.legacy_json import OddNumber, entry_text, kept_json, shown, verbatim
from deermem.format.legacy_values import Remainder, read_moment
from deermem.model.rules import check_utf8
from deermem.model.summaries import (
    EMPTY_SECTION,
    MAX_SUMMARY_BYTES,
    SECTIONS,
    Section,
    SectionKey,
    Summaries,
)

_KNOWN: Final = ("summary", "updatedAt")


def read_legacy_summaries(document: Mapping[str, Any], refusals: list[Refusal]) -> Summaries:
    """Returns all sections; what cannot be one is added to the refusals."""
    sections: dict[SectionKey, Section] = {}
    for group in SECTIONS:
        children = document.get(group)
        if isinstance(children, dict):
            for name, value in children.items():
                if value is not None:
                    place = f"{group}.{shown(name)}"
                    try:
                        check_utf8("", name)
                        sections[group, name] = _read_section(value, place, refusals)
                    except InvalidInputError as error:
                        refusals.append(Refusal(place, error.field, error.reason, entry_text(name, value)))
        elif children is not None:
            refusals.append(Refusal(group, "", "is not an object", verbatim(children)))
    return Summaries.of(sections)


def _read_section(value: Any, place: str, refusals: list[Refusal]) -> Section:
    if isinstance(value, str) and not isinstance(value, OddNumber):
        value = {"summary": value}
    if not isinstance(value, dict):
        raise InvalidInputError("", "is neither an object nor a string")
    summary = value.get("summary")
    if summary is None:
        summary = ""
    if not isinstance(summary, str) or isinstance(summary, OddNumber):
        raise InvalidInputError("summary", "must be a string")
    if check_utf8("summary", summary) > MAX_SUMMARY_BYTES:
        raise InvalidInputError("summary", f"is larger than {MAX_SUMMARY_BYTES:,} bytes")
    rest = Remainder(set(value))
    updated_at = read_moment("updatedAt", value.get("updatedAt"), rest)
    for key, item in value.items():
        if key not in _KNOWN:
            try:
                rest.keep(key, item)
            except InvalidInputError as error:
                where = f"{place}.{shown(key)}"
                refusals.append(Refusal(where, "", error.reason, entry_text(key, item)))
    return Section(summary, updated_at or "", _extra(rest))


def _extra(rest: Remainder) -> str:
    text = ",".join([f"{kept_json('', kept.key)}:{kept.json}" for kept in rest.fields])
    if len(text) > MAX_SUMMARY_BYTES - 2:
        raise InvalidInputError("", f"has more than {MAX_SUMMARY_BYTES:,} characters of unknown keys")
    return f"{{{text}}}" if text else ""


def without_unknown_sections(summaries: Summaries, refusals: list[Refusal]) -> Summaries:
    """Returns the six summaries alone; all else in them is added to the refusals."""
    sections: dict[SectionKey, Section] = {}
    for (group, name), section in summaries.sections.items():
        known = name in SECTIONS[group]
        if known:
            sections[group, name] = Section(section.summary, section.updated_at)
        if section.extra or not (known or section == EMPTY_SECTION):
            whole = {"summary": section.summary, "updatedAt": section.updated_at}
            text = section.extra if known else verbatim({name: [whole, section.extra]})
            refusals.append(Refusal(f"{group}.{shown(name)}", "", "is too much for memory.json", text))
    return Summaries.of(sections)
