"""Keys that the store does not know survive, in their order and with their comments."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deermem.errors import Corruption, InvalidInputError, UnsupportedFormat
from deermem.format import yaml_tree
from deermem.format.fact_markdown import encode_fact
from deermem.format.strict_json import dump_compact
from deermem.model.fact import ExtraField, Fact, Source
from tests.format.fact_documents import PLAN_EXAMPLE, json_values, load, mutations, simple_fact

FOREIGN = PLAN_EXAMPLE.replace(
    "category: constraint\n",
    """\
# How it feels
mood: good  # most of the time
category: constraint
tags:
  - work
  # more of them to come
  - "a: b"
# Other names
aliases: ['one', two]
cssclasses:
published: 2026-07-19
# About numbers
# in two lines
ratio: 1e3
note: |+
  first
    second

  # not a comment

nested: {a: [1, 2.50, .inf], "b": ~,
  c: 0x1F}
folded: one
  two
"quoted key": 'x'
""",
)


def test_unknown_keys_have_their_yaml_1_2_meaning() -> None:
    assert [(field.key, field.json) for field in load(FOREIGN).extra] == [
        ("mood", '"good"'),
        ("tags", '["work","a: b"]'),
        ("aliases", '["one","two"]'),
        ("cssclasses", "null"),
        ("published", '"2026-07-19"'),
        ("ratio", "1000.0"),
        ("note", '"first\\n  second\\n\\n# not a comment\\n\\n"'),
        ("nested", '{"a":[1,2.5,Infinity],"b":null,"c":31}'),
        ("folded", '"one two"'),
        ("quoted key", '"x"'),
    ]


def test_unknown_keys_are_rewritten_as_they_stood_comments_included() -> None:
    document = encode_fact(load(FOREIGN)).decode()
    kept = FOREIGN.split("schemaVersion: 2\n")[1].split("topics:")[0].replace("category: constraint\n", "")
    assert document.split("consolidatedFrom: []\n")[1].split("---\n")[0] == kept
    assert encode_fact(load(document)).decode() == document


def test_a_file_with_crlf_line_ends_keeps_its_unknown_keys() -> None:
    assert load(FOREIGN.replace("\n", "\r\n")) == load(FOREIGN)
    assert encode_fact(load(FOREIGN.replace("\n", "\r\n"))) == encode_fact(load(FOREIGN))
    front, body = FOREIGN.split("\n---\n", 1)
    mixed = "---\n" + front[4:].replace("\n", "\r\n") + "\r\n---\n" + body
    assert encode_fact(load(mixed)) == encode_fact(load(FOREIGN))


@pytest.mark.parametrize(
    "lines",
    [
        "a: &x 1\nb: *x\n",
        "a: &unused 1\n",
        "<<: {a: b}\n",
        "a: {<<: {a: b}}\n",
        "? a\n: b\n",
        "?\n  a\n: b\n",
        "? |\n  a\n: b\n",
        "? a\n",
        "a:\tb\n",
        "a: [&x 1, *x]\n",
    ],
)
def test_entries_that_could_not_stand_alone_are_written_from_their_value(lines: str) -> None:
    fact = load(PLAN_EXAMPLE.replace("revision: 1\n", "revision: 1\n" + lines))
    assert [field.yaml for field in fact.extra] == [""] * len(fact.extra)
    assert load(encode_fact(fact)) == fact


@pytest.mark.parametrize(
    ("key", "text"), [("123", "123"), ("no", "no"), ("~", "~"), ("1.5", "1.5"), ("'a b'", "a b"), ("''", "")]
)
def test_a_key_is_its_text(key: str, text: str) -> None:
    fact = load(PLAN_EXAMPLE.replace("revision: 1\n", f"revision: 1\n{key}: x\n"))
    assert fact.extra == (ExtraField(text, '"x"', f"{key}: x\n"),)
    assert load(encode_fact(fact)) == fact


def test_an_entry_indented_with_all_others_is_written_from_its_value() -> None:
    front, body = PLAN_EXAMPLE.split("\n---\n", 1)
    indented = front.replace("\n", "\n  ") + "\n  mood: good # x\n---\n" + body
    assert load(indented).extra == (ExtraField("mood", '"good"'),)
    assert load(indented).extra[0].yaml == ""


def test_an_entry_of_a_flow_mapping_is_written_from_its_value() -> None:
    front, body = PLAN_EXAMPLE.split("\n---\n", 1)
    flow = (
        front[4:].replace("\n  type", " {type").replace("\n  threadId: thread_123", ", threadId: thread_123}")
    )
    fact = load("---\n{\n" + flow.replace("\n", ",\n") + ",\nmood: good,\n}\n---\n" + body)
    assert [(field.key, field.json, field.yaml) for field in fact.extra] == [("mood", '"good"', "")]


def test_unknown_keys_inside_source_survive() -> None:
    fact = load(
        PLAN_EXAMPLE.replace("threadId: thread_123\n", "threadId: thread_123\n  turn: 7\n  url: a#b\n")
    )
    extra = (ExtraField("turn", "7"), ExtraField("url", '"a#b"'))
    assert fact.source == Source("conversation", "thread_123", extra)
    assert b'  threadId: thread_123\n  turn: 7\n  url: "a#b"\n' in encode_fact(fact)


def read(document: str) -> Fact | None:
    try:
        return load(document)
    except (Corruption, UnsupportedFormat):
        return None


@given(mutations(FOREIGN))
def test_a_foreign_document_means_the_same_after_it_is_rewritten(document: str) -> None:
    fact = read(document)
    if fact is not None:
        again = load(encode_fact(fact))
        assert again == fact
        assert all(new.yaml == old.yaml for old, new in zip(fact.extra, again.extra, strict=True) if old.yaml)
        assert encode_fact(again) == encode_fact(fact)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml_tree, "_LOADER", yaml.BaseLoader)
            assert load(encode_fact(fact)) == fact


@given(st.data())
def test_unknown_keys_do_not_depend_on_their_neighbours(data: st.DataObject) -> None:
    extra = load(FOREIGN).extra
    chosen = tuple(data.draw(st.lists(st.sampled_from(extra), unique=True)))
    fact = simple_fact(extra=chosen)
    assert load(encode_fact(fact)) == fact


@given(st.dictionaries(st.text(min_size=1), json_values, max_size=3))
def test_values_that_never_were_in_a_file_are_written_in_flow_style(value: dict[str, object]) -> None:
    fact = simple_fact(extra=(ExtraField("imported", dump_compact(value)),))
    assert load(encode_fact(fact)) == fact


@pytest.mark.parametrize("length", [999, 1_000, 1_001, 5_000])
def test_a_very_long_key_survives(length: int) -> None:
    key = "k" * length
    extra = ExtraField(key, f'{{"{key}":[{{"{key}":1}}]}}')
    fact = simple_fact(extra=(extra,), source=Source("manual", None, (extra,)))
    assert load(encode_fact(fact)) == fact


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ([ExtraField("id", '"x"')], "extra: has a key twice, or the key of a known field"),
        ([ExtraField("a", "1"), ExtraField("a", "2")], "extra: has a key twice"),
        ([ExtraField("a", "{")], "a: cannot be written as YAML"),
        ([ExtraField("a", "[" * 65 + "]" * 65)], "a: cannot be written as YAML"),
        ([ExtraField("a", "[" * 100_000 + "]" * 100_000)], "a: cannot be written as YAML"),
        ([ExtraField("a", "1" * 1_001)], "a: cannot be written as YAML"),
        ([ExtraField("a", "1" * 5_000)], "a: cannot be written as YAML"),
        ([ExtraField("a", '"\\ud800"')], "a: contains a lone surrogate"),
        ([ExtraField("\ud800", "1")], "?: contains a lone surrogate"),
        ([ExtraField("a", f"[{'1,' * 10_000}1]")], "extra: cannot be written: "),
        ([ExtraField("a", f'"{"x" * 300_000}"')], "extra: cannot be written: "),
        ([ExtraField("a", "1", "a: 1\nid: other\n")], "extra: cannot be written: "),
        ([ExtraField("a", "1", "a: 1\n---\n")], "extra: cannot be written: "),
        ([ExtraField("a", "1", "b: 1\n")], "extra: has source text that is not an entry of its key"),
        ([ExtraField("a", "1", "a: 1")], "extra: has source text that is not an entry of its key"),
        ([ExtraField("a", "1", "# nothing\n")], "extra: has source text that is not an entry of its key"),
    ],
)
def test_an_unknown_field_that_could_not_be_read_back_is_refused(
    extra: list[ExtraField], expected: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode_fact(simple_fact(extra=tuple(extra)))
    assert str(caught.value).startswith(expected)


def test_an_unknown_field_of_the_source_with_a_known_key_is_refused() -> None:
    source = Source("manual", None, (ExtraField("type", '"x"'),))
    with pytest.raises(InvalidInputError, match="extra: has a key twice, or the key of a known field"):
        encode_fact(simple_fact(source=source))
