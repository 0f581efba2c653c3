"""Runs commands in a process of another uid, which only root can make."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import deermem.cli
from deermem.cli.run import run
from tests.cli.conftest import STREAMS, Result, Stream
from tests.support.processes import Peer


def run_as(uid: int, root: Path, *commands: Sequence[str]) -> list[Result]:
    """Runs commands on a store, all as one uid, and returns what each left behind."""
    with Peer(_run_commands, uid, root, commands) as peer:
        return [Result(*each) for each in peer.hear()]


def _run_commands(pipe: Connection, uid: int, root: Path, commands: Sequence[Sequence[str]]) -> None:
    _import_all()
    os.environ["DEERMEM_DATA_DIR"] = str(root)
    os.chdir("/")
    if uid:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    pipe.send([_ran(command) for command in commands])


def _import_all() -> None:
    """Imports whatever a command may: another uid may not be able to read it."""
    importlib.import_module("deermem.gateway.serve")
    importlib.import_module("deermem.manager")
    for module in pkgutil.walk_packages(deermem.cli.__path__, "deermem.cli."):
        importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as warm_up:
        os.environ["DEERMEM_DATA_DIR"] = warm_up
        for command in (
            ["add", "one"],
            ["list"],
            ["get", "fact_nope"],
            ["status"],
            ["check"],
            ["clear", "--yes"],
        ):
            _ran(command)


def _ran(command: Sequence[str]) -> tuple[int, str, str]:
    streams = {name: Stream() for name in STREAMS}
    for name, stream in streams.items():
        setattr(sys, name, stream)
    code = run(command)
    return code, streams["stdout"].text(), streams["stderr"].text()
