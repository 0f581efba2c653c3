"""Single scalars: the YAML 1.2 core schema on the way in, careful quoting on the way out."""

from __future__ import annotations

import math

import pytest
import ruamel.yaml
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deermem.format.yaml_text import core_value, float_text, scalar
from tests.format.fact_documents import TRICKY_TEXTS, hostile_texts

PLAIN = [
    "a",
    "fact_ab12",
    "research-agent",
    "thread.1",
    "two words",
    "a - b",
    "x" * 3_000,
    "_",
    "yesterday",
    "No1",
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, None) for text in ("", "~", "null", "Null", "NULL")],
        *[(text, True) for text in ("true", "True", "TRUE")],
        *[(text, False) for text in ("false", "False", "FALSE")],
        *[("0", 0), ("-12", -12), ("+012", 12), ("0o17", 15), ("0x1F", 31), ("-0", 0)],
        *[("1.5", 1.5), (".5", 0.5), ("-1.", -1.0), ("1e3", 1000.0), ("+.5E-1", 0.05), ("1e999", math.inf)],
        *[(".inf", math.inf), ("-.INF", -math.inf), ("+.Inf", math.inf)],
        *[
            (text, text)
            for text in ("nULL", "no", "yes", "on", "y", "0b1", "1_000", "12:30", "0x", "-0x1F", "0o8")
        ],
        *[
            (text, text)
            for text in ("2026-07-19", "1,5", ".", "-", "+", "e3", "1e", ".e3", "inf", "nan", "=", "<<")
        ],
        *[(text, text) for text in ("١٢", "1²", "-.nan", "+.nan", ".iNF")],
    ],
)
def test_a_plain_scalar_means_what_the_core_schema_says(text: str, value: object) -> None:
    found = core_value(text)
    assert (type(found), found) == (type(value), value)


def test_a_plain_nan_is_a_float() -> None:
    assert all(math.isnan(core_value(text)) for text in (".nan", ".NaN", ".NAN"))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1" * 1_001, "0x" + "f" * 1_000, "1." + "0" * 1_000, "-" + "9" * 5_000])
def test_a_number_of_too_many_digits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a number has more than 1,000 digits"):
        core_value(text)


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_that_nobody_misreads_stays_plain(text: str) -> None:
    assert scalar(text) == text


@pytest.mark.parametrize(
    "text", [text for text in TRICKY_TEXTS if not text.isalpha() or len(text) < 6], ids=ascii
)
def test_a_text_that_somebody_could_misread_is_quoted(text: str) -> None:
    assert scalar(text)[0] == scalar(text)[-1] == '"' or text in PLAIN


@given(hostile_texts | st.sampled_from(PLAIN))
def test_a_scalar_reads_back_everywhere_in_block_and_flow(text: str) -> None:
    written = scalar(text)
    key = written if len(written) < 900 else "key"  # readers look for the colon of a key only so far
    document = f"a: {written}\nb: [{written}, {{c: {written}}}]\nd:\n  {key}: x\n"
    for loaded in (yaml.safe_load(document), ruamel.yaml.YAML(typ="safe", pure=True).load(document)):
        assert (loaded["a"], loaded["b"]) == (text, [text, {"c": text}])
        assert list(loaded["d"]) == [text if key is written else "key"]
    assert "\n" not in written


@given(st.floats())
def test_a_float_reads_back_everywhere(number: float) -> None:
    text = float_text(number)
    for loaded in (
        yaml.safe_load(text),
        ruamel.yaml.YAML(typ="safe", pure=True).load(text),
        core_value(text),
    ):
        assert isinstance(loaded, float)
        assert loaded == number or (math.isnan(loaded) and math.isnan(number))
