"""The codec of memory.json: what it writes it reads, and any other bytes give a value or a typed error."""

from __future__ import annotations

import json
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deermem import Corruption, UnsupportedFormat
from deermem.format.fences_json import decode_fences, encode_fences
from deermem.format.manifest_json import decode_manifest, encode_manifest
from deermem.format.strict_json import dump_compact
from deermem.model.fact import ExtraField
from deermem.model.identity import AgentName
from deermem.model.manifest import Manifest
from deermem.model.resolution import Fences
from deermem.model.summaries import SECTION_KEYS, Section, Summaries

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXT, children, max_size=3),
    max_leaves=6,
)
KNOWN_KEYS = ("version", "revision", "lastUpdated", "user", "history", "facts")
OWN_KEYS = TEXT.filter(lambda key: key not in KNOWN_KEYS)
SECTIONS = st.builds(
    Section,
    summary=TEXT,
    updated_at=st.sampled_from(["", "2026-07-19T00:00:00Z"]),
    extra=st.just("") | st.dictionaries(st.sampled_from(["lang", "x"]), JSON, min_size=1).map(dump_compact),
)
MANIFESTS = st.builds(
    Manifest,
    revision=st.integers(1, 2**53),
    last_updated=st.just("2026-07-19T00:00:00Z"),
    summaries=st.dictionaries(st.sampled_from([*SECTION_KEYS, ("user", "own")]), SECTIONS).map(Summaries.of),
    extra=st.dictionaries(OWN_KEYS, JSON, max_size=3).map(
        lambda fields: tuple(ExtraField(key, dump_compact(value)) for key, value in fields.items())
    ),
)
FENCES = st.builds(
    Fences,
    st.integers(0, 2**53),
    st.dictionaries(
        st.sampled_from(["__default__", "coder", "a-1"]).map(AgentName), st.integers(0, 2**53)
    ).map(MappingProxyType),
)


@given(MANIFESTS)
def test_what_the_codec_writes_it_reads(manifest: Manifest) -> None:
    assert decode_manifest(encode_manifest(manifest), "m.json") == manifest


@given(MANIFESTS)
def test_what_the_codec_writes_is_plain_json_that_ends_in_a_line_feed(manifest: Manifest) -> None:
    data = encode_manifest(manifest)
    document = json.loads(data)
    assert data.endswith(b"}\n")
    assert (document["version"], document["revision"]) == ("2.0", manifest.revision)
    assert "facts" not in document


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b'{"version": "2.0", "revision": 1e400}')
@example(b'{"version": {}, "revision": 1}')
def test_any_bytes_give_a_manifest_or_a_typed_error(data: bytes) -> None:
    with suppress(Corruption, UnsupportedFormat):
        decode_manifest(data, "m.json")


@given(
    st.fixed_dictionaries(
        {"version": st.just("2.0") | JSON},
        optional={
            "revision": st.integers(0, 9) | JSON,
            "lastUpdated": st.just("2026-07-19T00:00:00Z") | JSON,
            "user": st.dictionaries(TEXT, st.just({"summary": "s"}) | JSON) | JSON,
            "history": JSON,
            "other": JSON,
        },
    )
)
def test_any_json_gives_a_manifest_that_can_be_written_or_a_typed_error(document: dict[str, Any]) -> None:
    try:
        manifest = decode_manifest(json.dumps(document).encode(), "m.json")
    except (Corruption, UnsupportedFormat):
        return
    assert decode_manifest(encode_manifest(manifest), "m.json") == manifest


@given(FENCES)
def test_what_the_codec_of_fences_writes_it_reads(fences: Fences) -> None:
    assert decode_fences(encode_fences(fences), "f.json") == fences


@given(st.binary(max_size=100) | JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"format": 1}')
@example(b'{"format": 1, "everything": 0, "agents": {"x": 1.5}}')
def test_any_bytes_give_fences_or_a_typed_error(data: bytes) -> None:
    with suppress(Corruption, UnsupportedFormat):
        decode_fences(data, "f.json")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" * 4_000, "0.1" + "0" * 5_000, "-0", "1E+2"])
def test_a_number_is_refused_when_it_is_read_if_it_could_not_be_written_again(number: str) -> None:
    data = b'{"version":"2.0","revision":1,"lastUpdated":"2026-07-19T00:00:00Z","own":%s}' % number.encode()
    try:
        manifest = decode_manifest(data, "m.json")
    except Corruption:
        return
    assert decode_manifest(encode_manifest(manifest), "m.json") == manifest
