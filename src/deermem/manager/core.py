"""What every operation of DeerMem shares: settings, the store, threads, and the end."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Literal, Self, TypeVar

from deermem.config import DeerMemConfig
from deermem.errors import InvalidInputError, MemoryCorruptionError
from deermem.manager.boundary import translated
from deermem.manager.extraction import ExtractionHook, Extractor
from deermem.manager.lifetime import Lifetime
from deermem.manager.off_loop import OffLoop
from deermem.manager.opening import open_repository
from deermem.manager.proposal import Admission
from deermem.manager.twins import MemoryManager
from deermem.model.fact import Source
from deermem.repository import MemoryRepository
from deermem.storage.filesystem.probe import warn_once

T = TypeVar("T")

Mode = Literal["middleware", "tool"]
MODES: Final = ("middleware", "tool")

_CLOSING_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class ManagerCore(MemoryManager):
    """Opens the store, keeps count of what is under way, and closes.

    Args:
        backend_config: The settings, or a host's dictionary of them; `None` for the defaults.
        mode: `"tool"` leaves facts out of contexts: the model searches for them.
        extraction_hook: Makes facts of conversations; without it `add` raises `NotImplementedError`.
        repository: Where to store, in place of what the settings say of storage; `close` closes it.

    Raises:
        InvalidInputError: A setting breaks its rule.
    """

    supports_search: ClassVar[bool] = True

    def __init__(
        self,
        backend_config: DeerMemConfig | Mapping[str, Any] | None = None,
        *,
        mode: Mode = "middleware",
        extraction_hook: ExtractionHook | None = None,
        repository: MemoryRepository | None = None,
    ) -> None:
        if mode not in MODES:
            raise InvalidInputError("mode", f"is not one of {', '.join(MODES)}")
        if not isinstance(backend_config, DeerMemConfig):
            backend_config = DeerMemConfig.from_backend_config(backend_config)
        self.config = backend_config
        self.mode = mode
        self.repository = open_repository(backend_config) if repository is None else repository
        if repository is None:
            warn_once(self.repository.storage_root)
        self._lifetime = Lifetime()
        self._threads = OffLoop(self._lifetime)
        self._extractor = (
            None
            if extraction_hook is None
            else Extractor(extraction_hook, self.repository, self._lifetime, self._admission)
        )

    def warm(self) -> bool | None:
        """Looks at the storage root; tells whether it can be read."""
        try:
            with self._crossing() as repository:
                repository.list_users()
        except (MemoryCorruptionError, OSError) as error:
            _log.warning("the storage root cannot be read: %s", error)
            return False
        return True

    def run_on_store(self, work: Callable[[MemoryRepository], T]) -> T:
        """Runs something on the repository as an operation of this manager.

        It counts as under way, and its errors are translated; for front doors that need more than the
        contract has.

        Raises:
            MemoryConflictError: Another writer came first.
            MemoryCorruptionError: What is stored cannot be read safely.
        """
        with self._crossing() as repository:
            return work(repository)

    async def arun_on_store(self, work: Callable[[MemoryRepository], T], *, writes: bool = True) -> T:
        """Is `run_on_store` for an event loop; reads that say so do not queue behind writers."""
        return await self._off_loop(lambda: self.run_on_store(work), writes=writes)

    def shutdown_flush(self, timeout: float) -> bool:
        """Waits for what is under way, conversations included; tells whether all ended within `timeout` s."""
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or math.isnan(timeout):
            raise InvalidInputError("timeout", "must be a number of seconds")
        return self._lifetime.wait(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Refuses what comes, waits for what is at the store, and releases everything.

        Conversations that wait are given up; flush before, or lose them.
        """
        if not self._lifetime.close():
            return
        if self._extractor is not None:
            self._extractor.close()
        self._threads.close()
        self._lifetime.wait(self.config.file_lock_timeout_seconds + _CLOSING_SECONDS, background=False)
        self.repository.close()

    async def _off_loop(self, work: Callable[[], T], *, writes: bool) -> T:
        return await self._threads.run(work, writes=writes)

    @contextmanager
    def _crossing(self) -> Iterator[MemoryRepository]:
        with self._lifetime.call(), translated():
            yield self.repository

    def _extraction(self) -> Extractor:
        if self._extractor is None:
            raise NotImplementedError("add needs an extraction_hook: DeerMem(..., extraction_hook=...)")
        return self._extractor

    def _admission(self, source: Source) -> Admission:
        return Admission(
            self.config.fact_confidence_threshold,
            self.config.max_facts,
            source,
            self.repository.new_fact_id,
        )
