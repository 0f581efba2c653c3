"""The tree that a YAML document is read into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from deermem.format.yaml_text import NULLS, core_value

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}


class UnreadableYaml(ValueError):
    """Says why text cannot be read; the format modules turn it into a corruption error."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line


@dataclass(slots=True)
class Scalar:
    """Is a scalar's text; `tag` is `""` for a plain one without a tag."""

    text: str
    tag: str
    line: int
    weight: int

    def value(self) -> str | int | float | bool | None:
        """Returns what the scalar means in the YAML 1.2 core schema."""
        if self.tag == "str":
            return self.text
        try:
            value = core_value(self.text)
        except ValueError as error:
            raise UnreadableYaml(str(error), self.line) from None
        if self.tag and type(value) not in _TYPES[self.tag]:
            raise UnreadableYaml(f"the value is no !!{self.tag}", self.line)
        return value

    def string(self) -> str | None:
        """Returns the text as it stands in the file, or `None` for a null."""
        return None if self.tag in ("", "null") and self.text in NULLS else self.text


@dataclass(slots=True)
class Sequence:
    """Is a list of nodes."""

    line: int
    anchor: str | None = None
    weight: int = 1
    items: list[Node] = field(default_factory=list)

    def value(self) -> list[Any]:
        """Returns the items' values."""
        return [item.value() for item in self.items]


@dataclass(slots=True)
class Mapping:
    """Is a mapping with scalar keys, which are their text."""

    line: int
    anchor: str | None = None
    weight: int = 1
    entries: dict[str, Node] = field(default_factory=dict)
    key: str | None = None

    def value(self) -> dict[str, Any]:
        """Returns the entries' values."""
        return {key: node.value() for key, node in self.entries.items()}


Node = Scalar | Sequence | Mapping
