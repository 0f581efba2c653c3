"""DeerFlow's own memory manager with its storage swapped.

Its queue, its extraction, its contexts and its tools stay DeerFlow's, so that its middleware calls what it
always called; what is stored goes through DeerMem.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import new_class
from typing import Any, Final

from deermem.integrations.deerflow.opening import note_ignored_adapter

STORAGE_PATH: Final = "deermem.integrations.deerflow.DeerMemStorage"
_OWN: Final = ("", "file")
_DOCUMENT: Final = """Is DeerFlow's memory manager over DeerMem's files.

    Set `memory.manager_class: deermem.integrations.deerflow:DeerMemManager` in DeerFlow's configuration;
    `memory.backend_config` is what it is for DeerFlow's own manager.
    """

_log = logging.getLogger(__name__)


def make_manager_class(base: type[Any], module: str) -> type[Any]:
    """Returns the manager as a subclass of DeerFlow's.

    Args:
        base: DeerFlow's `DeerMem`.
        module: Where the class is found by its name.
    """

    def model_post_init(self: Any, context: Any, /) -> None:
        given = self.backend_config
        self.backend_config = with_storage(given)
        try:
            base.model_post_init(self, context)
        finally:
            self.backend_config = given

    def add_members(namespace: dict[str, Any]) -> None:
        namespace.update(__module__=module, __doc__=_DOCUMENT, model_post_init=model_post_init)

    return new_class("DeerMemManager", (base,), exec_body=add_members)


def with_storage(backend_config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns a configuration by which DeerFlow builds this storage, and no search index beside it."""
    config = dict(backend_config or {})
    named = config.get("storage_class") or ""
    if named not in (*_OWN, STORAGE_PATH):
        _log.warning("storage_class %r is ignored: DeerMemManager stores with %s", named, STORAGE_PATH)
    note_ignored_adapter(config.get("retrieval_adapter") or "")
    return {**config, "storage_class": STORAGE_PATH, "retrieval_adapter": ""}
