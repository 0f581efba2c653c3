"""DeerFlow's memory in DeerMem's files, by one line of DeerFlow's configuration.

Either is enough, in DeerFlow's `config.yaml`:

- `memory.backend_config.storage_class: deermem.integrations.deerflow.DeerMemStorage`: DeerFlow's manager
  accepts it as its storage.
- `memory.manager_class: deermem.integrations.deerflow:DeerMemManager`: DeerFlow's manager with this storage
  in it, and no search index beside it.

Both classes have base classes of DeerFlow's, so they are made where DeerFlow is: importing this package
without it is an `ImportError`. The manager's base brings DeerFlow's model libraries along and is looked for
only when `DeerMemManager` is. docs/how-to/use-with-deerflow.md tells how to begin and how to go back,
docs/internals/deerflow.md what becomes of each call.
"""

from __future__ import annotations

from typing import Any

from deermem.integrations.deerflow.host import Host, load_host, load_manager_class
from deermem.integrations.deerflow.manager import make_manager_class
from deermem.integrations.deerflow.storage import StorageMethods

__all__ = ["DeerMemManager", "DeerMemStorage"]


def _make_storage_class(host: Host) -> type[Any]:
    members = {"__module__": __name__, "__doc__": StorageMethods.__doc__, "host": host}
    return type("DeerMemStorage", (StorageMethods, host.storage_class), members)


DeerMemStorage: type[Any] = _make_storage_class(load_host())


def __getattr__(name: str) -> Any:
    if name != "DeerMemManager":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    manager = make_manager_class(load_manager_class(), __name__)
    # Once made, it is found without this function, and is the same class for everybody.
    return globals().setdefault(name, manager)


def __dir__() -> list[str]:
    return __all__
