"""Environments with nothing in them but the wheel, and what it does there.

What runs in them is a script, since nothing of this environment, pytest least of all, is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

# Warnings are errors, and what is left open is told.
STRICT = ("-W", "error", "-X", "dev")

SMOKE = '''
import os, subprocess, sys, tempfile
import deermem
from deermem import DeerMem, FactDraft, MemoryRepository, Scope

root = tempfile.mkdtemp()
scope = Scope.of("alice@example.com", "coder")
with MemoryRepository(root) as repository:
    first = repository.create_fact(scope, FactDraft("Likes tea."))[1]

# The process dies between the commit and what is to follow.
dying = """
import os, sys
from deermem import FactDraft, MemoryRepository, Scope
real = os.rename, os.replace
def move(call):
    def moving(source, target, **where):
        call(source, target, **where)
        if str(target).endswith(".memory.journal.json"):
            os._exit(9)
    return moving
os.rename, os.replace = map(move, real)
scope = Scope.of("alice@example.com", "coder")
MemoryRepository(sys.argv[1]).create_fact(scope, FactDraft("Lives in Porto."))
"""
died = subprocess.run([sys.executable, "-I", "-c", dying, root])
assert died.returncode == 9, died.returncode
with MemoryRepository(root) as repository:
    texts = sorted(fact.content for fact in repository.snapshot(scope).facts)
    assert texts == ["Likes tea.", "Lives in Porto."], texts
with DeerMem({"storage_path": root}) as manager:
    assert "tea" in str(manager.search("tea", user_id="alice@example.com", agent_name="coder"))
outside = {"anthropic", "fastapi", "greenlet", "langgraph", "mcp", "rich", "typer"} & set(sys.modules)
assert not outside, outside
print("works")
'''


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment, and how to call what is in it."""

    folder: Path

    @property
    def scripts(self) -> Path:
        """Where the programs are."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin")

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.scripts / ("python.exe" if os.name == "nt" else "python")

    def run(self, *command: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, which knows nothing of the one that the tests run in."""
        told = ("DEERMEM_", "PYTHON", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(told)}
        return subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env={**kept, "DEERMEM_DATA_DIR": str(self.folder / "store"), "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def script(self, text: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Runs a Python script, isolated."""
        path = self.folder / "script.py"
        path.write_text(text, "utf-8")
        return self.run(self.python, "-I", *options, path)


def bare_environment(folder: Path, wheel: Path) -> Environment:
    """Makes an environment of this Python with the wheel and PyYAML, without the network.

    PyYAML is that of this environment; the wheel is installed as any installer does it.
    """
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    made = Environment(folder)
    installer = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-index",
        "--no-deps",
    ]
    subprocess.run([*installer, "--python", str(made.python), str(wheel)], check=True)
    (packages,) = {path.parent for path in folder.rglob("site-packages/deermem")}
    for each in distribution("pyyaml").files or []:
        if ".." not in each.parts and "__pycache__" not in each.parts:
            target = packages / each
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(each.locate(), target)
    return made
