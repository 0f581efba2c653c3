"""The order of the pages: that in which the README names them, then what it does not name, by name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from tools.site.places import INDEX, uri_of

SECTIONS: Final = {
    "tutorial": "Tutorial",
    "how-to": "How-to guides",
    "reference": "Reference",
    "reference/code": "From the code",
    "internals": "Internals",
    "decisions": "Decisions",
    "project": "Project",
}
_TITLES: Final = {"zh.md": "中文"}  # its own title is that of the first page
_NAMED: Final = re.compile(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)")


def order_of(readme: str) -> list[str]:
    """Returns the pages that the README's table of documents names, in its order."""
    table = readme.partition("\n## Documentation\n")[2].partition("\n## ")[0]
    return list(dict.fromkeys(uri_of(path) for path in _NAMED.findall(table)))


def navigation(pages: Collection[str], order: Sequence[str]) -> list[Any]:
    """Returns the navigation as MkDocs takes it: pages by folder, none left out.

    Args:
        pages: The places of all pages.
        order: Places in the order in which they are to come; others follow by their names.
    """
    ranks = {uri: rank for rank, uri in enumerate(order)}

    def rank(uri: str) -> tuple[bool, int, str]:
        return posixpath.basename(uri) != INDEX, ranks.get(uri, len(ranks)), uri

    top = sorted((uri for uri in pages if "/" not in uri), key=rank)
    folders = {posixpath.dirname(uri) for uri in pages} - {""}
    known = [each for each in SECTIONS if each in folders]
    rest = sorted(folders - set(known))
    sections = [
        {title_of(folder): _section(folder, folders, pages, rank)}
        for folder in [*known, *rest]
        if "/" not in folder
    ]
    return [top[0], *sections, *({_TITLES[uri]: uri} if uri in _TITLES else uri for uri in top[1:])]


def _section(folder: str, folders: Iterable[str], pages: Iterable[str], rank: Any) -> list[Any]:
    own = sorted((uri for uri in pages if posixpath.dirname(uri) == folder), key=rank)
    below = sorted(each for each in folders if posixpath.dirname(each) == folder)
    return [*own, *({title_of(each): _section(each, folders, pages, rank)} for each in below)]


def title_of(folder: str) -> str:
    """Returns what a section is called."""
    return SECTIONS.get(folder, posixpath.basename(folder).replace("-", " ").capitalize())
