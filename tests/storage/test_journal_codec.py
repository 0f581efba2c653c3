"""The codec of the journal: hostile bytes, and paths that no transaction may touch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deermem import Corruption, UnsupportedFormat
from deermem.errors import LegacyFormat
from deermem.format.journal_json import Image, Journal, decode_journal, encode_journal, staged_name
from deermem.format.layout import fact_parts
from deermem.model.identity import AgentName, FactId

OPERATION = "0123456789abcdef" * 2
AGENTS = st.sampled_from([AgentName("__default__"), AgentName("coder")])
PATHS = st.builds(fact_parts, AGENTS, st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True).map(FactId))
CONTENT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).map(str.encode)


@st.composite
def journals(draw: st.DrawFn) -> Journal:
    paths = draw(st.lists(PATHS | st.just((".memory.fences.json",)), max_size=3, unique=True))
    images = tuple(
        Image.of(parts, staged_name(OPERATION, number), draw(CONTENT)) for number, parts in enumerate(paths)
    )
    manifest = Image.of(("memory.json",), staged_name(OPERATION, len(images)), draw(CONTENT))
    base = draw(st.integers(0, 2**53))
    return Journal(OPERATION, base, base + 1, images, manifest, tuple(draw(st.lists(PATHS, max_size=2))))


def sample() -> dict[str, Any]:
    """Returns a sound journal as JSON, without its checksum."""
    fact = fact_parts(AgentName("__default__"), FactId("x"))
    journal = Journal(
        OPERATION,
        1,
        2,
        (Image.of(fact, staged_name(OPERATION, 0), b"fact"),),
        Image.of(("memory.json",), staged_name(OPERATION, 1), b'{"version": "2.0"}'),
        (fact_parts(AgentName("coder"), FactId("y")),),
    )
    document: dict[str, Any] = json.loads(encode_journal(journal))
    del document["checksum"]
    return document


def seal(document: dict[str, Any]) -> bytes:
    """Returns the bytes with the checksum that belongs to them: a forger can do that, too."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return body[:-1] + f',"checksum":"{hashlib.sha256(body).hexdigest()}"}}\n'.encode()


@given(journals())
def test_what_the_codec_writes_it_reads(journal: Journal) -> None:
    assert decode_journal(encode_journal(journal), "j.json", "memory.json") == journal


@given(journals(), st.data())
def test_a_journal_with_any_byte_changed_or_missing_is_refused(journal: Journal, data: st.DataObject) -> None:
    sound = encode_journal(journal)
    place = data.draw(st.integers(0, len(sound) - 3))
    flipped = sound[:place] + bytes([sound[place] ^ data.draw(st.integers(1, 127))]) + sound[place + 1 :]
    for damaged in (flipped, sound[:place]):
        with pytest.raises((Corruption, UnsupportedFormat)):
            decode_journal(damaged, "j.json", "memory.json")


@given(st.binary(max_size=100))
@example(b"")
@example(b"\0" * 512)
@example(b"[" * 100_000)
@example(b'{"format":2,"state":"redo"}')
@example(b'{"format":2,"state":"redo","checksum":5}')
@example(b'{"format":2,"state":"redo","checksum":"\\ud800"}')
def test_any_bytes_are_refused_with_a_typed_error(data: bytes) -> None:
    with pytest.raises((Corruption, UnsupportedFormat), match=r"^j\.json: "):
        decode_journal(data, "j.json", "memory.json")


def test_a_sealed_sample_is_sound() -> None:
    assert decode_journal(seal(sample()), "j.json", "memory.json").revision == 2


OUTSIDE = [
    "../bob/agents/__default__/facts/2d/x.md",
    "/etc/passwd",
    "agents/../agents/__default__/facts/2d/x.md",
    "agents/__default__/facts/00/x.md",  # not the shard of x
    "agents/__default__/facts/2d/../x.md",
    "agents/Coder/facts/2d/x.md",
    "agents/coder/config.yaml",
    "agents/coder/facts/2d/x.txt",
    "agents/coder/facts/2d",
    "memory.json",
    ".memory.lock",
    ".memory.journal.json",
    "",
    "agents\\__default__\\facts\\2d\\x.md",
    "agents/__default__/facts/2d/x.md\n",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_forged_journal_cannot_make_recovery_write_outside_the_facts(path: str) -> None:
    document = sample()
    document["images"][0]["path"] = path
    with pytest.raises(Corruption):
        decode_journal(seal(document), "j.json", "memory.json")


@pytest.mark.parametrize(
    "path", [path for path in OUTSIDE if "facts/00" not in path and "config.yaml" not in path]
)
def test_a_forged_journal_cannot_make_recovery_delete_outside_the_facts(path: str) -> None:
    document = sample()
    document["deletes"] = [path]
    with pytest.raises(Corruption):
        decode_journal(seal(document), "j.json", "memory.json")


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "another manifest": lambda d: d["manifest"].update(path="other.json"),
    "a staged name that leads away": lambda d: d["images"][0].update(staged="../memory.json"),
    "a staged name of no operation": lambda d: d["images"][0].update(staged="notes.txt"),
    "a text with another digest": lambda d: d["images"][0].update(text="forged"),
    "a digest that is none": lambda d: d["images"][0].update(sha256="0"),
    "a text that is none": lambda d: d["images"][0].update(text=5),
    "a revision that stands still": lambda d: d.update(revision=d["baseRevision"]),
    "a revision of text": lambda d: d.update(baseRevision="1"),
    "a negative revision": lambda d: d.update(baseRevision=-1, revision=0),
    "images of text": lambda d: d.update(images="x"),
    "no images": lambda d: d.pop("images"),
    "no manifest": lambda d: d.pop("manifest"),
    "a delete of a number": lambda d: d.update(deletes=[1]),
    "a list for a manifest": lambda d: d.update(manifest=[]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_sealed_journal_that_no_transaction_writes_is_corruption(wrong: str) -> None:
    document = sample()
    WRONG[wrong](document)
    with pytest.raises(Corruption):
        decode_journal(seal(document), "j.json", "memory.json")


def test_our_state_is_none_that_the_predecessor_knows() -> None:
    document = json.loads(seal(sample()))
    assert document["format"] == 2
    assert document["state"] not in ("prepared", "committed")


@pytest.mark.parametrize("state", ["prepared", "committed"])
def test_a_journal_of_the_predecessor_is_told_from_one_of_an_unknown_format(state: str) -> None:
    data = json.dumps({"operationId": "x", "state": state, "factIds": []}).encode()
    with pytest.raises(LegacyFormat):
        decode_journal(data, "j.json", "memory.json")
    with pytest.raises(UnsupportedFormat) as refusal:
        decode_journal(b'{"operationId": "x"}', "j.json", "memory.json")
    assert not isinstance(refusal.value, LegacyFormat)
