"""`model/` and `format/` know no files, clocks, ids or threads.

The import contract says so too, for imports through other modules of ours. This test also sees imports from
the standard library that smuggle in the same thing, and clocks that hide in a class method.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.source import imported_names, modules

IMPURE = {
    "asyncio",
    "concurrent",
    "logging",
    "multiprocessing",
    "os",
    "random",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
CLOCKS = {"now", "today", "utcnow"}


def impurities(tree: ast.Module) -> Iterator[str]:
    for line, name in imported_names(tree):
        if name.partition(".")[0] in IMPURE:
            yield f"line {line}: imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS:
                yield f"line {node.lineno}: reads the clock with {node.func.attr}()"
            if isinstance(node.func, ast.Name) and node.func.id == "open":
                yield f"line {node.lineno}: opens a file"


def test_the_model_and_the_formats_are_pure() -> None:
    found = {module.name: list(impurities(module.tree)) for module in modules("model", "format")}
    assert {name: reasons for name, reasons in found.items() if reasons} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "import os",
        "import os.path",
        "from time import monotonic",
        "def f():\n    import uuid",
        "from datetime import datetime\ndatetime.now()",
        "open('fact.md')",
    ],
)
def test_a_planted_impurity_is_found(planted: str) -> None:
    assert len(list(impurities(ast.parse(planted)))) == 1
