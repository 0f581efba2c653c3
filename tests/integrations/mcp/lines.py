"""A server's process, spoken to in lines: for signals, kills and what no client library would send."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.integrations.mcp.doors import PATIENCE, command, environment


class Lines:
    """Is a process that serves over stdio, and what it wrote on standard error."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log
        self._ids = count(1)

    @property
    def log(self) -> str:
        """What the process wrote on standard error."""
        return self._log.read_text("utf-8")

    def send(self, line: bytes) -> None:
        """Sends bytes as a line."""
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Returns the next message."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"the server says no more: {self.log}"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        assert isinstance(message, dict)
        return message

    def ask(self, method: str, **parameters: Any) -> int:
        """Sends a request and returns its id."""
        request_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": parameters}
        self.send(json.dumps(message).encode())
        return request_id

    def tell(self, method: str, **parameters: Any) -> None:
        """Sends a notification."""
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters}).encode())

    def call(self, name: str, **arguments: Any) -> int:
        """Sends a call of a tool and returns its id."""
        return self.ask("tools/call", name=name, arguments=arguments)

    def answered(self, request_id: int) -> dict[str, Any]:
        """Returns the structured result of a request, whose answer must be the next."""
        message = self.hear()
        assert message["id"] == request_id, message
        result = message["result"]["structuredContent"]
        assert isinstance(result, dict)
        return result

    def greet(self) -> None:
        """Opens the protocol."""
        client = {"name": "test", "version": "1"}
        request_id = self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        assert self.hear()["id"] == request_id
        self.tell("notifications/initialized")

    def end(self) -> tuple[int, bytes]:
        """Closes the input; returns the exit code and what was still said."""
        said, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said


@contextmanager
def speaking(root: Path, *options: str, greeted: bool = True, program: str | None = None) -> Iterator[Lines]:
    """Runs a server while the block runs.

    Args:
        root: The storage root.
        *options: Of the command.
        greeted: Whether to open the protocol.
        program: Python to run in place of the command.
    """
    log = root.parent / "stderr.log"
    arguments = command(*options)
    if program is not None:
        arguments = [arguments[0], "-c", program]
    with (
        log.open("ab") as stderr,
        subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environment(root)
        ) as process,
    ):
        lines = Lines(process, log)
        try:
            if greeted:
                lines.greet()
            yield lines
        finally:
            process.kill()
