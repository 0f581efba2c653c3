"""A gateway that is told to stop answers what it has begun, and loses nothing that it acknowledged."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from deermem import MemoryRepository, Scope
from tests.gateway.servers import PATIENCE, Client, contents, manager_at, refused, request, status_of
from tests.support.processes import Peer
from tests.support.stores import JOURNAL
from tests.support.threads import in_thread, run_together
from tests.support.work import stop_inside

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no signal to stop a process in order"
)

FACTS = "/api/memory/facts"


class Process:
    """Is a gateway in a process of its own."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self.process = process

    def client(self) -> Client:
        return Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    def stop(self, kind: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(kind)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)


@contextmanager
def started(root: Path, *options: str, no_path: bool = False, **variables: str) -> Iterator[Process]:
    """Starts `deermem serve` and kills what is left of it after the block."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEERMEM_")}
    given = [] if no_path else [f"--storage-path={root}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "deermem", "serve", "--port=0", "--quiet", *given, *options],
        env={**environment, "PYTHONUNBUFFERED": "1", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), process.communicate()
        yield Process(url, process)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_gateway_that_is_told_to_stop_ends_without_an_error(tmp_path: Path, kind: signal.Signals) -> None:
    with started(tmp_path) as gateway:
        with gateway.client() as client:
            client.create("a fact")
        gateway.stop(kind)
        assert gateway.wait() == 0
        assert gateway.process.communicate()[1] == ""
    assert contents(manager_at(tmp_path).get_memory(user_id="default")) == ["a fact"]


def test_a_stop_under_load_loses_no_acknowledged_write(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    sent: list[str] = []
    enough = threading.Event()

    def write(gateway: Process, number: int) -> None:
        with gateway.client() as client:
            for turn in range(10_000):
                text = f"client {number} turn {turn}"
                sent.append(text)
                try:
                    answer = client.post(FACTS, json={"content": text})
                except httpx.TransportError:
                    return
                assert answer.status_code == 200, answer.text
                acknowledged.append(text)
                if len(acknowledged) > 40:
                    enough.set()

    def stop(gateway: Process) -> None:
        assert enough.wait(PATIENCE)
        gateway.stop()

    with started(tmp_path, DEERMEM_MAX_FACTS="100000") as gateway:
        run_together(*(partial(write, gateway, number) for number in range(8)), partial(stop, gateway))
        assert gateway.wait() == 0
    with MemoryRepository(tmp_path) as repository:
        snapshot = repository.snapshot(Scope.of("default"))
    stored = {fact.content for fact in snapshot.facts}
    assert set(acknowledged) <= stored <= set(sent)
    assert snapshot.revision == len(stored)
    assert not list(tmp_path.rglob(JOURNAL))
    assert [path.name for path in tmp_path.rglob(".recovery/*")] == []


def test_a_write_that_has_begun_is_answered_before_the_end(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []

    def write(gateway: Process) -> None:
        with gateway.client() as client:
            answers.append(client.post(FACTS, json={"content": "the last one"}))

    with (
        Peer(stop_inside, tmp_path, "rename", JOURNAL) as peer,
        started(tmp_path, DEERMEM_AUTH_USER="alice") as gateway,
    ):
        assert peer.hear() == "inside"
        with gateway.client() as client, in_thread(lambda: write(gateway)):
            while "deermem_store_calls 1.0" not in client.get("/metrics").text:
                pass
            gateway.stop()
            refuse_connections(gateway)
            assert gateway.process.poll() is None
            peer.tell()
        assert gateway.wait() == 0
    assert [answer.status_code for answer in answers] == [200]
    assert "the last one" in contents(manager_at(tmp_path).get_memory(user_id="alice"))


def refuse_connections(gateway: Process) -> None:
    """Waits until the gateway takes no new connections."""
    url = httpx.URL(gateway.url)
    assert url.port is not None
    try:
        while True:
            with closing(socket.create_connection((url.host, url.port), timeout=PATIENCE)):
                pass
    except OSError:
        return


def test_a_client_that_never_ends_its_request_does_not_keep_the_gateway(tmp_path: Path) -> None:
    with started(tmp_path, DEERMEM_GATEWAY_SHUTDOWN_SECONDS="1") as gateway:
        url = httpx.URL(gateway.url)
        assert url.port is not None
        with closing(socket.create_connection((url.host, url.port), timeout=PATIENCE)) as connection:
            connection.sendall(
                request("POST", FACTS, "Content-Type: application/json", body=b'{"content": "', length=100)
            )
            with gateway.client() as client:
                assert client.get("/healthz").status_code == 200
            gateway.stop()
            assert gateway.wait() == 0


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    with Peer(stop_inside, tmp_path, "rename", JOURNAL) as peer:
        assert peer.hear() == "inside"
        with started(tmp_path, DEERMEM_AUTH_USER="alice", DEERMEM_FILE_LOCK_TIMEOUT_SECONDS="120") as gateway:

            def write() -> None:
                with gateway.client() as client:
                    answers.append(client.post(FACTS, json={"content": "given up"}))

            with gateway.client() as client, in_thread(write):
                while "deermem_store_calls 1.0" not in client.get("/metrics").text:
                    pass
                gateway.stop()
                refuse_connections(gateway)
                gateway.stop()
                assert gateway.wait() == 0
                log = gateway.process.communicate()[1]
        peer.tell()
    assert "some work did not end in time" in log
    assert "Traceback" not in log
    refused(answers[0], 504, "The request took too long; a change that it asked for may still be made.")
    assert "given up" not in contents(manager_at(tmp_path).get_memory(user_id="alice"))


@pytest.mark.parametrize(
    "kinds", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT, signal.SIGTERM)]
)
def test_signals_in_a_row_end_a_gateway_without_an_error(
    tmp_path: Path, kinds: tuple[signal.Signals, ...]
) -> None:
    with started(tmp_path) as gateway:
        for kind in kinds:
            gateway.stop(kind)
        assert gateway.wait() == 0
        assert gateway.process.communicate()[1] == ""


def test_a_port_that_is_taken_and_an_address_beyond_this_machine_are_told(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "deermem", "serve", f"--port={port}", f"--storage-path={tmp_path}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "deermem", "serve", "--host=0.0.0.0", f"--storage-path={tmp_path}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert "0.0.0.0 is reachable from other machines" in done.stderr


def test_a_settings_file_has_a_table_for_each_part(tmp_path: Path) -> None:
    settings = tmp_path / "deermem.toml"
    settings.write_text(
        f"""
        storage_path = "{tmp_path / "store"}"
        max_facts = 50

        [gateway]
        max_facts_per_request = 2

        [limits]
        body_bytes = 2000

        [auth]
        user = "alice"
        """
    )
    with started(tmp_path, f"--config={settings}", no_path=True) as gateway, gateway.client() as client:
        client.create("a fact")
        assert client.get("/api/memory/config").json()["max_facts"] == 50
        batch = {"facts": [{"content": str(number)} for number in range(3)]}
        assert client.post(f"{FACTS}/batch", json=batch).status_code == 422
        assert client.post(FACTS, json={"content": "x" * 2_000}).status_code == 413
    assert (tmp_path / "store" / "users" / "alice").is_dir()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gateway]\nprot = 1", "gateway.prot"),
        ("[auth]\nmode = 'x'", "auth.mode"),
        ("gateway = 1", "gateway"),
    ],
)
def test_a_settings_file_that_breaks_a_rule_is_told(tmp_path: Path, text: str, message: str) -> None:
    settings = tmp_path / "deermem.toml"
    settings.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "deermem", "serve", f"--config={settings}", f"--storage-path={tmp_path}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr


def test_the_first_byte_of_an_answer_is_that_of_a_gateway(tmp_path: Path) -> None:
    with started(tmp_path, "--read-only") as gateway:
        url = httpx.URL(gateway.url)
        assert url.port is not None
        with closing(socket.create_connection((url.host, url.port), timeout=PATIENCE)) as connection:
            connection.sendall(request("DELETE", "/api/memory"))
            assert status_of(connection.recv(1_000)) == 403


def test_the_name_of_a_user_cannot_forge_a_line_of_the_log(tmp_path: Path) -> None:
    name = "x\n2026-01-01 00:00:00,000 ERROR root: forged\x1b[31m"
    with started(tmp_path, DEERMEM_AUTH_USER=name, DEERMEM_MAX_FACTS="10") as gateway:
        with gateway.client() as client:
            document = {"facts": [{"content": str(number)} for number in range(11)]}
            assert client.post("/api/memory/import", json=document).status_code == 200
        gateway.stop()
        _, log = gateway.process.communicate(timeout=PATIENCE)
    assert "the cap of 10 facts evicted from" in log
    assert "forged" in log
    assert len(log.splitlines()) == 1
    assert "\x1b" not in log
