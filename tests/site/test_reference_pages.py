"""What the reference says by hand of defaults and ranges is what the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import pytest

from deermem import DeerMemConfig, config
from deermem.asgi import limits
from deermem.asgi.limits import LimitSettings
from deermem.cli.command_tree import Option, command_tree
from deermem.gateway import settings as gateway
from deermem.gateway.auth.settings import AuthSettings
from deermem.gateway.settings import GatewaySettings
from tests.docs.test_documents import ROOT
from tools.site.settings import default_of

REFERENCE = ROOT / "docs" / "reference"
# What a page tells in words, because it is found out at the start or has to be given.
IN_WORDS = {"storage_path", "user", "token_file", "issuer", "audience"}


def rows_of(page: str, section: str) -> Mapping[str, list[str]]:
    """Returns the rows of the tables of a section by the code in their first cell."""
    text = (REFERENCE / page).read_text("utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in re.split(r"(?<!\\)\|", rest)] for name, rest in rows}


def numbers_in(text: str) -> list[float]:
    return [float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def settings_told() -> Iterator[tuple[str, Any, str]]:
    """Yields each setting: its name, what it is without being given, and the cell that tells that."""
    tables = (
        (DeerMemConfig, "configuration.md", "", 0),
        (GatewaySettings, "http.md", "Settings", 1),
        (AuthSettings, "authentication.md", "Settings", 2),
        (LimitSettings, "authentication.md", "Limits", 1),
    )
    for kind, page, section, column in tables:
        rows = rows_of(page, section)
        for each in fields(kind):
            yield each.name, default_of(each), rows[each.name][column]


@pytest.mark.parametrize(
    ("name", "default", "told"), list(settings_told()), ids=lambda value: str(value)[:20]
)
def test_the_default_of_a_setting_is_told_as_it_is(name: str, default: Any, told: str) -> None:
    if name in IN_WORDS:
        return
    match default:
        case bool():
            assert told.strip("`").lower() == str(default).lower()
        case int() | float():
            assert numbers_in(told) == [default]
        case str() if default:
            assert default in told
        case _ if default:
            assert all(each in told for each in default)
        case _:
            assert told  # what happens then


@pytest.mark.parametrize(
    ("name", "told"), list(rows_of("configuration.md", "").items()), ids=lambda value: str(value)[:20]
)
def test_the_range_of_a_setting_is_told_as_it_is(name: str, told: list[str]) -> None:
    limits_of = config._RANGES.get(name)
    assert limits_of is None or numbers_in(told[1])[:2] == list(limits_of[1:])


def test_every_range_is_of_a_setting() -> None:
    for kind, ranges in (
        (DeerMemConfig, config._RANGES),
        (GatewaySettings, gateway._RANGES),
        (LimitSettings, limits._RANGES),
    ):
        assert set(ranges) <= {each.name for each in fields(kind)}


def options_with_defaults() -> Iterator[tuple[str, Option]]:
    for command in command_tree().walk():
        yield from ((command.name, option) for option in command.options if option.default not in ("", "-"))


@pytest.mark.parametrize(
    ("command", "option"),
    list(options_with_defaults()),
    ids=lambda value: value.long if isinstance(value, Option) else value,
)
def test_the_default_of_an_option_is_told_as_it_is(command: str, option: Option) -> None:
    text = (REFERENCE / "command-line.md").read_text("utf-8")
    section = re.split(rf"^### deermem {command}\b.*$", text, maxsplit=1, flags=re.MULTILINE)[1].partition(
        "\n### "
    )[0]
    (row,) = re.findall(rf"^\| `{option.long}\b.*$", section, re.MULTILINE)
    assert option.default in row
