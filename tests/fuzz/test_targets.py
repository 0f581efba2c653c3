"""Whatever bytes a file holds, its parser returns a value or raises one of ours (guarantee G5)."""

from __future__ import annotations

import tracemalloc
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, try_target

SNIPPETS: Final = tuple(
    text.encode("utf-8", "surrogateescape")
    for text in (
        *("", "\0", "\udcff", "\ufeff", "\r\n", "---\n", "\n---", "{", "}", "[", '"', "\\ud800", "NaN"),
        *("1e999", "-0", "9" * 400, "&a [*a, *a]", "<<: *a", "!!python/object:x.y {}", "null", "true"),
        *("../", "\u2028\u0085", "? ", ": ", "- ", "# ", "|\n ", ">-\n ", "{" * 60, '{"a":' * 60),
    )
)


@st.composite
def damaged(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """Draws a sample with some pieces cut out, doubled, replaced or put in."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        new = draw(st.sampled_from(SNIPPETS) | st.binary(max_size=8) | st.just(data[start:end] * 2))
        data = data[:start] + new + data[end:]
    return data


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=150)
@given(data=st.data())
def test_damaged_bytes_are_a_value_or_an_error_of_ours(name: str, data: st.DataObject) -> None:
    try_target(name, data.draw(damaged(TARGETS[name].samples)))


@pytest.mark.parametrize("name", TARGETS)
def test_the_samples_reach_past_the_first_check(name: str) -> None:
    accepted = [try_target(name, sample) for sample in TARGETS[name].samples]
    assert any(accepted) or name == "record of a repair"


BOMBS: Final = {
    "nested lists": b"[" * 1_000_000,
    "nested objects": b'{"a":' * 500_000,
    "many keys": b"{" + b",".join(b'"%d":0' % number for number in range(100_000)) + b"}",
    "aliases": b"---\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40)),
    "one long line": b"x" * 2_000_000,
    "zeros": b"\0" * 2_000_000,
    "a long number": b'{"version": ' + b"9" * 1_000_000 + b"}",
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("name", TARGETS)
def test_a_bomb_costs_a_small_multiple_of_its_size(name: str, bomb: str) -> None:
    data = BOMBS[bomb]
    tracemalloc.start()
    try:
        try_target(name, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64_000_000 + 40 * len(data)
