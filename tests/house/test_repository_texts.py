"""The repository speaks of the project alone, and works on any machine."""

from __future__ import annotations

import re

import pytest

from tests.house.source import repository_texts

# Written in pieces, or this file would be the first to break the rule.
INDEXES = (
    "pypi" + r"\.(?:org|python)",
    "pythonhosted" + r"\.",
    r"registry\.npm" + "js",
    r"--(?:extra-)?index-" + "url[ =]",
)
FORBIDDEN = {
    "a path of one machine": re.compile(
        r"(?<![\w.}*-])/(?:work|root|workspace)/|/home/[a-z]+/|/Users/[A-Za-z]+/"
    ),
    "a package index": re.compile("|".join(INDEXES)),
    "a second lock file": re.compile("uv" + r"\.lock"),
}


def offences(text: str) -> list[str]:
    return [
        f"line {number}: {what}: {line.strip()[:80]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]


def test_no_text_names_a_machine_or_a_package_index() -> None:
    found = {name: offences(text) for name, text in repository_texts()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "see /" + "work/notes",
        "cd /" + "home/someone/deermem",
        "https://" + "pypi" + ".org/simple",
        "--index-" + "url https://example.org",
        "commit " + "uv" + ".lock",
    ],
)
def test_a_planted_text_is_found(planted: str) -> None:
    assert len(offences(planted)) == 1
