"""What each extra must be able to do alone: one script for each, which prints `works`."""

from __future__ import annotations

from typing import Final

_CLI: Final = """
import subprocess, sys
from pathlib import Path

command = str(Path(sys.executable).with_name("deermem"))
def run(*arguments):
    return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout
run("add", "Likes tea.", "--category", "preference")
assert "Likes tea." in run("list")
refused = subprocess.run([command, "serve"], capture_output=True, text=True)
assert refused.returncode == 2 and 'deermem[server]' in refused.stderr, refused
refused = subprocess.run([command, "mcp"], capture_output=True, text=True)
assert refused.returncode == 2 and 'deermem[mcp]' in refused.stderr, refused
print("works")
"""

_SERVER: Final = """
import json, os, signal, threading, urllib.request
from deermem import DeerMem
from deermem.gateway.auth import AuthSettings, make_authenticator
from deermem.asgi.limits import LimitSettings
from deermem.gateway.serve import serve
from deermem.gateway.settings import GatewaySettings

answers = []
def ask(url):
    with urllib.request.urlopen(url + "/api/memory") as answer:
        answers.append((answer.status, json.load(answer)["facts"]))
    os.kill(os.getpid(), signal.SIGTERM)
def announce(url):
    threading.Thread(target=ask, args=[url]).start()
root = os.environ["DEERMEM_DATA_DIR"]
authenticator = make_authenticator(AuthSettings.load({}, {}, root))
serve(DeerMem({"storage_path": root}), authenticator, GatewaySettings(port=0), LimitSettings(), announce)
assert answers == [(200, [])], answers
print("works")
"""

_TESTING: Final = """
from deermem.testing.simulation.runs import simulate

run = simulate(seed=7)
assert not run.problems, run.story()
print("works")
"""

_MCP: Final = """
import asyncio, os, sys
from pathlib import Path
from mcp import Client, StdioServerParameters
import deermem.integrations.mcp

command = str(Path(sys.executable).with_name("deermem"))
environment = {"DEERMEM_DATA_DIR": os.environ["DEERMEM_DATA_DIR"]}
async def converse():
    async with Client(StdioServerParameters(command=command, args=["mcp"], env=environment)) as client:
        await client.call_tool("memory_add", {"content": "Likes tea."})
        return await client.call_tool("memory_search", {"query": "tea"})
assert "Likes tea." in str(asyncio.run(converse()))
print("works")
"""

_LANGGRAPH: Final = """
import os
from deermem.integrations.langgraph import DeerMemStore

store = DeerMemStore(os.environ["DEERMEM_DATA_DIR"])
store.put(("alice", "memories"), "latest", {"content": "Likes tea."})
assert store.get(("alice", "memories"), "latest").value["content"] == "Likes tea."
print("works")
"""

_ANTHROPIC: Final = """
import os
from deermem import DeerMem
from deermem.integrations.anthropic import DeerMemMemoryTool

with DeerMem({"storage_path": os.environ["DEERMEM_DATA_DIR"]}) as manager:
    tool = DeerMemMemoryTool(manager, user_id="alice")
    tool.call({"command": "create", "path": "/memories/tea.md", "file_text": "Likes tea.\\n"})
    assert "Likes tea." in tool.call({"command": "view", "path": "/memories/tea.md"})
print("works")
"""

# DeerFlow brings this package into its own environment, so here there is only its absence to be told.
_DEERFLOW: Final = """
try:
    import deermem.integrations.deerflow
except ImportError as error:
    assert "deermem[deerflow]" in str(error), error
    print("works")
"""

ACTIONS: Final = {
    "anthropic": _ANTHROPIC,
    "cli": _CLI,
    "deerflow": _DEERFLOW,
    "langgraph": _LANGGRAPH,
    "mcp": _MCP,
    "server": _SERVER,
    "testing": _TESTING,
}
