"""YAML as the store reads it: PyYAML's events, never its values.

The tree keeps each scalar's text, so that a field that wants text gets `0123`, `no` or a date as it
stands in the file; a field that wants a value asks for the YAML 1.2 core schema. Whatever could cost
more time or memory than the text is long, or could mean two things, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from deermem.format.yaml_nodes import Mapping, Node, Scalar, Sequence, UnreadableYaml
from deermem.format.yaml_text import MAX_DEPTH, MAX_YAML

MAX_NODES: Final = 10_000
MAX_ALIASES: Final = 32

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_STANDARD: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(["str", "null", "bool", "int", "float", "timestamp"])
# YAML 1.1 takes these for line breaks, YAML 1.2 for text.
_FORMER_BREAKS = "\x85\u2028\u2029"
_PRIVATE_USE = range(0xE000, 0xF900)


@dataclass(slots=True)
class FrontMatter:
    """Is a mapping at the top of a document.

    `sources` has the entries' source text, comments above them included, where it could stand alone.
    """

    entries: dict[str, Node]
    sources: dict[str, str]


def parse_front_matter(text: str) -> FrontMatter:
    """Reads one YAML document that is a mapping.

    Args:
        text: The document without fences; line breaks are line feeds.

    Raises:
        UnreadableYaml: Names the line and what is wrong with it.
    """
    if len(text) > MAX_YAML:
        raise UnreadableYaml(f"the front matter has more than {MAX_YAML:,} characters")
    stand_ins = _stand_ins(text)
    builder = _Builder({ord(there): here for here, there in stand_ins.items()})
    for event in _events(text.translate({ord(here): there for here, there in stand_ins.items()})):
        builder.add(event)
    if builder.root is None:
        raise UnreadableYaml("the front matter is empty")
    return FrontMatter(builder.root.entries, builder.sources(text))


def _stand_ins(text: str) -> dict[str, str]:
    """Returns, for each former line break in a text, a character that occurs in it in no form."""
    present = [character for character in _FORMER_BREAKS if character in text]
    if not present:
        return {}
    used, lower = set(text), text.lower()
    free = (chr(code) for code in _PRIVATE_USE if chr(code) not in used and f"{code:x}" not in lower)
    found = dict(zip(present, free, strict=False))
    if len(found) < len(present):
        raise UnreadableYaml("the front matter uses all private characters")
    return found


def _events(text: str) -> Iterator[Event]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except UnreadableYaml:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "syntax error"
        raise UnreadableYaml(f"not YAML: {reason[:100]}", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
        reason = getattr(error, "reason", None) or "a character or escape that YAML does not allow"
        raise UnreadableYaml(f"not YAML: {reason}", line) from None


class _Builder:
    """Builds the tree from events, without recursion."""

    def __init__(self, originals: dict[int, str]) -> None:
        self.root: Mapping | None = None
        self._originals = originals
        self._open: list[Sequence | Mapping] = []
        self._anchors: dict[str, Node] = {}
        self._nodes = 0
        self._aliases = 0
        self._starts: list[tuple[str, int, int]] = []  # key, where it begins, where the value before ended
        self._value_end = 0
        self._quotable = True

    def add(self, event: Event) -> None:
        """Takes the next event of the document."""
        begin, end = cast(yaml.Mark, event.start_mark), cast(yaml.Mark, event.end_mark)
        if isinstance(event, NodeEvent):
            self._add_node(event, begin)
        elif isinstance(event, CollectionEndEvent):
            self._close()
        elif isinstance(event, DocumentStartEvent | DocumentEndEvent) and event.explicit:
            raise UnreadableYaml("the front matter has more than one YAML document", begin.line + 1)
        if begin.index < end.index:
            # Events without width do not count: a block collection "ends" where the next key begins,
            # behind comments that belong to that key.
            self._value_end = end.index

    def _add_node(self, event: NodeEvent, begin: yaml.Mark) -> None:
        line = begin.line + 1
        self._quotable &= event.anchor is None
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise UnreadableYaml(f"the front matter has more than {MAX_NODES:,} keys and values", line)
        node = self._node(event, line)
        if self._open:
            self._attach(node, event, begin)
        elif isinstance(node, Mapping):
            self.root = node
            self._quotable &= not getattr(event, "flow_style", False)
        else:
            raise UnreadableYaml("the front matter is not a mapping", line)
        if isinstance(node, Sequence | Mapping) and not isinstance(event, AliasEvent):
            if len(self._open) >= MAX_DEPTH:
                raise UnreadableYaml(f"nested more than {MAX_DEPTH} levels deep", line)
            self._open.append(node)
        elif event.anchor is not None:
            self._anchors[event.anchor] = node

    def _node(self, event: NodeEvent, line: int) -> Node:
        if isinstance(event, ScalarEvent):
            return self._scalar(event, line)
        if isinstance(event, SequenceStartEvent):
            _check_tag(event.tag, "seq", line)
            return Sequence(line, event.anchor)
        if isinstance(event, MappingStartEvent):
            _check_tag(event.tag, "map", line)
            return Mapping(line, event.anchor)
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            raise UnreadableYaml(f"more than {MAX_ALIASES} aliases", line)
        if event.anchor not in self._anchors:
            raise UnreadableYaml("an alias has no anchor before it", line)
        return self._anchors[event.anchor]

    def _scalar(self, event: ScalarEvent, line: int) -> Scalar:
        text = event.value.translate(self._originals) if self._originals else event.value
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise UnreadableYaml("a lone surrogate", line)
        tag = event.tag or ("str" if event.style else "")
        if event.tag:
            tag = "str" if tag == "!" else tag.removeprefix(_STANDARD)
            if tag == event.tag or tag not in _SCALAR_TAGS:
                raise UnreadableYaml(f"the tag {_shown(event.tag)} is not supported", line)
            tag = "str" if tag == "timestamp" else tag
        return Scalar(text, tag, line, len(text) + 1)

    def _attach(self, node: Node, event: NodeEvent, begin: yaml.Mark) -> None:
        parent, line = self._open[-1], begin.line + 1
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif parent.key is None:
            self._begin_entry(parent, node, begin)
        else:
            parent.entries[parent.key] = node
            parent.key = None
        if isinstance(event, AliasEvent) or isinstance(node, Scalar):
            self._weigh(parent, node, line)

    def _begin_entry(self, mapping: Mapping, key: Node, begin: yaml.Mark) -> None:
        if not isinstance(key, Scalar):
            raise UnreadableYaml("a key is a list or a mapping", begin.line + 1)
        if key.text in mapping.entries:
            raise UnreadableYaml(f"the key {_shown(key.text)} appears twice", begin.line + 1)
        mapping.key = key.text
        if key.text == "<<" and not key.tag:
            self._quotable = False  # text in YAML 1.2, but a YAML 1.1 reader would merge
        if len(self._open) == 1:
            self._starts.append((key.text, begin.index, self._value_end))
            self._quotable &= begin.column == 0

    def _weigh(self, parent: Sequence | Mapping, node: Node, line: int) -> None:
        parent.weight += node.weight
        if parent.weight > 2 * MAX_YAML:
            raise UnreadableYaml("aliases repeat too much", line)

    def _close(self) -> None:
        node = self._open.pop()
        if node.anchor is not None:
            self._anchors[node.anchor] = node
        if self._open:
            self._weigh(self._open[-1], node, node.line)

    def sources(self, text: str) -> dict[str, str]:
        """Returns the source text of each top-level entry, nothing where it could not stand alone."""
        if not self._quotable:
            return {}
        begins = [_with_comments(text, start, earliest) for _, start, earliest in self._starts]
        ends = [*begins[1:], len(text)]
        keys = [key for key, _, _ in self._starts]
        return {key: text[begin:end] for key, begin, end in zip(keys, begins, ends, strict=True)}


def _with_comments(text: str, start: int, earliest: int) -> int:
    """Moves the start of an entry up to the first of the comment lines right above it."""
    while start > earliest:
        above = text.rfind("\n", 0, start - 1) + 1
        if above < earliest or not text.startswith("#", above):
            break
        start = above
    return start


def _check_tag(tag: str | None, kind: str, line: int) -> None:
    if tag not in (None, "!", _STANDARD + kind):
        raise UnreadableYaml(f"the tag {_shown(tag or '')} is not supported", line)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
