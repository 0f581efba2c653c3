"""The memory manager: the public boundary of the package, in dictionaries of the historical shape."""

from __future__ import annotations

from deermem.manager.boundary import translated
from deermem.manager.deermem import DeerMem
from deermem.manager.extraction import ExtractionHook, ExtractionRequest
from deermem.manager.twins import MemoryManager

__all__ = ["DeerMem", "ExtractionHook", "ExtractionRequest", "MemoryManager", "translated"]
