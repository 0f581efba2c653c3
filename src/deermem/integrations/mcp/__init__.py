"""Memories for clients of the Model Context Protocol: tools and resources, over stdio or streamable HTTP.

It needs `pip install "deermem[mcp]"`.
"""

from __future__ import annotations

try:
    import mcp  # noqa: F401 - to say what is missing, in one sentence
except ModuleNotFoundError as error:
    if error.name != "mcp":
        raise
    raise ImportError('deermem.integrations.mcp needs the MCP SDK: pip install "deermem[mcp]"') from None

from deermem.integrations.mcp.identity import Identity, NotLetIn, Verifier
from deermem.integrations.mcp.server import create_server, fixed_scope, scope_of_caller

__all__ = ["Identity", "NotLetIn", "Verifier", "create_server", "fixed_scope", "scope_of_caller"]
