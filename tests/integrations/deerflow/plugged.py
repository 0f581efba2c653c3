"""A pytest plugin for DeerFlow's own tests: its file storage is this one, and so is its manager, if asked.

`DEERMEM_PLUGGED` is `storage` or `manager`.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from tests.integrations.deerflow import double

_storage: Any = importlib.import_module(double.STORAGE)
_paths: Any = importlib.import_module(double.STORAGE.replace(".storage", ".paths"))
_front_door: Any = importlib.import_module("deermem.integrations.deerflow")


def _memory_file_path(self: Any, agent_name: str | None = None, *, user_id: str | None = None) -> Any:
    """Is private in DeerFlow's storage; its tests ask it where the files are."""
    return _paths.memory_file_path(self._config, agent_name, user_id=user_id)


_storage.FileMemoryStorage = type(
    "PluggedStorage", (_front_door.DeerMemStorage,), {"_get_memory_file_path": _memory_file_path}
)
if os.environ.get("DEERMEM_PLUGGED") == "manager":
    _manager: Any = importlib.import_module(double.MANAGER)
    _package: Any = importlib.import_module(double.ROOT)
    _manager.DeerMem = _package.DeerMem = _package.MANAGER_CLASS = _front_door.DeerMemManager
