"""YAML as the store reads it: PyYAML's events, never its values.

The tree keeps each scalar's text, so that a field that wants text gets `0123`, `no` or a date as it
stands in the file; a field that wants a value asks for the YAML 1.2 core schema. Whatever could cost
more time or memory than the text is long, or could mean two things, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
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
    readable = text.translate({ord(here): there for here, there in stand_ins.items()}) if stand_ins else text
    for event in _events(readable):
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

    def add(self, event: Any) -> None:
        """Takes the next event of the document."""
        step = self._STEPS.get(type(event))
        if step is not None:
            step(self, event)
            end: int = event.end_mark.index
            if event.start_mark.index < end:
                # Events without width do not count: a block collection "ends" where the next key begins,
                # behind comments that belong to that key.
                self._value_end = end

    def _add_scalar(self, event: ScalarEvent) -> None:
        line = _line(event)
        text = event.value.translate(self._originals) if self._originals else event.value
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise UnreadableYaml("a lone surrogate", line)
        tag = event.tag or ("str" if event.style else "")
        if event.tag:
            tag = "str" if tag == "!" else tag.removeprefix(_STANDARD)
            if tag == event.tag or tag not in _SCALAR_TAGS:
                raise UnreadableYaml(f"the tag {_shown(event.tag)} is not supported", line)
            tag = "str" if tag == "timestamp" else tag
        scalar = Scalar(text, tag, line, len(text) + 1)
        self._attach(scalar, event)
        self._weigh(scalar, line)
        if event.anchor is not None:
            self._anchors[event.anchor] = scalar
            self._quotable = False

    def _add_alias(self, event: AliasEvent) -> None:
        line = _line(event)
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            raise UnreadableYaml(f"more than {MAX_ALIASES} aliases", line)
        node = self._anchors.get(event.anchor or "")
        if node is None:
            raise UnreadableYaml("an alias has no anchor before it", line)
        self._attach(node, event)
        self._weigh(node, line)

    def _open_sequence(self, event: SequenceStartEvent) -> None:
        _check_tag(event, "seq")
        self._open_collection(Sequence(_line(event), event.anchor), event)

    def _open_mapping(self, event: MappingStartEvent) -> None:
        _check_tag(event, "map")
        mapping = Mapping(_line(event), event.anchor)
        if not self._open:
            self.root = mapping
        self._open_collection(mapping, event)

    def _open_collection(self, node: Sequence | Mapping, event: NodeEvent) -> None:
        if node is not self.root:
            self._attach(node, event)
        if len(self._open) >= MAX_DEPTH:
            raise UnreadableYaml(f"nested more than {MAX_DEPTH} levels deep", node.line)
        if node.anchor is not None:
            self._quotable = False
        self._open.append(node)

    def _close(self, event: Event) -> None:
        node = self._open.pop()
        if node.anchor is not None:
            self._anchors[node.anchor] = node
        if self._open:
            self._weigh(node, _line(event))

    def _refuse_explicit(self, event: DocumentStartEvent | DocumentEndEvent) -> None:
        if event.explicit:
            raise UnreadableYaml("the front matter has more than one YAML document", _line(event))

    def _attach(self, node: Node, event: NodeEvent) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise UnreadableYaml(f"more than {MAX_NODES:,} keys and values", _line(event))
        if not self._open:
            raise UnreadableYaml("the front matter is not a mapping", _line(event))
        parent = self._open[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif parent.key is None:
            self._begin_entry(parent, node, event)
        else:
            parent.entries[parent.key] = node
            parent.key = None

    def _begin_entry(self, mapping: Mapping, key: Node, event: Any) -> None:
        if not isinstance(key, Scalar):
            raise UnreadableYaml("a key is a list or a mapping", _line(event))
        if key.text in mapping.entries:
            raise UnreadableYaml(f"the key {_shown(key.text)} appears twice", _line(event))
        mapping.key = key.text
        if key.text == "<<" and not key.tag:
            self._quotable = False  # text in YAML 1.2, but a YAML 1.1 reader would merge
        if len(self._open) == 1:
            self._starts.append((key.text, event.start_mark.index, self._value_end))
            if event.start_mark.column > 0:
                self._quotable = False

    def _weigh(self, node: Node, line: int) -> None:
        parent = self._open[-1]
        parent.weight += node.weight
        if parent.weight > 2 * MAX_YAML:
            raise UnreadableYaml("aliases repeat too much", line)

    _STEPS: ClassVar[dict[type[Event], Callable[[_Builder, Any], None]]] = {
        ScalarEvent: _add_scalar,
        AliasEvent: _add_alias,
        SequenceStartEvent: _open_sequence,
        MappingStartEvent: _open_mapping,
        SequenceEndEvent: _close,
        MappingEndEvent: _close,
        DocumentStartEvent: _refuse_explicit,
        DocumentEndEvent: _refuse_explicit,
    }

    def sources(self, text: str) -> dict[str, str]:
        """Returns the source text of each top-level entry, nothing where it could not stand alone.

        An entry with a tab is left out too: PyYAML's two loaders differ on tabs between tokens.
        """
        if not self._quotable:
            return {}
        begins = [_with_comments(text, start, earliest) for _, start, earliest in self._starts]
        ends = [*begins[1:], len(text)]
        keys = [key for key, _, _ in self._starts]
        sources = {key: text[begin:end] for key, begin, end in zip(keys, begins, ends, strict=True)}
        return {key: source for key, source in sources.items() if "\t" not in source}


def _with_comments(text: str, start: int, earliest: int) -> int:
    """Moves the start of an entry up to the first of the comment lines right above it."""
    while start > earliest:
        above = text.rfind("\n", 0, start - 1) + 1
        if above < earliest or not text.startswith("#", above):
            break
        start = above
    return start


def _check_tag(event: SequenceStartEvent | MappingStartEvent, kind: str) -> None:
    if event.tag not in (None, "!", _STANDARD + kind):
        raise UnreadableYaml(f"the tag {_shown(event.tag)} is not supported", _line(event))


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
