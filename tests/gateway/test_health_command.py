"""`python -m deermem.gateway.health` tells a living gateway from a dead one, without curl."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from deermem.gateway.health import lives, main
from tests.gateway.servers import Running


def test_a_gateway_that_answers_lives(shared: Running) -> None:
    host, port = shared.address
    assert lives(host, port) == ""
    named = {"DEERMEM_GATEWAY_HOST": "0.0.0.0", "DEERMEM_GATEWAY_PORT": f"{port}"}  # noqa: S104
    assert main([], named) == ""
    assert main([host, f"{port}"], {"DEERMEM_GATEWAY_PORT": "1"}) == ""


def test_a_port_where_nobody_listens_is_no_living_gateway() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert lives("127.0.0.1", bound.getsockname()[1]).startswith("no answer from 127.0.0.1:")


def test_one_that_accepts_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert lives("127.0.0.1", silent.getsockname()[1], seconds=0.05).endswith("timed out")


def test_another_server_is_told_by_its_status() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        command = [sys.executable, "-m", "deermem.gateway.health", "127.0.0.1", f"{port}"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as asking:
            connection, _ = other.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                _, told = asking.communicate(timeout=30)
        assert (asking.returncode, told) == (1, f"127.0.0.1:{port} answers with status 404\n")


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", ""])
def test_what_is_no_port_is_told(port: str) -> None:
    assert "is no port" in main(["127.0.0.1", port], {})


def test_one_argument_is_wrong_usage() -> None:
    assert main(["8431"], {}).startswith("usage: ")
