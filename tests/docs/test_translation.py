"""The Chinese README says what the English one says: the same sections, code, and links."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt

from tests.docs.blocks import blocks
from tests.docs.test_documents import ROOT

ENGLISH = (ROOT / "README.md").read_text("utf-8")
CHINESE = (ROOT / "README_zh.md").read_text("utf-8")
EACH_OTHER = {"README.md", "README_zh.md"}


def outline(text: str) -> list[str]:
    """Returns what a document is made of, part by part, without what it says."""
    return [token.type + token.tag for token in MarkdownIt("commonmark").enable("table").parse(text)]


def links(text: str) -> Iterator[str]:
    """Yields where a document leads to, in its order."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or []:
            target = str(child.attrGet("href") or "")
            if target and target not in EACH_OTHER:
                yield target


def test_both_have_the_same_code_blocks() -> None:
    assert [(each.language, each.code) for each in blocks(CHINESE)] == [
        (each.language, each.code) for each in blocks(ENGLISH)
    ]


def test_both_have_the_same_sections_paragraphs_lists_and_tables() -> None:
    assert outline(CHINESE) == outline(ENGLISH)


def test_both_lead_to_the_same_places() -> None:
    assert list(links(CHINESE)) == list(links(ENGLISH))


@pytest.mark.parametrize(("text", "other"), [(ENGLISH, "README_zh.md"), (CHINESE, "README.md")])
def test_each_leads_to_the_other(text: str, other: str) -> None:
    assert f"]({other})" in text


def test_what_differs_is_found() -> None:
    text = "# A\n\nOne [link](x.md).\n\n- item\n"
    assert outline(text) != outline(text + "\nMore.\n")
    assert list(links(text)) != list(links(text.replace("x.md", "y.md")))
