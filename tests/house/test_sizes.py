"""Modules and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.source import ROOT, modules, repository_files

MODULE_LINES = 320
FUNCTION_LINES = 65
FILE_BYTES = 1_000_000


def long_functions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{node.name} ({length} lines)"


def test_no_module_is_longer_than_a_reader_can_keep_in_mind() -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules()}
    assert {name: length for name, length in lengths.items() if length > MODULE_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    found = {module.name: list(long_functions(module.tree)) for module in modules()}
    assert {name: functions for name, functions in found.items() if functions} == {}


def test_no_file_of_the_repository_is_large() -> None:
    sizes = {path.relative_to(ROOT).as_posix(): path.stat().st_size for path in repository_files()}
    assert {name: size for name, size in sizes.items() if size > FILE_BYTES} == {}


def test_a_function_one_line_too_long_is_found() -> None:
    body = "    x = 1\n" * (FUNCTION_LINES - 1)
    assert list(long_functions(ast.parse(f"def fits():\n{body}"))) == []
    assert list(long_functions(ast.parse(f"def grows():\n{body}    return\n"))) == ["grows (66 lines)"]
