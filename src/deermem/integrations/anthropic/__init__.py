"""Claude's memory tool (`memory_20250818`) on a DeerMem store, for the Anthropic SDK's tool runners.

How paths below `/memories` become facts and summaries is told in `paths` and `texts`.
"""

from __future__ import annotations

try:
    import anthropic.lib.tools  # noqa: F401 - so that what is missing is named in one place
except ImportError as error:
    raise ImportError(
        'deermem.integrations.anthropic needs the Anthropic SDK: pip install "deermem[anthropic]"'
    ) from error

from deermem.integrations.anthropic.tools import AsyncDeerMemMemoryTool, DeerMemMemoryTool

__all__ = ["AsyncDeerMemMemoryTool", "DeerMemMemoryTool"]
