"""The extra: what is said without it, and that nobody else needs it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def test_without_the_sdk_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("deermem.integrations.anthropic")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ImportError, match=r'pip install "deermem\[anthropic\]"'):
        importlib.import_module("deermem.integrations.anthropic")


def test_nothing_else_of_the_package_imports_the_sdk() -> None:
    code = (
        "import sys, deermem, deermem.integrations; deermem.DeerMem, deermem.MemoryRepository; "
        "sys.exit(any(name.split('.')[0] == 'anthropic' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
