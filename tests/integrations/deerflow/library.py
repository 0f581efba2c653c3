"""The DeerFlow that the tests run with: the checkout that `DEERFLOW_SRC` names, else the double."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.deerflow import double

SOURCE = os.environ.get("DEERFLOW_SRC", "")
real_only = pytest.mark.skipif(not SOURCE, reason="DEERFLOW_SRC names no checkout of DeerFlow")

PATHS = [str(Path(SOURCE, "backend", part)) for part in ("packages/harness", "packages/extension-api")]

if SOURCE:
    sys.path[:0] = PATHS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of DeerFlow's own imports are not ours
        for _name in double.PLACES:
            importlib.import_module(_name)
else:
    double.install()


def module(name: str) -> Any:
    """Returns a module of DeerFlow's, or what stands in for it."""
    return importlib.import_module(name)


storage_module = module(double.STORAGE)
front_door: Any = importlib.import_module("deermem.integrations.deerflow")


def config(path: Path | str, **settings: Any) -> Any:
    """Returns DeerFlow's configuration for a storage root."""
    return module(double.CONFIG).DeerMemConfig(
        storage_path=str(path), **{"retrieval_adapter": "", **settings}
    )


def fact(fact_id: str, content: str = "likes tea", **fields: Any) -> dict[str, Any]:
    """Returns a fact as DeerFlow's updater makes one."""
    return {
        "id": fact_id,
        "content": content,
        "category": "preference",
        "confidence": 0.8,
        "createdAt": "2026-08-01T00:00:00Z",
        "source": "thread-1",
        **fields,
    }
