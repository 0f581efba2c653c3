"""Facts and fact documents for the tests of the codec."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from deermem.errors import Corruption, UnsupportedFormat
from deermem.format.fact_canonical import read_canonical
from deermem.format.fact_fields import KNOWN_KEYS, SOURCE_KEYS
from deermem.format.fact_markdown import decode_fact, decode_text
from deermem.format.strict_json import dump_compact
from deermem.model.fact import ExtraField, Fact, FactDraft, Source, next_fact
from deermem.model.identity import AgentName, FactId, Scope, UserId

PATH = "users/alice/agents/research-agent/facts/12/fact_ab12.md"
SCOPE = Scope.of("alice", "research-agent")
FACT_ID = FactId("fact_ab12")
NOW = "2026-07-19T00:00:00Z"

# The example of the storage plan (section 5), as printed there.
PLAN_EXAMPLE = """\
---
id: fact_ab12
schemaVersion: 2
category: constraint
topics: [python, runtime]
confidence: 0.95
status: active
user_id: alice
agent_name: research-agent
source:
  type: conversation
  threadId: thread_123
createdAt: 2026-07-19T00:00:00Z
updatedAt: 2026-07-19T00:00:00Z
revision: 1
consolidatedFrom: []
---

# Runtime constraint

Project uses Python 3.12.
"""

# What YAML 1.1, YAML 1.2 or Markdown could take for something else than this text.
TRICKY_TEXTS = [
    *("no", "Yes", "ON", "y", "true", "False", "null", "Null", "~", "1e3", "0123", "0o17", "0x1F", "1_000"),
    *("12:30:45", "190:20:30", ".inf", "-.INF", ".nan", "+1", "-1", "1.", ".5", "1,000", "2026-07-19"),
    *("2026-07-19T00:00:00Z", "2001-12-14 21:59:43.10 -5", "=", "<<", "- a", "-", "---", "...", "a: b", "a:"),
    *(":a", "#x", "a #b", "!t", "!!str a", "&a", "*a", "%", "%YAML 1.1", "@a", "`a", "? a", "|", ">", "|+"),
    *("[a", "a]", "{a", "a}", "a, b", "[]", "{}", ",", "'a'", "it's", '"a"', 'say "hi"', "\\", "\\n", "a\\"),
    *(" a", "a ", "a  b", "a\tb", "\ta", "a\nb", "a\r\nb", "a\rb", "a\x0bb", "a\x0cb", "a\x00b", "a\x1bb"),
    *("a\x7fb", "a\x85b", "a\x9fb", "a\xa0b", "a\u2028b", "a\u2029b", "\ufeffa", "a\ufffeb", "a\uffffb"),
    *("a\ufdd0b", "a\U0001ffffb", "a\ue000b", "🦌", "👩‍👩‍👧", "编程", "日本語", "مرحبا", "שלום", "e\u0301"),
    *("<<<<<<< a", "=======", ">>>>>>> a", "# a", "## a", "#", "a" * 1500, "é" * 1500, "x: " * 500),
]
TRICKY_CONTENTS = [
    *TRICKY_TEXTS,
    *("a\n---\nb", "---\nid: x\n---\n\n# t\n\nb", "# Heading\n\nb", "#\n\nb", "a\n\n\n\nb", "a\r\n---\r\nb"),
    *("<<<<<<< a\nb\n=======\nc\n>>>>>>> d", "a\r\n\r\nb", "a \n\t\n b", "a\n" + "\x0c\n" * 3 + "b"),
]

hostile_characters = st.one_of(
    st.sampled_from("\r\n\t\x0b\x0c\x1c\x85\xa0\u2028\u2029\ufeff\u202e\u200d#-:'\"\\ ,[]{}&*!|>%@`~=<"),
    st.characters(exclude_categories=["Cs"]),
)
hostile_texts = st.one_of(st.text(hostile_characters), st.sampled_from(TRICKY_TEXTS))
texts = hostile_texts.filter(lambda text: text.strip() and len(text.encode()) <= 4_000)
contents = st.one_of(
    st.text(hostile_characters),
    st.sampled_from(TRICKY_CONTENTS),
    st.lists(st.sampled_from(TRICKY_CONTENTS), min_size=1).map("\n".join),
).filter(lambda text: bool(text.strip()))
titles = texts.map(lambda text: "".join(c if c.isprintable() else " " for c in text)[:160].strip())
timestamps = st.sampled_from([NOW, "2026-07-19T08:15:30.123456Z", "0001-01-01T00:00:00Z"])
counts = st.none() | st.integers(1, 2**53)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | hostile_texts,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(hostile_texts, children, max_size=4),
    max_leaves=8,
)
scopes = st.builds(
    Scope.of,
    st.none() | st.sampled_from(["alice", "a@b.c", "李", "no", "123", "null", "~", "a\nb", "1e3", "x" * 200]),
    st.none() | st.sampled_from(["research-agent", "no", "123", "1e3", "null", "-", "--", "y"]),
)
fact_ids = st.sampled_from(["fact_ab12", "no", "0123", "1e3", "null", "-", "---", "x" * 128, "_", "1_000"])


def extra_fields(reserved: frozenset[str]) -> st.SearchStrategy[tuple[ExtraField, ...]]:
    keys = hostile_texts.filter(lambda key: key not in reserved)
    fields = st.builds(lambda key, value: ExtraField(key, dump_compact(value)), keys, json_values)
    return st.lists(fields, max_size=3, unique_by=lambda field: field.key).map(tuple)


sources = st.one_of(
    st.sampled_from(["manual", "consolidation", "import", "unknown"]).map(Source.parse),
    texts.map(Source.parse),
    st.builds(
        Source, st.sampled_from(["conversation", "manual"]), st.none() | texts, extra_fields(SOURCE_KEYS)
    ),
)


@st.composite
def facts(draw: st.DrawFn) -> Fact:
    draft = FactDraft(
        content=draw(contents),
        id=FactId(draw(fact_ids)),
        title=draw(st.none() | titles),
        category=draw(st.sampled_from(["context", "goal", "other"]) | texts),
        topics=draw(st.lists(texts, max_size=4).map(tuple)),
        confidence=draw(st.floats(0, 1)),
        source=draw(sources),
        created_at=draw(st.none() | timestamps),
        consolidated_from=draw(st.lists(texts, max_size=2).map(tuple)),
        expected_valid_days=draw(counts),
        source_error=draw(st.none() | texts),
        last_confirmed_at=draw(st.none() | timestamps),
        confirmation_count=draw(counts),
        extra=draw(extra_fields(KNOWN_KEYS)),
    )
    return next_fact(draft, draw(scopes), draw(timestamps), None)


def simple_fact(**changes: Any) -> Fact:
    """Returns a plain fact with some fields of its draft changed."""
    draft = FactDraft(**{"content": "Project uses Python 3.12.", "id": FACT_ID, **changes})
    return next_fact(draft, SCOPE, NOW, None)


def load(document: str | bytes, scope: Scope = SCOPE, fact_id: str = FACT_ID) -> Fact:
    """Reads a document by both ways, and checks that they agree where both give a fact."""
    data = document if isinstance(document, bytes) else document.encode()
    fact = decode_fact(data, path=PATH, scope=scope, fact_id=FactId(fact_id))
    text = data.decode()
    quick = read_canonical(text, scope, FactId(fact_id))
    if quick is not None:
        try:
            full = decode_text(text, PATH, scope, FactId(fact_id))
        except (Corruption, UnsupportedFormat) as error:
            raise AssertionError("the fast reader took a corrupt document") from error
        assert everything(full) == everything(quick)
    return fact


def everything(fact: Fact) -> tuple[object, ...]:
    """Returns a fact together with the source text of its unknown fields, which equality leaves out."""
    return fact, [field.yaml for field in fact.extra], [field.yaml for field in fact.source.extra]


def bucket_scope(bucket: str) -> Scope:
    """Returns the scope of a caller that knows the bucket's name only."""
    return Scope(UserId(bucket, bucket), AgentName("research-agent"))


FRAGMENTS = [
    *(
        "---\n",
        "...\n",
        "# note\n",
        "\n",
        "\r\n",
        "\r",
        "\t",
        " ",
        "  ",
        ":",
        ": ",
        "- ",
        "? ",
        "&a ",
        "*a",
        "!!str ",
    ),
    *(
        "!x ",
        "!",
        "|\n",
        "|+\n",
        ">-\n",
        "  x\n",
        "[",
        "]",
        "{",
        "}",
        ",",
        '"',
        "'",
        "\\",
        "null",
        "~",
        "1",
        "0.5",
    ),
    *(
        "true",
        "2",
        "3",
        "x: 1\n",
        "x:\n  - a\n  # b\n",
        "x: |+\n  a\n\n",
        "? x\n: y\n",
        '"x y": {a: [b, c]}\n',
    ),
    *(
        "id: fact_ab12\n",
        "topics: a\n",
        "source: manual\n",
        "category: mine\n",
        "revision: 7\n",
        "a: &b c\nd: *b\n",
    ),
    *(
        "<<: {a: b}\n",
        "<<<<<<< a\n",
        "=======\n",
        ">>>>>>> a\n",
        "x: 'a\n  b'\n",
        'x: "a\nb"\n',
        "x: [a,\nb]\n",
    ),
    *(
        "\ufeff",
        "\x85",
        "\u2028",
        "\x00",
        "\x0c",
        "\xa0",
        "é",
        "🦌",
        "%YAML 1.1\n",
        "# T\n",
        "x: 2026-07-19\n",
    ),
    *(
        "createdAt: 2026-07-19\n",
        "confidence: 1\n",
        "status: active\n",
        "user_id: alice\n",
        "# a\nx: y\n# b\n",
    ),
]


@st.composite
def mutations(draw: st.DrawFn, document: str) -> str:
    """Returns a document after a few edits of characters, fragments and lines."""
    for _ in range(draw(st.integers(1, 3))):
        lines = document.splitlines(keepends=True) or [""]
        row = draw(st.sampled_from(range(len(lines))))
        line = lines[row]
        start = draw(st.sampled_from(range(len(line) + 1)))
        match draw(st.sampled_from(["insert", "replace", "fragment", "line", "repeat", "move", "drop"])):
            case "insert":
                lines[row] = line[:start] + draw(hostile_characters) + line[start:]
            case "replace":
                stop = start + draw(st.integers(0, 3))
                lines[row] = line[:start] + draw(st.text(hostile_characters, max_size=2)) + line[stop:]
            case "fragment":
                lines[row] = line[:start] + draw(st.sampled_from(FRAGMENTS)) + line[start:]
            case "line":
                lines.insert(row, draw(st.sampled_from(FRAGMENTS)))
            case "repeat":
                lines.insert(draw(st.sampled_from(range(len(lines)))), line)
            case "move":
                lines.insert(draw(st.sampled_from(range(len(lines)))), lines.pop(row))
            case _:
                del lines[row]
        document = "".join(lines)
    return document
