"""Links to a section work where the repository is shown, whose anchors are made of the headings."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs.test_documents import PAGES, name_of


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Returns the anchors of a page as GitHub makes them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8"))
    heads = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    found: set[str] = set()
    for head in heads:
        plain = re.sub(r"[*`]|\]\([^)]*\)|\[", "", head)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        name, count = slug, 0
        while name in found:
            count += 1
            name = f"{slug}-{count}"
        found.add(name)
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_sections_lead_to_one(page: Path) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8"))
    targets = [
        str(child.attrGet("href"))
        for token in tokens
        for child in token.children or []
        if child.attrGet("href")
    ]
    lost = []
    for target in targets:
        name, _, anchor = target.partition("#")
        other = page.parent / name if name else page
        if (
            anchor
            and "://" not in target
            and other.suffix == ".md"
            and anchor not in anchors_of(other.resolve())
        ):
            lost.append(target)
    assert lost == []
