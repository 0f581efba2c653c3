"""The image's command under the conditions of a container: a foreign volume, a read-only root, process 1."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kernel.requirements import need_mounts, need_tools
from tests.packaging.container import IMAGE, Container, stop

pytest.importorskip("uvicorn")

OWN = int(IMAGE.one("USER").rest.partition(":")[0])
FOREIGN = OWN + 1


@pytest.fixture(autouse=True)
def _needs() -> None:
    need_mounts("tmpfs")
    need_tools("chroot", "env")


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def container(folder: Path, uid: int, port: int, **variables: str) -> Container:
    settings = {"DEERMEM_GATEWAY_PORT": str(port), "DEERMEM_AUTH_MODE": "token", **variables}
    return Container(folder / "container", uid, settings)


@contextmanager
def serving(container: Container) -> Iterator[subprocess.Popen[str]]:
    """Runs what the image runs; waits until it says that it serves."""
    with container.start() as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said.startswith("Serving /data on http://0.0.0.0:"), (
                process.stderr and process.stderr.read()
            )
            yield process
        finally:
            process.kill()


def answer(port: int, token: str, method: str, path: str, document: object = None) -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        body = None if document is None else json.dumps(document)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        got = connection.getresponse()
        return got.status, json.loads(got.read())
    finally:
        connection.close()


def test_a_container_serves_is_healthy_keeps_what_it_was_told_and_stops_in_order(
    tmp_path: Path, port: int
) -> None:
    box = container(tmp_path, OWN, port)
    made = box.run("token", "create", "--user-id", "alice", "--quiet")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    with serving(box) as process:
        healthy = box.health()
        assert (healthy.returncode, healthy.stderr) == (0, "")
        fact = {"content": "Likes tea.", "category": "preference", "confidence": 0.9}
        status, document = answer(port, token, "POST", "/api/memory/facts", fact)
        assert status in {200, 201}, document
        assert answer(port, "wrong", "GET", "/api/memory")[0] == 401
        assert stop(process) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    sick = box.health()
    assert sick.returncode == 1
    assert "no answer" in sick.stderr
    listed = box.run("list", "--user-id", "alice", "--quiet")
    assert len(listed.stdout.split()) == 1
    assert {path.stat().st_uid for path in box.volume.rglob("*")} == {OWN}


def test_a_volume_of_another_uid_is_told_in_one_sentence_and_the_command_in_it_helps(
    tmp_path: Path, port: int
) -> None:
    box = container(tmp_path, FOREIGN, port)
    refused = box.run()
    assert refused.returncode == 9
    assert refused.stderr == (
        f"Error: /data belongs to uid {FOREIGN}, this process is uid {OWN} and cannot write there: "
        f"run as uid {FOREIGN}, or `chown -R {OWN} /data` if nothing but a store is in it\n"
    )
    assert list(box.volume.iterdir()) == []
    box.own(OWN)
    with serving(box) as process:
        assert stop(process) == 0


def test_a_volume_that_is_mounted_read_only_is_told(tmp_path: Path, port: int) -> None:
    box = container(tmp_path, OWN, port)
    box.mounted = "ro"
    refused = box.run()
    assert (refused.returncode, refused.stderr) == (9, "Error: /data is mounted read-only\n")


def test_a_secret_that_only_root_may_write_is_taken_as_the_file_of_tokens(tmp_path: Path, port: int) -> None:
    box = container(tmp_path, OWN, port)
    token = box.run("token", "create", "--user-id", "alice", "--quiet").stdout.strip()
    secret = box.secrets / "tokens"
    (box.volume / ".gateway-tokens.json").rename(secret)
    secret.chmod(0o444)
    box.secrets.chmod(0o755)
    os.chown(secret, 0, 0)
    box.variables["DEERMEM_AUTH_TOKEN_FILE"] = "/run/secrets/tokens"  # noqa: S105 - a path
    with serving(box) as process:
        assert answer(port, token, "GET", "/api/memory")[0] == 200
        assert stop(process) == 0
