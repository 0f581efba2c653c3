"""Time stamps: what is read, and the one way in which they are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deermem import InvalidInputError
from deermem.model.timestamps import format_timestamp, normalise_timestamp, parse_timestamp

MOMENTS = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1))  # noqa: DTZ001 - zones follow
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, ZONES)
def test_a_moment_is_written_in_utc_with_a_z_and_read_back(moment: datetime, zone: timezone) -> None:
    text = format_timestamp(moment.replace(tzinfo=zone))
    assert text.endswith("Z")
    assert parse_timestamp(text, "createdAt") == moment.replace(tzinfo=zone)
    assert normalise_timestamp(text, "createdAt") == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-07-19T00:00:00Z", "2026-07-19T00:00:00Z"),
        ("2026-07-19T00:00:00.5Z", "2026-07-19T00:00:00.500000Z"),
        ("2026-07-19T00:00:00.000Z", "2026-07-19T00:00:00Z"),
        ("2026-07-19T02:00:00+02:00", "2026-07-19T00:00:00Z"),
        ("2026-07-19T00:00:00", "2026-07-19T00:00:00Z"),
        ("2026-07-19 00:00:00", "2026-07-19T00:00:00Z"),
        ("2026-07-19", "2026-07-19T00:00:00Z"),
    ],
)
def test_offsets_fractions_and_a_missing_zone_are_accepted(text: str, written: str) -> None:
    assert normalise_timestamp(text, "createdAt") == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "20260719",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-07-19T25:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "2026-07-19T00:00:00Z" + " " * 60,
        "\uff12\uff10\uff12\uff16-07-19T00:00:00Z",
        "2026-07-19T00:00:00Z\n",
        1_784_000_000,
        None,
        datetime(2026, 7, 19, tzinfo=UTC),
    ],
)
def test_anything_else_is_refused_by_the_name_of_its_field(text: object) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parse_timestamp(text, "createdAt")  # type: ignore[arg-type]  # that is what is tested
    assert refusal.value.field == "createdAt"


@given(st.text(max_size=40))
def test_any_text_gives_a_moment_or_the_error_of_the_package(text: str) -> None:
    try:
        moment = parse_timestamp(text, "createdAt")
    except InvalidInputError:
        return
    assert moment.tzinfo is not None
