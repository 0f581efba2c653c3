"""The hooks that MkDocs calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path, wherever it was started

from tools.site import generated, overviews  # noqa: E402 - needs the line above
from tools.site.navigation import navigation, order_of  # noqa: E402
from tools.site.places import ROOT_TEXTS, with_site_links  # noqa: E402
from tools.site.unreleased import with_unreleased  # noqa: E402


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not below docs/, and puts all of them in order."""
    for name, uri in ROOT_TEXTS.items():
        if (ROOT / name).is_file():
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, "site.css", abs_src_path=str(Path(__file__).with_name("site.css"))))
    for uri, text in generated.pages().items():
        files.append(File.generated(config, uri, content=text))
    order = order_of((ROOT / "README.md").read_text("utf-8"))
    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    for uri, text in overviews.pages(texts, [*order, *generated.ORDER]).items():
        files.append(File.generated(config, uri, content=text))
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = navigation(pages, [*order, *generated.ORDER])
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Leads links to where the pages are on the site."""
    uri = page.file.src_uri
    if uri in ("index.md", "zh.md") or uri.startswith("tutorial/"):
        page.meta["hide"] = ["navigation"]  # it would be a list of one
    if page.file.generated_by is None or page.file.abs_src_path is not None:
        pages = {file.src_uri for file in files}
        if uri == ROOT_TEXTS["CHANGELOG.md"]:
            markdown = with_unreleased(markdown, ROOT / "changelog.d")
        markdown = with_site_links(
            generated.led(markdown, uri), uri, pages, exists=lambda path: (ROOT / path).exists()
        )
    return markdown


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Says in which language a page is."""
    if page.file.src_uri == ROOT_TEXTS["README_zh.md"]:
        output = output.replace('<html lang="en"', '<html lang="zh"', 1)
    return output
