"""The code blocks of the README and of everything below docs/ do what they say."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from tests.docs.blocks import RUN, SHOWN, blocks
from tests.docs.execution import run_document

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

# How many blocks of a document are marked `<!-- not run: … -->`: a new one is a decision to be made here.
NOT_RUN: dict[str, int] = {}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.skipif(sys.platform == "win32", reason="the documents speak to a POSIX shell")
@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_the_code_blocks_of_the_document_run(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in [name for name in os.environ if name.startswith("DEERMEM_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    run_document(name_of(document), document.read_text("utf-8"))


def stale(code: str) -> list[str]:
    """Returns the files that a script waits for, and that may be there from its last run."""
    fresh = {found[1]: found.start() for found in re.finditer(r"rm -f (\S+)", code)}
    waits = [(found[1], found.start()) for found in re.finditer(r"until test -s (\S+);", code)]
    return [name for name, place in waits if fresh.get(name, place) >= place]


def test_what_a_document_waits_for_is_not_there_from_an_earlier_run() -> None:
    assert stale("serve > a.url &\nuntil test -s a.url; do") == ["a.url"]
    assert stale("rm -f b.url\nserve > a.url &\nuntil test -s a.url; do") == ["a.url"]
    found = {
        name_of(each): [name for block in blocks(each.read_text("utf-8")) for name in stale(block.code)]
        for each in DOCUMENTS
    }
    assert {name: files for name, files in found.items() if files} == {}


def roots(text: str) -> set[str]:
    """Returns the storage roots that the blocks of a document make in the current directory."""
    said = (
        r"DEERMEM_DATA_DIR=\$PWD/(\S+)",
        r"--storage-path ([\w-]+)",
        r'"(?:--storage-path", |storage_path": )"([\w-]+)"',
        r'\w+(?:Repository|Store|Passwords)\("([\w-]+)"',
    )
    code = "".join(block.code for block in blocks(text) if block.runs)
    return {name for pattern in said for name in re.findall(pattern, code)}


def test_each_document_has_a_storage_root_that_no_other_has() -> None:
    found = {name_of(each): roots(each.read_text("utf-8")) for each in DOCUMENTS}
    del found["README_zh.md"]  # the same blocks as in README.md
    counted = Counter(name for names in found.values() for name in names)
    assert len(counted) > 10
    assert {name: count for name, count in counted.items() if count > 1} == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_no_command_needs_a_recent_curl(document: Path) -> None:
    recent = re.compile(r"curl [^\n|]*--json|%header\{")  # 7.82 and 7.84 brought them
    assert recent.findall(document.read_text("utf-8")) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_block_has_a_language_that_says_whether_it_runs(document: Path) -> None:
    found = list(blocks(document.read_text("utf-8")))
    assert [(block.line, block.language) for block in found if block.language not in RUN | SHOWN] == []


def test_the_blocks_that_do_not_run_are_counted_and_give_their_reason() -> None:
    counted = {}
    for document in DOCUMENTS:
        reasons = [
            block.not_run for block in blocks(document.read_text("utf-8")) if block.not_run is not None
        ]
        assert all(reasons), f"{name_of(document)}: a block is marked as not run without a reason"
        if reasons:
            counted[name_of(document)] = len(reasons)
    assert counted == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = [
        str(target)
        for token in MarkdownIt("commonmark").parse(page.read_text("utf-8"))
        for child in token.children or []
        if (target := child.attrGet("href") or child.attrGet("src"))
    ]
    files = [unquote(target.partition("#")[0]) for target in targets if "://" not in target]
    assert [name for name in files if name and not (page.parent / name).exists()] == []
