"""P11: a cached document over HTTP, against the same bytes from a constant, by the same server.

The server is a process of its own and reports the processor time that it takes, which other programs do not
lengthen: it is one worker, so that time is what bounds its requests per second.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from statistics import median
from time import process_time
from typing import Any, Final, cast

from benchmarks.bench import Bench
from benchmarks.measuring import Rounds
from benchmarks.results import Result
from benchmarks.samples import build_scope
from deermem import Scope

_SPAWN = multiprocessing.get_context("spawn")
_PATIENCE: Final = 60.0
_USER: Final = "default"
_FACTS: Final = 100
_CONNECTIONS: Final = 16
_MEMORY: Final = "/api/memory"
_CONSTANT: Final = "/constant"
_CONSTANT_UNCHANGED: Final = "/constant-unchanged"


def measure(bench: Bench) -> Iterator[Result]:
    """Measures a whole answer, and one that says that nothing has changed."""
    requests = bench.scale.samples * 50
    with bench.folder() as folder:
        build_scope(folder, Scope.of(_USER), _FACTS)
        with _server(folder) as (address, tag, processor_time):

            def rates(path: str, *headers: str) -> Callable[[], float]:
                def run() -> float:
                    before = processor_time()
                    _request(address, path, headers, requests)
                    return requests / (processor_time() - before)

                return run

            known = f"If-None-Match: {tag}"
            sides = {
                "memory": rates(_MEMORY),
                "constant": rates(_CONSTANT),
                "unchanged": rates(_MEMORY, known),
                "constant unchanged": rates(_CONSTANT_UNCHANGED, known),
            }
            found = _in_turns(sides, bench.scale.rounds)
    yield _result("GET /api/memory, 100 facts, cached", "the same bytes from a constant", found, "")
    yield _result("the same with If-None-Match: 304", "a constant 304", found, " unchanged")


def _result(work: str, floor: str, found: dict[str, Rounds], kind: str) -> Result:
    product = found[kind.strip() or "memory"]
    return Result.timed(
        "P11", work, floor, product, found[f"constant{kind}"], bar=0.5, at_least=True, unit="1/s"
    )


def _in_turns(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, Rounds]:
    for run in sides.values():
        run()
    found: dict[str, Rounds] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            found[name].append(median(run() for _ in range(3)))
    return found


def _request(address: tuple[str, int], path: str, headers: tuple[str, ...], number: int) -> None:
    """Sends a number of requests over several connections, each when the last one was answered."""
    head = "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {address[0]}", *headers, "", ""]).encode()
    length = _length_of_answer(address, head)
    connections = [socket.create_connection(address, timeout=_PATIENCE) for _ in range(_CONNECTIONS)]
    received = dict.fromkeys(connections, 0)
    sent = answered = 0
    with DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, EVENT_READ)
            connection.sendall(head)
            sent += 1
        while answered < number:
            for key, _ in selector.select(_PATIENCE):
                connection = cast(socket.socket, key.fileobj)
                received[connection] += len(connection.recv(262_144))
                if received[connection] == length:
                    answered += 1
                    received[connection] = 0
                    if sent < number:
                        connection.sendall(head)
                        sent += 1
    for connection in connections:
        connection.close()


def _length_of_answer(address: tuple[str, int], head: bytes) -> int:
    with closing(socket.create_connection(address, timeout=_PATIENCE)) as connection:
        connection.sendall(head)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += connection.recv(65_536)
        names = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n\r\n")[0].split(b"\r\n")[1:])
        return answer.index(b"\r\n\r\n") + 4 + int(names.get(b"content-length", 0))


@contextmanager
def _server(root: Path) -> Iterator[tuple[tuple[str, int], str, Callable[[], float]]]:
    """Starts a server; yields its address, the tag of the document, and how to ask for its time."""
    mine, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=_serve, args=(str(root), theirs))
    process.start()
    theirs.close()
    try:

        def processor_time() -> float:
            mine.send("time")
            return float(mine.recv())

        address, tag = mine.recv()
        yield address, tag, processor_time
        mine.send("stop")
        process.join(_PATIENCE)
    finally:
        process.kill()
        process.join()
        mine.close()


def _serve(root: str, pipe: Connection) -> None:
    from deermem import DeerMem
    from deermem.gateway.auth import AuthSettings, make_authenticator
    from deermem.gateway.limits import LimitSettings
    from deermem.gateway.serve import GatewayServer
    from deermem.gateway.settings import GatewaySettings

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    manager = DeerMem({"storage_path": root})
    server = GatewayServer(manager, make_authenticator(AuthSettings()), GatewaySettings(), LimitSettings())
    tag = _add_constants(server.config.app, manager.get_memory(user_id=_USER))
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()[:2]
    thread = threading.Thread(
        target=server.run_on, args=(listener, lambda _: pipe.send((address, tag))), daemon=True
    )
    thread.start()
    while pipe.recv() == "time":
        pipe.send(process_time())
    server.should_exit = True
    thread.join(_PATIENCE)


def _add_constants(app: Any, document: dict[str, Any]) -> str:
    """Adds routes that answer with constants, before all others; returns their tag."""
    from fastapi import Response

    from deermem.gateway.documents import render_memory

    body, tag, *_ = render_memory(document)

    async def constant() -> Response:
        return Response(body, media_type="application/json", headers={"ETag": tag})

    async def unchanged() -> Response:
        return Response(status_code=304, headers={"ETag": tag})

    for path, answer in ((_CONSTANT, constant), (_CONSTANT_UNCHANGED, unchanged)):
        app.add_api_route(path, answer, include_in_schema=False)
        app.router.routes.insert(0, app.router.routes.pop())
    return tag
