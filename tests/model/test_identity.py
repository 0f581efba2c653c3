"""Ids: what is allowed, and which bucket a user id leads to (contract section 1)."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem import InvalidInputError, Scope
from deermem.model.identity import (
    UserId,
    is_bucket_name,
    looks_encoded,
    parse_agent_name,
    parse_fact_id,
    safe_user_id,
    stored_agent_name,
)

SAFE = st.from_regex(r"[A-Za-z0-9_-]{1,200}", fullmatch=True)
ANY_TEXT = st.text(min_size=1, max_size=200)


@given(SAFE)
def test_an_id_of_letters_digits_and_dashes_is_its_own_bucket(raw: str) -> None:
    assert safe_user_id(raw) == raw


def test_any_other_id_gets_dashes_and_the_first_16_hex_digits_of_its_sha256() -> None:
    for raw, dashed in (("a@b.c", "a-b-c"), ("日本", "--"), ("a b\n", "a-b-"), (".", "-"), ("ü", "-")):
        assert safe_user_id(raw) == f"{dashed}-{sha256(raw.encode()).hexdigest()[:16]}"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_every_bucket_name_is_one_plain_component_that_is_known_again(raw: str) -> None:
    bucket = safe_user_id(raw)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", bucket)
    assert is_bucket_name(bucket)
    assert safe_user_id(bucket) == bucket


@given(ANY_TEXT, ANY_TEXT)
def test_two_ids_share_a_bucket_only_if_one_looks_encoded(first: str, second: str) -> None:
    try:
        buckets = safe_user_id(first), safe_user_id(second)
    except InvalidInputError:
        return
    if first != second and buckets[0] == buckets[1]:
        assert looks_encoded(first) or looks_encoded(second)


def test_an_id_that_looks_encoded_passes_through_and_can_be_told() -> None:
    encoded = safe_user_id("bob@x.com")
    assert safe_user_id(encoded) == encoded
    assert looks_encoded(encoded)
    assert not looks_encoded("bob-x-com")
    assert not looks_encoded("bob-0123456789ABCDEF")


@pytest.mark.parametrize("raw", ["", "a" * 201, "日" * 201, "a\ud800", 7, b"alice", ["a"]])
def test_an_empty_long_or_textless_user_id_is_refused(raw: object) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        UserId.parse(raw)  # type: ignore[arg-type]  # that is what is tested
    assert refusal.value.field == "user_id"


def test_the_longest_user_ids_are_allowed() -> None:
    assert safe_user_id("a" * 200) == "a" * 200
    bucket = safe_user_id("日" * 200)
    assert len(bucket) == 217
    assert safe_user_id(bucket) == bucket


@pytest.mark.parametrize("raw", ["a" * 217, "a" * 201 + "-0123456789abcdef", "a." * 92 + "-0123456789abcdef"])
def test_no_id_but_a_bucket_name_is_longer_than_that(raw: str) -> None:
    with pytest.raises(InvalidInputError):
        safe_user_id(raw)


def test_no_user_id_means_no_bucket() -> None:
    assert (UserId.parse(None).raw, UserId.parse(None).bucket) == (None, None)
    assert str(Scope.of(None)) == "(no user)/__default__"


@given(st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True))
def test_an_agent_name_is_lower_case_and_is_known_again_by_its_directory(name: str) -> None:
    agent = parse_agent_name(name)
    assert agent == name.lower()
    assert parse_agent_name(agent) == agent
    assert stored_agent_name(agent) == agent


@pytest.mark.parametrize(
    "name", ["", "a" * 65, "a\n", "a_b", "a b", "a/b", "..", "ä", "\u212a", "__default__", "a\0", 5, b"a"]
)
def test_any_other_agent_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parse_agent_name(name)  # type: ignore[arg-type]  # that is what is tested
    assert refusal.value.field == "agent_name"


def test_no_agent_name_means_the_default_agent() -> None:
    assert parse_agent_name(None) == "__default__"
    assert stored_agent_name("__default__") == "__default__"


@pytest.mark.parametrize("name", ["Coder", "a_b", "", "a" * 65, "a\n", "__other__", ".hidden"])
def test_a_directory_that_no_agent_can_have_is_no_agents(name: str) -> None:
    assert stored_agent_name(name) is None


@given(st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True))
def test_an_allowed_fact_id_is_kept_as_it_is(value: str) -> None:
    assert parse_fact_id(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a" * 129,
        "a" * 300,
        "a\n",
        "a.b",
        "a/b",
        "..",
        "a b",
        "ä",
        "a\0",
        "a:b",
        "README",
        None,
        5,
        b"a",
        True,
    ],
)
def test_any_other_fact_id_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parse_fact_id(value)  # type: ignore[arg-type]  # that is what is tested
    assert refusal.value.field == "id"
