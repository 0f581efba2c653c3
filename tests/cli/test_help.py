"""The help names values as the documents do."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.test_reference import COMMANDS


@pytest.mark.parametrize("name", ["", *COMMANDS])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_the_help_shows_no_type_and_no_range_of_python(cli: CommandLine, name: str, option: str) -> None:
    shown = cli.ok(*name.split(), option).out
    assert "--help" in shown
    assert not re.search(r"<(str|bool|int|float|list|int range)\b|<=x|INTEGER", shown)


@pytest.mark.parametrize(
    ("name", "default"),
    [("list", "100"), ("search", "10"), ("add", "0.5"), ("token create", "user"), ("serve", "8431")],
)
def test_the_help_shows_what_holds_without_an_option(cli: CommandLine, name: str, default: str) -> None:
    assert default in cli.ok(*name.split(), "--help").out
