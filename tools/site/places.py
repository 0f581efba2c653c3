"""Where the texts of the repository are on the site, and how links between them are told there.

A link in a document is a path in the repository, so that it works where the repository is shown. The site has
the same pages at places of its own.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection
from typing import Final

DOCS: Final = "docs/"
INDEX: Final = "index.md"

# The texts beside docs/ that are pages, by their place on the site.
ROOT_TEXTS: Final = {
    "README.md": INDEX,
    "README_zh.md": "zh.md",
    "ARCHITECTURE.md": "internals/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
}
_REPOSITORY_PATHS: Final = {uri: path for path, uri in ROOT_TEXTS.items()}

_FENCED: Final = re.compile(r"^(`{3,}|~{3,}).*?^\1[`~]*$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<target>[^()\s]+)\)")
_FOREIGN: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//|#")


def uri_of(path: str) -> str:
    """Returns the place on the site of a path of the repository, whether there is a page or not."""
    if path in ROOT_TEXTS:
        return ROOT_TEXTS[path]
    inside = path.removeprefix(DOCS)
    is_file = "." in posixpath.basename(inside)
    return inside if is_file else f"{inside.rstrip('/')}/{INDEX}"


def path_of(uri: str) -> str:
    """Returns the path in the repository of a page."""
    return _REPOSITORY_PATHS.get(uri, DOCS + uri)


def relative(uri: str, page: str) -> str:
    """Returns how one page names another."""
    return posixpath.relpath(uri, posixpath.dirname(page) or ".")


def with_site_links(
    text: str, page: str, pages: Collection[str], exists: Callable[[str], bool] = lambda _: True
) -> str:
    """Returns a document with its links as they are on the site.

    What is in the repository but not on the site, such as source code, is named and not linked. What is
    nowhere stays as it is, for MkDocs to find.

    Args:
        text: The Markdown of the page.
        page: Its place on the site.
        pages: The places of all pages and pictures.
        exists: Tells whether the repository has a path.
    """
    folder = posixpath.dirname(path_of(page))

    def told(link: re.Match[str]) -> str:
        if _FOREIGN.match(link["target"]):
            return link[0]
        target, hash_sign, anchor = link["target"].partition("#")
        path = posixpath.normpath(posixpath.join(folder, target))
        uri = uri_of(path)
        if uri not in pages:
            return str(link["text"] if exists(path) else link[0])
        return f"{link['image']}[{link['text']}]({relative(uri, page)}{hash_sign}{anchor})"

    return outside_of_code(text, lambda part: _LINK.sub(told, part))


def outside_of_code(text: str, change: Callable[[str], str]) -> str:
    """Returns a document with everything but its fenced blocks changed."""
    parts: list[str] = []
    end = 0
    for block in _FENCED.finditer(text):
        parts += change(text[end : block.start()]), block[0]
        end = block.end()
    return "".join([*parts, change(text[end:])])
