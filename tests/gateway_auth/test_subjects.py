from __future__ import annotations

from hashlib import sha256
from types import MappingProxyType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deermem.errors import InvalidInputError
from deermem.gateway.auth.subjects import user_id_of
from deermem.model.identity import MAX_USER_ID, UserId, safe_user_id

# Few characters, and what encoding makes of a text, so that texts meet if they can.
SHORT = st.text("ab-.@0", min_size=1, max_size=4)
ENCODED = SHORT.map(
    lambda text: f"{text.replace('.', '-').replace('@', '-')}-{sha256(text.encode()).hexdigest()[:16]}"
)
TWICE = ENCODED.map(lambda text: f"{text}-{sha256(text.encode()).hexdigest()[:16]}")
ANY = st.text(min_size=1, max_size=MAX_USER_ID)
SUBJECTS = st.one_of(SHORT, ENCODED, TWICE, ANY)


def bucket_of(subject: str) -> str | None:
    """Returns the bucket that a subject opens; `None` if it opens none."""
    try:
        return UserId.parse(user_id_of(subject)).bucket
    except InvalidInputError:
        return None


@given(one=SUBJECTS, other=SUBJECTS)
@example(one="bob@x.com", other=safe_user_id("bob@x.com"))
@example(one="bob-x-com", other=safe_user_id("bob@x.com"))
def test_two_subjects_never_open_one_bucket(one: str, other: str) -> None:
    bucket = bucket_of(one)
    assert one == other or bucket is None or bucket != bucket_of(other)


@given(subjects=st.sets(SUBJECTS, max_size=40))
def test_many_subjects_have_as_many_buckets(subjects: set[str]) -> None:
    found = [bucket for subject in subjects if (bucket := bucket_of(subject)) is not None]
    assert len(set(found)) == len(found)


@given(subject=SHORT)
def test_nobody_becomes_a_user_by_the_name_of_that_users_bucket(subject: str) -> None:
    bucket = bucket_of(subject)
    assert bucket is not None
    if bucket != subject:
        assert bucket_of(bucket) not in (None, bucket)


@pytest.mark.parametrize("subject", ["alice", "a_b-c", "alice@example.com", "default", "a-0123456789abcde"])
def test_a_subject_that_does_not_look_encoded_is_the_user_id_itself(subject: str) -> None:
    assert user_id_of(subject) == subject


def test_a_subject_that_looks_encoded_is_encoded_again() -> None:
    subject = "bob-x-com-0123456789abcdef"
    assert user_id_of(subject) == f"{subject}-{sha256(subject.encode()).hexdigest()[:16]}"


BROKEN = MappingProxyType(
    {
        "empty": "",
        "too long": "a" * (MAX_USER_ID + 1),
        "a lone surrogate": "a\ud800",
        "too long, though a bucket may have this name": "a" * 200 + "-0123456789abcdef",
    }
)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_subject_that_can_be_no_user_id_is_refused(kind: str) -> None:
    with pytest.raises(InvalidInputError):
        user_id_of(BROKEN[kind])


def test_the_longest_subject_that_is_encoded_again_is_a_user_id() -> None:
    subject = "a" * 183 + "-0123456789abcdef"
    assert len(subject) == MAX_USER_ID
    assert bucket_of(subject) == user_id_of(subject)
