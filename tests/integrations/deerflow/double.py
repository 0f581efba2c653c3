"""Stands in for DeerFlow where there is none: names, signatures, errors and the shape of what is passed.

`test_double.py` compares it with a checkout, where `DEERFLOW_SRC` names one. It has no behaviour but what the
tests need: nothing here stores anything.
"""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from types import ModuleType
from typing import Any, ClassVar, Literal, Self

ROOT = "deerflow.agents.memory.backends.deermem"
STORAGE = f"{ROOT}.deermem.core.storage"
MANAGER = f"{ROOT}.deer_mem"
CONFIG = f"{ROOT}.deermem.config"
EVICTION = f"{ROOT}.deermem.core.eviction"
CONTRACT = "deerflow.agents.memory.manager"

Document = dict[str, Any]


class MemoryStorageError(RuntimeError):
    pass


class MemoryStorageCorruption(MemoryStorageError):
    pass


class MemoryRevisionConflict(MemoryStorageError):
    pass


class MemoryManifestRevisionConflict(MemoryRevisionConflict):
    pass


class MemoryFactRevisionConflict(MemoryRevisionConflict):
    pass


@dataclass(frozen=True)
class EvictedFact:
    fact_id: str
    category: str
    score: float
    components: dict[str, float]


@dataclass(frozen=True)
class FactEvictionDecision:
    kept: list[Document]
    evicted: list[EvictedFact]
    scores: dict[str, Any]
    policy: str
    reserved_correction_slots: int = 0


@dataclass(kw_only=True)
class DeerMemConfig:
    storage_path: str = ""
    storage_class: str = ""
    strict_user_scope: bool = False
    manifest_filename: str = "memory.json"
    file_lock_timeout_seconds: int = 10
    retrieval_adapter: str = "fts5"
    max_facts: int = 100
    eviction_access_half_life_days: int = 30
    eviction_audit_max_entries: int = 200


class MemoryStorage(ABC):
    @abstractmethod
    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> Document: ...

    @abstractmethod
    def reload(self, agent_name: str | None = None, *, user_id: str | None = None) -> Document: ...

    @abstractmethod
    def save(
        self,
        memory_data: Document,
        agent_name: str | None = None,
        *,
        user_id: str | None = None,
        expected_revision: int | None = None,
    ) -> bool: ...

    def apply_changes(self, change_set: Document, **scope: Any) -> Document:
        raise NotImplementedError

    def clear_all(self, *, user_id: str | None = None) -> Document:
        raise NotImplementedError

    def get_fact_usage(self, *, agent_name: str, user_id: str | None = None) -> dict[str, Document]:
        raise NotImplementedError

    def record_fact_accesses(
        self,
        fact_ids: list[str],
        *,
        agent_name: str,
        user_id: str | None = None,
        accessed_at: datetime | None = None,
    ) -> None:
        raise NotImplementedError

    def record_capacity_eviction(
        self,
        decision: FactEvictionDecision,
        *,
        max_facts: int,
        agent_name: str,
        user_id: str | None = None,
        occurred_at: datetime | None = None,
        shadow_decision: FactEvictionDecision | None = None,
    ) -> None:
        raise NotImplementedError

    def clear_fact_metadata(
        self, *, agent_name: str, user_id: str | None = None, fact_ids: list[str] | None = None
    ) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def create_storage(config: DeerMemConfig, retrieval: Any = None) -> MemoryStorage:  # noqa: ARG001 - as there
    """Resolves a dotted path as DeerFlow does: the module by name, the class as its attribute."""
    module, name = config.storage_class.rsplit(".", 1)
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, type)
    assert issubclass(found, MemoryStorage)
    storage: Any = found
    return storage(config)  # type: ignore[no-any-return]


@dataclass
class MemoryManager:
    """Has the fields of DeerFlow's pydantic model, and its hook after construction."""

    backend_config: Document = field(default_factory=dict)
    mode: Literal["middleware", "tool"] = "middleware"
    callbacks: Any = None

    def __post_init__(self) -> None:
        self.model_post_init(None)

    def model_post_init(self, context: Any, /) -> None:
        pass


class DeerMem(MemoryManager):
    supports_search: ClassVar[bool] = True

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002 - as there
        known = {key: value for key, value in self.backend_config.items() if hasattr(DeerMemConfig, key)}
        self._config = DeerMemConfig(**known)
        self._storage = create_storage(self._config)

    @classmethod
    def from_config(
        cls,
        backend_config: Document | None = None,
        *,
        mode: Literal["middleware", "tool"] = "middleware",
        **host_hooks: Any,
    ) -> Self:
        made = cls(dict(backend_config or {}), mode, host_hooks.get("callbacks"))
        made.backend_config = dict(backend_config or {})
        return made

    def close(self) -> None:
        self._storage.close()


PLACES: dict[str, tuple[Any, ...]] = {
    STORAGE: (
        MemoryStorage,
        MemoryStorageError,
        MemoryStorageCorruption,
        MemoryRevisionConflict,
        MemoryManifestRevisionConflict,
        MemoryFactRevisionConflict,
        create_storage,
    ),
    CONFIG: (DeerMemConfig,),
    EVICTION: (EvictedFact, FactEvictionDecision),
    MANAGER: (DeerMem,),
    CONTRACT: (MemoryManager,),
}


def install() -> None:
    """Makes the double importable under DeerFlow's names."""
    for name, members in PLACES.items():
        module = ModuleType(name)
        for member in members:
            setattr(module, member.__name__, member)
        parts = name.split(".")
        for length in range(1, len(parts)):
            sys.modules.setdefault(".".join(parts[:length]), ModuleType(".".join(parts[:length])))
        sys.modules[name] = module
