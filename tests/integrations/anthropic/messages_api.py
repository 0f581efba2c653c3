"""A server on the loopback that speaks the Messages API: a model that says what a script says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Command = dict[str, Any]


class Model:
    """Calls the memory tool as scripted, one turn a list of commands, and ends with a text.

    `results` has, for each turn, what came back for each command: the text and whether it was an error.
    """

    def __init__(self, *turns: list[Command]) -> None:
        self._turns = list(turns)
        self._mutex = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.results: list[list[tuple[str, bool]]] = []

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the message that answers a request."""
        with self._mutex:
            self.requests.append(request)
            turn = len(self.requests)
            if turn > 1:
                self.results.append([_result(block) for block in request["messages"][-1]["content"]])
            commands = self._turns[turn - 1] if turn <= len(self._turns) else []
        calls = [
            {"type": "tool_use", "id": f"toolu_{turn}_{number}", "name": "memory", "input": command}
            for number, command in enumerate(commands)
        ]
        return {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": calls or [{"type": "text", "text": "Done."}],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


def _result(block: dict[str, Any]) -> tuple[str, bool]:
    assert block["type"] == "tool_result"
    content = block["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return text, bool(block.get("is_error", False))


@contextmanager
def served(model: Model) -> Iterator[str]:
    """Serves a model; yields the base URL for a client."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(model.reply(body)).encode()
            self.send_response(200 if self.path.startswith("/v1/messages") else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
