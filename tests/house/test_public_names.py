"""The public names are one sorted list, and each of them is documented."""

from __future__ import annotations

import re

import pytest

import deermem
from tests.house.source import ROOT

REFERENCE = ROOT / "docs" / "reference"


def test_the_public_names_are_sorted_and_exist() -> None:
    names = list(deermem.__all__)
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(deermem, name)] == []


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="docs/reference does not exist yet")
def test_every_public_name_is_documented() -> None:
    pages = "\n".join(page.read_text("utf-8") for page in REFERENCE.rglob("*.md"))
    text = re.sub(r"^```.*?^```", "", pages, flags=re.DOTALL | re.MULTILINE)  # an example explains nothing
    code_words = {word for span in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", span)}
    assert [name for name in deermem.__all__ if name not in code_words] == []
