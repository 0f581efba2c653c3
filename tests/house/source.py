"""The files of the repository, as the house tests look at them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "deermem"

# Folders that git or a tool made: hidden ones but for those of CI, builds, byte code.
MADE = re.compile(r"\.(?!ci$|github$).*|build|dist|htmlcov|__pycache__|.*\.egg-info")


class Module(NamedTuple):
    """One module of the package."""

    name: str  # relative to src/deermem, with slashes
    text: str

    @property
    def tree(self) -> ast.Module:
        """The module's syntax tree."""
        return ast.parse(self.text, self.name)


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Lists the package's modules, or those below some of its folders."""
    starts = [PACKAGE / folder for folder in folders] or [PACKAGE]
    paths = sorted(path for start in starts for path in start.rglob("*.py"))
    return tuple(Module(path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8")) for path in paths)


@cache
def repository_files() -> tuple[Path, ...]:
    """Lists every file of the repository, also in an unpacked archive on a machine without git."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not MADE.fullmatch(name)]
        found += [Path(folder, name) for name in names if name != ".git"]  # a file in a linked work tree
    return tuple(sorted(found))


def repository_texts() -> Iterator[tuple[str, str]]:
    """Yields name and text of every file of the repository that is text."""
    for path in repository_files():
        data = path.read_bytes()
        if b"\0" not in data:
            yield path.relative_to(ROOT).as_posix(), data.decode("utf-8", "replace")


def imported_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and dotted name of everything that a module imports, wherever it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
