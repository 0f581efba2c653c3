"""The public names are one sorted list, and each of them is documented."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import deermem
from tests.house.source import ROOT

REFERENCE = ROOT / "docs" / "reference"


def test_the_public_names_are_sorted_and_exist() -> None:
    names = list(deermem.__all__)
    assert names == sorted(set(names))
    assert [name for name in names if not hasattr(deermem, name)] == []
    assert [name for name in dir(deermem) if name not in names] == []


def test_importing_the_package_loads_no_more_than_is_used() -> None:
    code = "import sys, deermem; deermem.Scope; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"yaml", "deermem.manager", "deermem.repository", "typer", "fastapi"} & set(loaded.split())


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="docs/reference does not exist yet")
def test_every_public_name_is_documented() -> None:
    pages = "\n".join(page.read_text("utf-8") for page in REFERENCE.rglob("*.md"))
    text = re.sub(r"^```.*?^```", "", pages, flags=re.DOTALL | re.MULTILINE)  # an example explains nothing
    code_words = {word for span in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", span)}
    assert [name for name in deermem.__all__ if name not in code_words] == []


def test_the_package_tells_its_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", deermem.__version__)
