"""Links, the order of the pages and what is made of files, without building the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_documents import PAGES, ROOT, name_of
from tools.site import overviews
from tools.site.navigation import navigation, order_of
from tools.site.places import path_of, uri_of, with_site_links
from tools.site.unreleased import MARK, with_unreleased

URIS = {
    "index.md",
    "internals/architecture.md",
    "how-to/a.md",
    "how-to/b.md",
    "reference/x.md",
    "decisions/index.md",
    "internals/x.svg",
}


def flat(items: list[object]) -> list[object]:
    found: list[object] = []
    for item in items:
        found += flat(next(iter(item.values()))) if isinstance(item, dict) else [item]
    return found


@pytest.mark.parametrize(
    ("page", "written", "shown"),
    [
        ("index.md", "[a](docs/how-to/a.md#part)", "[a](how-to/a.md#part)"),
        ("index.md", "[`code`](ARCHITECTURE.md)", "[`code`](internals/architecture.md)"),
        ("index.md", "[why](docs/decisions)", "[why](decisions/index.md)"),
        ("internals/architecture.md", "[a](docs/how-to/a.md)", "[a](../how-to/a.md)"),
        ("how-to/a.md", "[home](../../README.md)", "[home](../index.md)"),
        ("how-to/a.md", "[b](b.md)", "[b](b.md)"),
        ("index.md", "![chart](docs/internals/x.svg)", "![chart](internals/x.svg)"),
        ("how-to/a.md", "[example](../../examples/x/README.md)", "example"),
        ("how-to/a.md", "[source](../../src/deermem/errors.py)", "source"),
        (
            "how-to/a.md",
            "[far](https://example.org/a.md) [here](#part)",
            "[far](https://example.org/a.md) [here](#part)",
        ),
        ("how-to/a.md", "```text\n[b](../reference/x.md)\n[source](../../src/x.py)\n```", None),
    ],
)
def test_a_link_leads_to_where_the_page_is_on_the_site(page: str, written: str, shown: str | None) -> None:
    assert with_site_links(written, page, URIS) == (written if shown is None else shown)


def test_a_link_that_leads_nowhere_is_left_for_the_strict_build() -> None:
    assert with_site_links("[x](nowhere.md)", "how-to/a.md", URIS, lambda _: False) == "[x](nowhere.md)"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_has_one_place_on_the_site(page: Path) -> None:
    path = page.relative_to(ROOT).as_posix()
    assert path_of(uri_of(path)) == path


def test_pages_come_in_the_order_of_the_readme_and_none_is_left_out() -> None:
    order = order_of(
        "# T\n\n## Documentation\n\n| [b](docs/how-to/b.md#x), [a](docs/how-to/a.md) |\n\n## More\n"
    )
    pages = [*URIS, "how-to/new.md", "tutorial/first.md", "elsewhere/page.md"]
    items = navigation(pages, order)
    assert sorted(map(str, flat(items))) == sorted(pages)
    assert [next(iter(item)) for item in items[1:]] == [
        "Tutorial",
        "How-to guides",
        "Reference",
        "Internals",
        "Decisions",
        "Elsewhere",
    ]
    assert flat(items)[2:5] == ["how-to/b.md", "how-to/a.md", "how-to/new.md"]


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "reference"])
def test_the_table_of_the_readme_names_every_page(folder: str) -> None:
    order = order_of((ROOT / "README.md").read_text("utf-8"))
    names = [f"{folder}/{page.name}" for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    assert [name for name in names if name not in order] == []


def test_a_section_opens_with_what_its_pages_are() -> None:
    texts = {
        "index.md": "# All\n",
        "how-to/a.md": "# Do *a*\n\nFor a. [More](b.md).\n",
        "how-to/b.md": "# Do b\n\n`b` is: the second.\n\nMore.\n",
    }
    made = overviews.pages(texts, ["how-to/b.md", "how-to/a.md"])
    assert made["how-to/index.md"].splitlines()[-2:] == [
        "- **[Do b](b.md)**<br>`b` is.",
        "- **[Do *a*](a.md)**<br>For a.",
    ]


def test_the_page_of_changes_tells_what_is_not_released_yet(tmp_path: Path) -> None:
    for name, text in (
        ("2.fixed.md", "Mended."),
        ("+new.added.md", "There is\nmore."),
        ("3.fixed.2.md", "Also."),
    ):
        (tmp_path / name).write_text(text, "utf-8")
    shown = with_unreleased(f"# Changes\n\n{MARK}## 1.0\n", tmp_path)
    assert shown.splitlines() == [
        "# Changes",
        "",
        "## Not released yet",
        "",
        "### Added",
        "",
        "- There is more.",
        "",
        "### Fixed",
        "",
        "- Mended.",
        "- Also.",
        "",
        "## 1.0",
    ]


def test_the_page_of_changes_has_the_mark() -> None:
    assert MARK in (ROOT / "CHANGELOG.md").read_text("utf-8")
