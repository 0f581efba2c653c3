"""A gateway of its own for a benchmark: a process on loopback, with or without constants to compare with."""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Any, Final

_SPAWN = multiprocessing.get_context("spawn")
PATIENCE: Final = 60.0
USER: Final = "default"
MEMORY: Final = "/api/memory"
CONSTANT: Final = "/constant"
CONSTANT_UNCHANGED: Final = "/constant-unchanged"
_MOST: Final = 1_000_000  # requests a minute: what is measured is not the limit


@dataclass(frozen=True, slots=True)
class Served:
    """Is a server at work: where it listens, the tag of the document, and the time that it took so far."""

    address: tuple[str, int]
    tag: str
    processor_time: Callable[[], float]


@contextmanager
def server(root: Path) -> Iterator[Served]:
    """Starts a server of one worker over a store, and stops it."""
    mine, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_serve, args=(str(root), theirs))
    process.start()
    theirs.close()
    try:

        def processor_time() -> float:
            mine.send("time")
            return float(mine.recv())

        address, tag = mine.recv()
        yield Served(address, tag, processor_time)
        mine.send("stop")
        process.join(PATIENCE)
    finally:
        process.kill()
        process.join()
        mine.close()


def _serve(root: str, pipe: Connection) -> None:
    from deermem import DeerMem
    from deermem.asgi.limits import LimitSettings
    from deermem.gateway.auth import AuthSettings, make_authenticator
    from deermem.gateway.serve import GatewayServer
    from deermem.gateway.settings import GatewaySettings

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    manager = DeerMem({"storage_path": root, "max_facts": 100_000})
    limits = LimitSettings(requests_per_minute=_MOST, burst=_MOST)
    gateway = GatewayServer(manager, make_authenticator(AuthSettings()), GatewaySettings(), limits)
    tag = _add_constants(gateway.config.app, manager.get_memory(user_id=USER))
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    address = listener.getsockname()[:2]

    def answer() -> None:
        while pipe.recv() == "time":
            pipe.send(process_time())
        gateway.should_exit = True

    # The gateway has the main thread: if it cannot start, the process ends, and whoever waits for it is told.
    threading.Thread(target=answer, daemon=True).start()
    gateway.run_on(listener, lambda _: pipe.send((address, tag)))


def _add_constants(app: Any, document: dict[str, Any]) -> str:
    """Adds routes that answer with constants, before all others; returns their tag."""
    from fastapi import Response

    from deermem.gateway.documents import render_memory

    body, tag, *_ = render_memory(document)

    async def constant() -> Response:
        return Response(body, media_type="application/json", headers={"ETag": tag})

    async def unchanged() -> Response:
        return Response(status_code=304, headers={"ETag": tag})

    for path, answer in ((CONSTANT, constant), (CONSTANT_UNCHANGED, unchanged)):
        app.add_api_route(path, answer, include_in_schema=False)
        app.router.routes.insert(0, app.router.routes.pop())
    return tag
