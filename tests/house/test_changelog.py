"""Changelog fragments have names that the release tool gathers, and say something."""

from __future__ import annotations

import re
import tomllib

from tests.house.source import ROOT

FRAGMENTS = ROOT / "changelog.d"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
KINDS = "|".join(kind["directory"] for kind in SETTINGS["type"])
NAME = re.compile(rf"(?:\d+|\+[a-z0-9-]+)\.(?:{KINDS})(?:\.\d+)?\.md")


def test_every_fragment_has_a_name_that_will_be_gathered() -> None:
    names = [path.name for path in FRAGMENTS.iterdir() if path.name != "README.md"]
    assert [name for name in names if not NAME.fullmatch(name)] == []


def test_no_fragment_is_empty() -> None:
    assert [path.name for path in FRAGMENTS.glob("*.md") if not path.read_text("utf-8").strip()] == []
