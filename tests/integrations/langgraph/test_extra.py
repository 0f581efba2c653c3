"""The extra: what is said without it, and that nobody else needs it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def test_without_langgraph_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("deermem.integrations.langgraph")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    with pytest.raises(ImportError, match=r'pip install "deermem\[langgraph\]"'):
        importlib.import_module("deermem.integrations.langgraph")


def test_nothing_else_of_the_package_imports_langgraph() -> None:
    code = (
        "import sys, deermem, deermem.integrations; deermem.DeerMem, deermem.MemoryRepository; "
        "sys.exit(any(name.split('.')[0] in ('langgraph', 'langchain_core') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_store_needs_only_what_its_extra_brings() -> None:
    code = (
        "import sys, deermem.integrations.langgraph; "
        "sys.exit(any(name.startswith(('langgraph.graph', 'langgraph.pregel')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
