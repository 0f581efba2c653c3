"""What cannot be read safely is corruption that names the place, and nothing else is raised."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deermem.errors import Corruption, InvalidInputError, UnsupportedFormat
from deermem.format import yaml_tree
from deermem.format.fact_envelope import INTENDED_MARKERS
from deermem.format.fact_markdown import MAX_FILE_BYTES, decode_fact, encode_fact
from deermem.model.identity import Scope
from tests.format.fact_documents import FACT_ID, NOW, PATH, PLAN_EXAMPLE, SCOPE, load, mutations, simple_fact

CONFLICT = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"
FRONT_LINES = PLAN_EXAMPLE.split("\n---\n", 1)[0]


def reason(document: str | bytes, scope: Scope = SCOPE) -> str:
    """Returns why a document is corrupt."""
    with pytest.raises(Corruption) as caught:
        load(document, scope)
    assert caught.value.path == PATH
    return caught.value.reason


def with_line(old: str, new: str) -> str:
    assert f"\n{old}\n" in PLAN_EXAMPLE
    return PLAN_EXAMPLE.replace(f"\n{old}\n", f"\n{new}\n" if new else "\n")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("id: fact_ab12", "", "id: is missing"),
        ("id: fact_ab12", "id: null", "id: is missing"),
        ("id: fact_ab12", "id: fact_AB12", "id: is not the name of the file"),
        ("id: fact_ab12", "id: [fact_ab12]", "id: must be a single value"),
        ("schemaVersion: 2", "schemaVersion: 1", "schemaVersion: is not 2"),
        ("schemaVersion: 2", "schemaVersion: 0", "schemaVersion: is not 2"),
        ("schemaVersion: 2", "schemaVersion: 2.0", "schemaVersion: is not 2"),
        ("schemaVersion: 2", "schemaVersion: '2'", "schemaVersion: is not 2"),
        ("schemaVersion: 2", "schemaVersion: true", "schemaVersion: is not 2"),
        ("category: constraint", "category: {a: b}", "category: must be a single value"),
        (
            "category: constraint",
            "category: goal\ncategoryExtension: x",
            "categoryExtension: needs the category",
        ),
        ("topics: [python, runtime]", "topics: {a: b}", "topics: must be a single value"),
        ("topics: [python, runtime]", "topics: [a, [b]]", "topics: must be a list of strings"),
        ("topics: [python, runtime]", "topics: [a, null]", "topics: must be a non-empty string"),
        ("topics: [python, runtime]", f"topics: [{'a' * 4001}]", "topics: is larger than 4,000 bytes"),
        ("topics: [python, runtime]", f"topics: [{'a, ' * 1001}]", "topics: has more than 1,000 items"),
        ("confidence: 0.95", "confidence: 1.01", "confidence: must be between 0 and 1"),
        ("confidence: 0.95", "confidence: -0.1", "confidence: must be between 0 and 1"),
        ("confidence: 0.95", "confidence: .nan", "confidence: must be between 0 and 1"),
        ("confidence: 0.95", "confidence: .inf", "confidence: must be between 0 and 1"),
        ("confidence: 0.95", "confidence: true", "confidence: must be a number"),
        ("confidence: 0.95", "confidence: '0.95'", "confidence: must be a number"),
        ("confidence: 0.95", "confidence: high", "confidence: must be a number"),
        ("confidence: 0.95", "confidence: 0.9_5", "confidence: must be a number"),
        ("confidence: 0.95", f"confidence: 0.{'9' * 1000}", "line 6: a number has more than 1,000 digits"),
        ("status: active", "status: deleted", "status: must be active"),
        ("user_id: alice", "", "user_id: is missing"),
        ("user_id: alice", "user_id: bob", "user_id: is another user's"),
        ("user_id: alice", "user_id: Alice", "user_id: is another user's"),
        ("user_id: alice", "user_id: ''", "user_id: must be a non-empty string"),
        ("user_id: alice", f"user_id: {'a' * 201}", "user_id: is longer than 200 characters"),
        ("agent_name: research-agent", "", "agent_name: is missing"),
        ("agent_name: research-agent", "agent_name: coder", "agent_name: is another agent's"),
        ("agent_name: research-agent", "agent_name: __default__", "agent_name: must consist of"),
        ("agent_name: research-agent", "agent_name: ../x", "agent_name: must consist of"),
        ("  type: conversation", "  type: rumour", "source: has a type that is not one of"),
        ("  threadId: thread_123", "  threadId: ' '", "threadId: must be a non-empty string"),
        ("  threadId: thread_123", "  threadId: [a]", "threadId: must be a single value"),
        (f"createdAt: {NOW}", "", "createdAt: is missing"),
        (f"createdAt: {NOW}", "createdAt: yesterday", "createdAt: must be an ISO 8601 time stamp"),
        (f"createdAt: {NOW}", "createdAt: 2026-02-30", "createdAt: must be an ISO 8601 time stamp"),
        (f"updatedAt: {NOW}", "", "updatedAt: is missing"),
        (f"updatedAt: {NOW}", "updatedAt: ' '", "updatedAt: must be an ISO 8601 time stamp"),
        ("revision: 1", "", "revision: must be an integer of at least 1"),
        ("revision: 1", "revision: 0", "revision: must be an integer of at least 1"),
        ("revision: 1", "revision: 1.0", "revision: must be an integer of at least 1"),
        ("revision: 1", "revision: '1'", "revision: must be an integer of at least 1"),
        ("revision: 1", "revision: true", "revision: must be an integer of at least 1"),
        ("revision: 1", "revision: 12345678901234567890", "revision: must be an integer of at least 1"),
        ("revision: 1", "revision: 1\nexpected_valid_days: 0", "expected_valid_days: must be an integer"),
        ("revision: 1", "revision: 1\nconfirmationCount: 1.5", "confirmationCount: must be an integer"),
        ("revision: 1", "revision: 1\nconsolidatedAt: soon", "consolidatedAt: must be an ISO 8601"),
        ("revision: 1", "revision: 1\nlastConfirmedAt: 7", "lastConfirmedAt: must be an ISO 8601"),
        ("revision: 1", "revision: 1\nsourceError: [x]", "sourceError: must be a single value"),
        ("consolidatedFrom: []", "consolidatedFrom: [{}]", "consolidatedFrom: must be a list of strings"),
        ("Project uses Python 3.12.", "x" * 1_000_001, "content: is larger than 1,000,000 bytes"),
    ],
)
def test_a_value_that_breaks_its_rule_is_named(old: str, new: str, expected: str) -> None:
    assert reason(with_line(old, new)).startswith(expected)


def test_a_source_that_is_a_list_is_corruption() -> None:
    document = PLAN_EXAMPLE.replace("source:\n  type: conversation\n  threadId: thread_123", "source: [a]")
    assert reason(document) == "source: must be a mapping or a string"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("revision: 1\nid: fact_ab12", "line 16: the key 'id' appears twice"),
        ("revision: 1\nmood: {a: 1, 'a': 2}", "line 16: the key 'a' appears twice"),
        ("revision: 1\nmood: [{a: {b: 1, b: 1}}]", "line 16: the key 'b' appears twice"),
        ("revision: 1\nmood: {1: a, '1': b}", "line 16: the key '1' appears twice"),
        ("revision: 1\nmood: !mine x", "line 16: the tag '!mine' is not supported"),
        ("revision: 1\nmood: !!python/object/apply:os.system [x]", "line 16: the tag "),
        ("revision: 1\nmood: !!python/name:os.system ''", "line 16: the tag "),
        ("revision: 1\nmood: !!set {a, b}", "line 16: the tag 'tag:yaml.org,2002:set' is not supported"),
        ("revision: 1\nmood: !!binary aGk=", "line 16: the tag 'tag:yaml.org,2002:binary' is not supported"),
        ("revision: 1\nmood: !<tag:example.org,2026:x> a", "line 16: the tag "),
        ("revision: 1\nmood: !!int many", "line 16: the value is no !!int"),
        ("revision: 1\nmood: !!int true", "line 16: the value is no !!int"),
        ("revision: 1\n? [a]\n: b", "line 16: a key is a list or a mapping"),
        ("revision: 1\n? {a: b}\n: c", "line 16: a key is a list or a mapping"),
        ("revision: 1\nmood: *unknown", "line 16: an alias has no anchor before it"),
        ("revision: 1\nmood: &m [*m]", "line 16: an alias has no anchor before it"),
        (f"revision: 1\nmood: &m x\nmoods: [{'*m, ' * 33}]", "line 17: more than 32 aliases"),
        ("revision: 1\nmood: [a", "line 17: not YAML: "),
        ("revision: 1\nmood: a: b", "line 16: not YAML: mapping values are not allowed"),
        ("revision: 1\nmood: 'a", "line 18: not YAML: "),
        ('revision: 1\nmood: "\\q"', "line 16: not YAML: "),
        ('revision: 1\nmood: "\\ud800"', "line 16: not YAML: "),
        ("revision: 1\nmood: a\x00b", "line 16: not YAML: "),
        ("revision: 1\nmood: a\x1bb", "line 16: not YAML: "),
        ("revision: 1\n\tmood: x", "line 16: not YAML: "),
        ("revision: 1\nno colon", "line 17: not YAML: "),
        ("revision: 1\n--- a", "line 16: the front matter has more than one YAML document"),
        ("revision: 1\n...", "line 16: the front matter has more than one YAML document"),
        ("revision: 1\n...\nx: y", "line 16: the front matter has more than one YAML document"),
        (f"revision: 1\nmood: {'[' * 64}{']' * 64}", "line 16: nested more than 64 levels deep"),
        ("revision: 1\nmood: " + "1" * 1_001, "line 16: a number has more than 1,000 digits"),
    ],
)
def test_yaml_that_could_mean_two_things_or_nothing_is_corruption(new: str, expected: str) -> None:
    assert reason(with_line("revision: 1", new)).startswith(expected)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("", "does not begin with front matter between two lines '---'"),
        ("\0" * 4096, "does not begin with front matter between two lines '---'"),
        ("# Only Markdown\n\ntext\n", "does not begin with front matter between two lines '---'"),
        ("text\n" + PLAN_EXAMPLE, "does not begin with front matter between two lines '---'"),
        ("----\nid: x\n---\n", "does not begin with front matter between two lines '---'"),
        (FRONT_LINES + "\n", "the front matter has no closing line '---'"),
        (FRONT_LINES + "\nmood: a --- b\n --- \n", "the front matter has no closing line '---'"),
        ("---\n---\ntext\n", "the front matter is empty"),
        ("---\n# nothing\n---\ntext\n", "the front matter is empty"),
        ("---\njust text\n---\ntext\n", "line 2: the front matter is not a mapping"),
        ("---\n- a\n---\ntext\n", "line 2: the front matter is not a mapping"),
        ("\n\n---\n- a\n---\ntext\n", "line 4: the front matter is not a mapping"),
        (FRONT_LINES + "\n---\n", "content: must not be empty"),
        (FRONT_LINES + "\n---\n\n#\n\n \n", "content: must not be empty"),
        (FRONT_LINES + "\n---\n\n\u2028\x85\n", "content: must not be empty"),
    ],
)
def test_a_file_without_front_matter_or_content_is_corruption(document: str, expected: str) -> None:
    assert reason(document) == expected


def test_a_file_cut_short_anywhere_in_the_front_matter_is_corruption() -> None:
    document = encode_fact(simple_fact())
    for end in range(document.index(b"\n---\n\n") + 4):
        with pytest.raises(Corruption):
            load(document[:end])


def test_a_file_that_is_not_utf_8_is_corruption_with_a_hint() -> None:
    data = PLAN_EXAMPLE.encode().replace(b"3.12", b"\xff")
    with pytest.raises(Corruption, match=f"is not UTF-8 at byte {data.index(0xFF)}") as caught:
        decode_fact(data, path=PATH, scope=SCOPE, fact_id=FACT_ID)
    assert "UTF-8" in caught.value.hint
    for encoding in ("utf-16", "utf-32", "utf-16-le"):
        with pytest.raises(Corruption):
            decode_fact(PLAN_EXAMPLE.encode(encoding), path=PATH, scope=SCOPE, fact_id=FACT_ID)
    with pytest.raises(Corruption):
        decode_fact(PLAN_EXAMPLE.encode() + b"\xed\xa0\x80", path=PATH, scope=SCOPE, fact_id=FACT_ID)


def test_a_file_that_is_too_large_is_refused_unread() -> None:
    with pytest.raises(Corruption, match="is larger than 2,000,000 bytes"):
        decode_fact(b"\xff" * (MAX_FILE_BYTES + 1), path=PATH, scope=SCOPE, fact_id=FACT_ID)


@pytest.mark.parametrize("version", ["3", "12", "0x3"])
def test_a_newer_schema_is_refused_as_such(version: str) -> None:
    with pytest.raises(UnsupportedFormat) as caught:
        load(with_line("schemaVersion: 2", f"schemaVersion: {version}\nnew: [rules]"))
    assert (caught.value.found, caught.value.supported) == (str(int(version, 0)), "2")


@pytest.mark.parametrize(
    "document",
    [
        CONFLICT + PLAN_EXAMPLE,
        PLAN_EXAMPLE + CONFLICT,
        PLAN_EXAMPLE.replace("# Runtime", CONFLICT + "# Runtime"),
        PLAN_EXAMPLE.replace("revision: 1\n", CONFLICT),
        f"<<<<<<< HEAD\n{PLAN_EXAMPLE}=======\n{PLAN_EXAMPLE}>>>>>>> other\n",
        PLAN_EXAMPLE.replace("---\n", "---\n<<<<<<< HEAD\n", 1) + "=======\n>>>>>>> other\n",
        (PLAN_EXAMPLE + CONFLICT).replace("\n", "\r\n"),
        PLAN_EXAMPLE + CONFLICT.replace("=======", "||||||| base\nbase\n======="),
        PLAN_EXAMPLE.replace("---\n", f"---\n{INTENDED_MARKERS}", 1).replace("revision: 1\n", CONFLICT),
        encode_fact(simple_fact()).decode() + CONFLICT,
    ],
)
def test_an_unfinished_merge_is_corruption_that_says_so(document: str) -> None:
    with pytest.raises(Corruption, match="holds git conflict markers") as caught:
        load(document)
    assert INTENDED_MARKERS.strip() in caught.value.hint


@pytest.mark.parametrize("content", [CONFLICT, "a\n" + CONFLICT + "b", CONFLICT * 2])
def test_content_that_shows_a_conflict_on_purpose_survives(content: str) -> None:
    fact = simple_fact(content=content)
    document = encode_fact(fact)
    assert document.startswith(b"---\n" + INTENDED_MARKERS.encode() + b"id: ")
    assert load(document) == fact
    assert load(document.replace(b"\n", b"\r\n")).content == content.strip()


@pytest.mark.parametrize(
    "content",
    [
        "<<<<<<< a",
        "=======",
        ">>>>>>> a",
        "a\n=======\nb",
        ">>>>>>> a\n=======\n<<<<<<< b",
        "x <<<<<<< a\n=======\n>>>>>>> b",
        "<<<<<<<a\n=======\n>>>>>>>b",
    ],
)
def test_text_that_is_no_whole_conflict_is_just_text(content: str) -> None:
    fact = simple_fact(content=content)
    assert INTENDED_MARKERS.encode() not in encode_fact(fact)
    assert load(encode_fact(fact)) == fact


def test_the_mark_of_an_intended_conflict_goes_when_the_conflict_goes() -> None:
    fact = load(encode_fact(simple_fact(content=CONFLICT)))
    assert fact.extra == ()
    assert INTENDED_MARKERS.encode() not in encode_fact(replace(fact, content="done"))


@pytest.mark.parametrize("loader", ["CBaseLoader", "BaseLoader"])
@given(st.sampled_from([PLAN_EXAMPLE, encode_fact(simple_fact()).decode()]).flatmap(mutations))
def test_a_damaged_document_gives_a_fact_or_a_typed_error(loader: str, document: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_tree, "_LOADER", getattr(yaml, loader))
        try:
            fact = load(document)
        except (Corruption, UnsupportedFormat):
            return
        assert load(encode_fact(fact)) == fact


@given(st.binary() | st.text().map(str.encode) | st.text().map(lambda text: f"---\n{text}\n---\nx".encode()))
def test_any_bytes_give_a_fact_or_a_typed_error(data: bytes) -> None:
    with pytest.raises((Corruption, UnsupportedFormat)):
        decode_fact(data, path=PATH, scope=SCOPE, fact_id=FACT_ID)


@pytest.mark.parametrize("escape", ["\\ud800", "\\U00110000", "\\UFFFFFFFF", "\\xZZ", "\\u12"])
@pytest.mark.parametrize("loader", ["CBaseLoader", "BaseLoader"])
def test_an_impossible_escape_is_corruption_with_either_loader(
    loader: str, escape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_tree, "_LOADER", getattr(yaml, loader))
    with pytest.raises(Corruption):
        load(with_line("revision: 1", f'revision: 1\nmood: "{escape}"'))


def test_a_fact_that_could_not_be_read_back_is_not_written() -> None:
    topics = tuple(f"{number:04}{'x' * 3_990}" for number in range(100))
    with pytest.raises(InvalidInputError, match="fact: cannot be written: the front matter has more than"):
        encode_fact(simple_fact(topics=topics))
