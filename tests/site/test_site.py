"""The site is built without a warning, has every page, and tells of everything that is public."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import deermem
from deermem import DeerMemConfig
from deermem.asgi.limits import LimitSettings
from deermem.cli.command_tree import command_tree
from deermem.gateway.auth.settings import AuthSettings
from deermem.gateway.settings import GatewaySettings
from tests.docs.test_documents import PAGES, ROOT
from tools.site import commands, routes
from tools.site.api import error_classes, exported, modules, path_of
from tools.site.places import uri_of

# What a browser would fetch: not what a reader may follow.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\ssrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\shref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|url\(["']?(?:https?:)?//[^)]+\)|@import\s+["'](?:https?:)?//[^"']+""",
    re.IGNORECASE,
)


def built(folder: Path) -> None:
    """Builds the site as `make site` does."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def page_file(uri: str) -> str:
    """Returns where MkDocs puts a page."""
    name = uri.removesuffix(".md")
    return f"{name}.html" if name == "index" else f"{name.removesuffix('/index')}/index.html"


def names() -> Iterator[str]:
    """Yields every name that the interface promises, as the reference calls it."""
    yield from (f"deermem.{name}" for name in deermem.__all__)
    yield from map(path_of, error_classes())
    yield from ("deermem.search.port.RetrievalAdapter", "deermem.search.port.AdapterHit")
    yield from (name for name in modules("testing") if "simulation." not in name)
    for package, (written, made) in exported("integrations").items():
        yield from (f"{package}.{name}" for name in [*written, *made])


def settings() -> Iterator[str]:
    """Yields every setting with its table."""
    tables = {"": DeerMemConfig, "gateway.": GatewaySettings, "auth.": AuthSettings, "limits.": LimitSettings}
    for table, kind in tables.items():
        yield from (f"setting-{table}{each.name}" for each in fields(kind))


def expected_anchors() -> Iterator[tuple[str, str]]:
    """Yields what must be found where: the file (empty for any) and the anchor."""
    yield from (("", name) for name in names())
    for command in command_tree().walk():
        if command.works:
            anchor = commands.anchor_of(command.name)
            yield "reference/code/commands/index.html", anchor
            yield from (
                ("reference/code/commands/index.html", f"{anchor}{each.long}") for each in command.options
            )
    for path, methods in routes.openapi()["paths"].items():
        for method in methods:
            yield "reference/code/routes/index.html", routes.anchor_of(method, path)
    yield from (("reference/code/settings/index.html", name) for name in settings())


@pytest.mark.timeout(600)
def test_the_site_is_built_strictly_and_tells_of_everything(tmp_path: Path) -> None:
    site = tmp_path / "site"
    built(site)
    html = {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in site.rglob("*.html")}
    anchors = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in html.items()}
    everywhere = set().union(*anchors.values())

    pages = [page_file(uri_of(page.relative_to(ROOT).as_posix())) for page in PAGES]
    navigation = html["index.html"]
    missing = {
        "pages": [name for name in pages if name not in html],
        "anchors": [
            (name, anchor)
            for name, anchor in expected_anchors()
            if anchor not in (anchors.get(name, ()) if name else everywhere)
        ],
        "in the navigation": [
            name
            for name in pages[1:]
            if f'href="{name.removesuffix("index.html")}"' not in navigation and name != "index.html"
        ],
    }
    assert missing == {"pages": [], "anchors": [], "in the navigation": []}

    styles = {path.name: path.read_text("utf-8") for path in site.rglob("*.css")}
    loaded = {name: LOADED.findall(text) for name, text in {**html, **styles}.items()}
    assert {name: found for name, found in loaded.items() if found} == {}


def test_what_a_page_would_load_from_elsewhere_is_found() -> None:
    for planted in (
        '<script src="https://cdn.example/x.js"></script>',
        "<link rel=stylesheet href=//fonts.example/css>",
        '<img alt="" src="http://badge.example/x.svg">',
        "src: url(https://fonts.example/a.woff2)",
    ):
        assert LOADED.search(planted), planted
    for harmless in (
        '<a href="https://example.org/">elsewhere</a>',
        '<script src="assets/x.js"></script>',
        '<link rel="canonical" href="https://example.org/">',
    ):
        assert not LOADED.search(harmless), harmless
