"""The first page of each section: what is in it, by the titles and first sentences of its pages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tools.site.navigation import SECTIONS, navigation
from tools.site.places import INDEX, with_site_links

_ABOUT: Final = {
    "how-to": "Each page answers one question of somebody who has something to do.",
    "reference": "What there is, to look up.",
    "internals": "How it works, and how that is known.",
    "decisions": "Why it is so: what was chosen, what it was chosen over, and by which figures.",
    "project": "For those who change DeerMem, or run it.",
}
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_SENTENCE: Final = re.compile(r"(.+?[.:])(?=\s|$)", re.DOTALL)


def pages(texts: Mapping[str, str], order: Sequence[str]) -> Mapping[str, str]:
    """Returns an overview of each section that has several pages and none of its own.

    Args:
        texts: The pages by their places.
        order: The order of the pages.
    """
    made = {}
    for folder, title in SECTIONS.items():
        index = f"{folder}/{INDEX}"
        inside = [uri for uri in _flat(navigation(texts, order)) if posixpath.dirname(uri) == folder]
        if index not in texts and len(inside) > 1:
            rows = [_row(uri, texts) for uri in inside]
            made[index] = "\n".join([f"# {title}", "", _ABOUT.get(folder, ""), "", *rows, ""])
    return made


def _row(uri: str, texts: Mapping[str, str]) -> str:
    text = texts[uri]
    return f"- **[{title_in(text)}]({posixpath.basename(uri)})**<br>{_first_sentence(text, uri, texts)}"


def title_in(text: str) -> str:
    """Returns the title of a page."""
    found = _TITLE.search(text)
    return found[1] if found else ""


def _first_sentence(text: str, uri: str, texts: Mapping[str, str]) -> str:
    after = text[found.end() :] if (found := _TITLE.search(text)) else text
    paragraph = next((each for each in after.split("\n\n") if each.strip()), "").strip()
    plain = with_site_links(" ".join(paragraph.split()), uri, texts)
    found = _SENTENCE.match(plain)
    return f"{found[1][:-1]}." if found and not plain.startswith(("#", "|", "```", "- ")) else ""


def _flat(items: Sequence[object]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            for inner in item.values():
                yield from [inner] if isinstance(inner, str) else _flat(inner)
