"""Summaries: six short texts about a user, shared by all agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from deermem.errors import InvalidInputError
from deermem.model.rules import check_utf8
from deermem.model.timestamps import normalise_timestamp, parse_timestamp

USER_SECTIONS: Final = ("workContext", "personalContext", "topOfMind")
HISTORY_SECTIONS: Final = ("recentMonths", "earlierContext", "longTermBackground")
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"user": USER_SECTIONS, "history": HISTORY_SECTIONS}
)
MAX_SUMMARY_BYTES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Section:
    """Is one summary; `extra` keeps keys that the store does not know, as JSON text."""

    summary: str = ""
    updated_at: str = ""
    extra: str = ""


EMPTY_SECTION: Final = Section()

SectionKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Summaries:
    """Holds the sections by `(group, name)`, for example `("user", "workContext")`.

    The six known sections are always present. Sections that the store does not know follow them.
    """

    sections: Mapping[SectionKey, Section]

    @classmethod
    def of(cls, sections: Mapping[SectionKey, Section]) -> Summaries:
        """Fills the missing ones of the six sections with empty ones."""
        known = {key: sections.get(key, EMPTY_SECTION) for key in SECTION_KEYS}
        return cls(MappingProxyType({**known, **sections}))

    def merged(self, patch: SummaryPatch) -> Summaries:
        """Replaces the sections that the patch names; all others stay as they are."""
        return Summaries.of({**self.sections, **patch.sections})

    def __getitem__(self, key: SectionKey) -> Section:
        return self.sections[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Summaries.of, (dict(self.sections),))


SECTION_KEYS: Final = tuple((group, name) for group, names in SECTIONS.items() for name in names)
EMPTY_SUMMARIES: Final = Summaries.of({})


@dataclass(frozen=True, slots=True)
class SummaryPatch:
    """Names the sections to replace (plan section 8: a patch at the child-key level).

    An empty `updated_at` becomes the time of the commit.

    Raises:
        InvalidInputError: Names the section that is unknown or breaks a rule.
    """

    sections: Mapping[SectionKey, Section] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for key, section in self.sections.items():
            if key not in SECTION_KEYS:
                raise InvalidInputError("summaries", f"{key!r} is not one of {SECTION_KEYS}")
            _check_section(f"summaries.{'.'.join(key)}", section)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_patch_of, (dict(self.sections),))

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> SummaryPatch:
        """Reads `{"user": {"workContext": {"summary": ..., "updatedAt": ...}}, "history": {...}}`.

        Raises:
            InvalidInputError: Names the key that is unknown or has a value of the wrong shape.
        """
        sections: dict[SectionKey, Section] = {}
        for group, children in _mapping("summaries", document).items():
            if group not in SECTIONS:
                raise InvalidInputError(f"summaries.{group}", "is not one of user, history")
            for name, value in _mapping(f"summaries.{group}", children).items():
                if name not in SECTIONS[group]:
                    raise InvalidInputError(
                        f"summaries.{group}.{name}", f"is not one of {', '.join(SECTIONS[group])}"
                    )
                sections[group, name] = _parse_section(f"summaries.{group}.{name}", value)
        return cls(MappingProxyType(sections))

    @classmethod
    def replace_all(cls, summaries: Summaries) -> SummaryPatch:
        """Returns the patch that sets all six sections to those of `summaries`."""
        return cls(MappingProxyType({key: summaries[key] for key in SECTION_KEYS}))

    def stamped(self, now: str) -> SummaryPatch:
        """Returns the patch with `now` wherever a non-empty summary has no time stamp."""
        return SummaryPatch(
            MappingProxyType(
                {
                    key: Section(section.summary, now, section.extra)
                    if section.summary and not section.updated_at
                    else section
                    for key, section in self.sections.items()
                }
            )
        )


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(name, "must be an object")
    return value


def _parse_section(name: str, value: Any) -> Section:
    if isinstance(value, str):
        value = {"summary": value}
    value = _mapping(name, value)
    unknown = set(value) - {"summary", "updatedAt"}
    if unknown:
        raise InvalidInputError(f"{name}.{min(map(str, unknown))}", "is not one of summary, updatedAt")
    summary, stamp = ("" if value.get(key) is None else value[key] for key in ("summary", "updatedAt"))
    return Section(summary, "" if stamp == "" else normalise_timestamp(stamp, f"{name}.updatedAt"))


def _check_section(name: str, section: Any) -> None:
    if not isinstance(section, Section):
        raise InvalidInputError(name, "must be a section")
    if not isinstance(section.summary, str):
        raise InvalidInputError(f"{name}.summary", "must be a string")
    if check_utf8(f"{name}.summary", section.summary) > MAX_SUMMARY_BYTES:
        raise InvalidInputError(f"{name}.summary", f"is larger than {MAX_SUMMARY_BYTES:,} bytes")
    if section.updated_at != "":
        parse_timestamp(section.updated_at, f"{name}.updatedAt")
    if section.extra:
        _check_extra(f"{name}.extra", section.extra)


def _check_extra(name: str, extra: str) -> None:
    try:
        keys = json.loads(extra) if len(extra) <= MAX_SUMMARY_BYTES else None
    except (ValueError, RecursionError, TypeError):
        keys = None
    if not isinstance(keys, dict) or not keys.keys().isdisjoint(("summary", "updatedAt")):
        raise InvalidInputError(name, "must be a JSON object without summary and updatedAt")
    check_utf8(name, extra)


def _patch_of(sections: dict[SectionKey, Section]) -> SummaryPatch:
    return SummaryPatch(MappingProxyType(sections))
