"""What goes wrong in the store is answered with stable words, and the log has the rest."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from deermem.errors import CommitInDoubt, LockTimeout
from deermem.gateway.auth import AuthSettings, Mode
from deermem.manager import MemoryManager
from tests.gateway.conftest import SECRET
from tests.gateway.servers import PATIENCE, Client, Running, body_of, contents, manager_at, refused, running
from tests.manager.managers import watched_manager
from tests.support.processes import Peer
from tests.support.stores import JOURNAL
from tests.support.watched import WatchedFileSystem, call_of
from tests.support.work import stop_inside

CORRUPT = "Stored memory data is corrupted."
IN_DOUBT = "The disk failed during the commit; the change may have been made."
MEMORY = "/api/memory"
FACTS = "/api/memory/facts"

Send = Callable[[Client, str], httpx.Response]

READS: dict[str, Send] = {
    "get": lambda client, _: client.get(MEMORY),
    "export": lambda client, _: client.get(f"{MEMORY}/export"),
    "status": lambda client, _: client.get(f"{MEMORY}/status"),
    "reload": lambda client, _: client.post(f"{MEMORY}/reload"),
    "page": lambda client, _: client.get(FACTS),
    "fact": lambda client, fact_id: client.get(f"{FACTS}/{fact_id}"),
}
WRITES: dict[str, tuple[Send, str]] = {
    "create": (
        lambda client, _: client.post(FACTS, json={"content": "new"}),
        "Failed to create memory fact.",
    ),
    "create with a key": (
        lambda client, _: client.post(FACTS, json={"content": "new"}, headers={"Idempotency-Key": "k"}),
        "Failed to create memory fact.",
    ),
    "batch": (
        lambda client, _: client.post(f"{FACTS}/batch", json={"facts": [{"content": "new"}]}),
        "Failed to create memory facts.",
    ),
    "update": (
        lambda client, fact_id: client.patch(f"{FACTS}/{fact_id}", json={"content": "changed"}),
        "Failed to update memory fact.",
    ),
    "delete": (
        lambda client, fact_id: client.delete(f"{FACTS}/{fact_id}"),
        "Failed to delete memory fact.",
    ),
    "batch-delete": (
        lambda client, fact_id: client.post(f"{FACTS}/batch-delete", json={"ids": [fact_id]}),
        "Failed to delete memory facts.",
    ),
    "clear": (lambda client, _: client.delete(MEMORY), "Failed to clear memory data."),
    "import": (
        lambda client, _: client.post(f"{MEMORY}/import", json={"facts": [{"content": "new"}]}),
        "Failed to import memory data.",
    ),
    "summaries": (
        lambda client, _: client.patch(f"{MEMORY}/summaries", json={"user": {"topOfMind": {"summary": "x"}}}),
        "Failed to update memory summaries.",
    ),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Client, WatchedFileSystem]]:
    """Talks to a gateway whose disk can be made to fail."""
    manager, disk = watched_manager(tmp_path)
    with running(manager) as gateway, gateway.client() as client:
        yield client, disk


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("name", WRITES)
def test_a_disk_that_fails_is_told_in_stable_words_and_nothing_is_changed(
    disk: tuple[Client, WatchedFileSystem], name: str, code: int
) -> None:
    client, files = disk
    fact_id = client.create("a fact")
    before = client.document()
    files.fail(lambda call: call.kind in ("create", "sync"), code)
    send, detail = WRITES[name]
    refused(send(client, fact_id), 500, detail)
    files.heal()
    assert client.document() == before


@pytest.mark.parametrize("name", WRITES)
def test_a_disk_that_fails_after_the_commit_point_is_told_as_a_change_that_may_have_been_made(
    disk: tuple[Client, WatchedFileSystem], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    client, files = disk
    fact_id = client.create("a fact")
    before = client.document()
    files.fail(call_of("rename", "/memory.json"), errno.EIO)
    refused(WRITES[name][0](client, fact_id), 500, IN_DOUBT)
    assert [record.levelno for record in caplog.records if record.name == "deermem.gateway.service"] == [
        logging.ERROR
    ]
    files.heal()
    assert client.document()["revision"] == before["revision"] + 1


@pytest.mark.parametrize("name", READS)
def test_a_memory_that_cannot_be_read_is_told_in_stable_words(
    disk: tuple[Client, WatchedFileSystem], name: str
) -> None:
    client, files = disk
    fact_id = client.create("a fact")
    files.fail(call_of("read"), errno.EIO)
    body = body_of(READS[name](client, fact_id), 500)
    assert body["detail"] in (
        "Failed to read memory data.",
        "Failed to export memory data.",
        "Failed to reload memory data.",
    )


@pytest.fixture
def other_file_system(tmp_path: Path) -> Iterator[Path]:
    """Gives a directory that lies on another file system than those of `tmp_path`."""
    place = Path("/dev/shm")  # noqa: S108 - nothing is written there
    if not place.is_dir() or place.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    with TemporaryDirectory(dir=place) as directory:
        yield Path(directory)


def test_a_user_who_reloads_does_not_make_an_empty_store_of_a_mount_that_has_vanished(
    tmp_path: Path, other_file_system: Path
) -> None:
    root, aside = tmp_path / "root", tmp_path / "aside"
    manager_at(root).create_fact("of alice", user_id="alice")
    with two_users(root) as (_, alice, bob):
        alice.document()
        root.rename(aside)
        root.symlink_to(other_file_system)
        for _ in range(2):
            refused(bob.post(f"{MEMORY}/reload"), 500, "Failed to reload memory data.")
            refused(bob.post(FACTS, json={"content": "x"}), 500, "Failed to create memory fact.")
        assert list(other_file_system.iterdir()) == []
        root.unlink()
        aside.rename(root)
        assert contents(alice.document()) == ["of alice"]


@contextmanager
def two_users(root: Path) -> Iterator[tuple[Running, Client, Client]]:
    """Serves a store to Alice and Bob."""
    auth = AuthSettings(mode=Mode.PROXY, proxy_secret=SECRET)
    with (
        running(manager_at(root), auth=auth) as gateway,
        gateway.client(X_Forwarded_User="alice", X_DeerMem_Proxy_Secret=SECRET) as alice,
        gateway.client(X_Forwarded_User="bob", X_DeerMem_Proxy_Secret=SECRET) as bob,
    ):
        yield gateway, alice, bob


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_corrupt_file_is_told_to_its_user_alone_and_named_in_the_log_alone(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    manager_at(tmp_path).create_fact("of alice", user_id="alice")
    manager_at(tmp_path).create_fact("of bob", user_id="bob")
    (path,) = (tmp_path / "users" / "alice").rglob("fact_*.md")
    path.write_text("<<<<<<< HEAD\n")
    send = READS[name] if name in READS else WRITES[name][0]
    with two_users(tmp_path) as (_, alice, bob), caplog.at_level(logging.ERROR, "deermem"):
        answer = send(alice, path.stem)
        if name == "clear":  # what is deleted need not be readable
            assert answer.status_code == 200
            return
        refused(answer, 500, CORRUPT)
        assert path.name not in str(answer.headers) + answer.text
        assert contents(bob.document()) == ["of bob"]
        assert bob.create("still works")
    (line,) = [record.getMessage() for record in caplog.records]
    assert path.name in line
    assert "of alice" not in line
    assert path.read_text() == "<<<<<<< HEAD\n"


def test_a_memory_of_a_newer_version_is_corrupted_as_far_as_clients_are_told(tmp_path: Path) -> None:
    manager_at(tmp_path).create_fact("a fact", user_id="default")
    path = tmp_path / "users" / "default" / "memory.json"
    path.write_text(path.read_text().replace('"2.0"', '"3.0"'))
    with running(manager_at(tmp_path)) as gateway, gateway.client() as client:
        refused(client.get(MEMORY), 500, CORRUPT)
        refused(client.post(FACTS, json={"content": "x"}), 500, CORRUPT)


def test_a_lock_that_is_held_elsewhere_is_told_with_a_time_to_retry(tmp_path: Path) -> None:
    with Peer(stop_inside, tmp_path, "rename", JOURNAL) as peer:
        assert peer.hear() == "inside"
        auth = AuthSettings(user="alice")
        manager = manager_at(tmp_path, file_lock_timeout_seconds=1)
        with running(manager, auth=auth, patience=1.0) as gateway, gateway.client() as client:
            answer = client.post(FACTS, json={"content": "x"})
            refused(answer, 503, "Memory is busy; nothing was changed.")
            assert answer.headers["retry-after"] == "1"
            peer.tell()
            client.create("y")


def test_a_writer_that_waits_for_its_lock_does_not_keep_others_from_working(tmp_path: Path) -> None:
    with Peer(stop_inside, tmp_path, "rename", JOURNAL) as peer:
        assert peer.hear() == "inside"
        with two_users(tmp_path) as (gateway, alice, bob):
            requests = [
                alice.build_request("POST", FACTS, json={"content": f"x{number}"}) for number in range(20)
            ]
            with _sent(requests, gateway):
                for number in range(10):
                    bob.create(f"fact {number}")
                peer.tell()
        assert len(manager_at(tmp_path).get_memory(user_id="alice")["facts"]) == 21


@contextmanager
def _sent(requests: list[httpx.Request], gateway: Running) -> Iterator[None]:
    """Sends requests, each on a connection of its own, and waits for the answers after the block."""

    def send(request: httpx.Request) -> int:
        with gateway.client() as client:
            return client.send(request).status_code

    with ThreadPoolExecutor(len(requests)) as threads:
        futures = [threads.submit(send, request) for request in requests]
        yield
        assert {future.result(PATIENCE) for future in futures} == {200}


class Broken(MemoryManager):
    """Does what the contract demands of a backend and no more, and fails in one way where it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def add(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    def get_context(self, *_: Any, **__: Any) -> str:
        return ""

    def get_memory(self, **names: Any) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return super().get_memory(**names)

    def create_fact(self, *values: Any, **named: Any) -> tuple[dict[str, Any], str | None]:
        if self.error is not None:
            raise self.error
        return super().create_fact(*values, **named)


BODIES: dict[str, object] = {
    f"{MEMORY}/import": {"facts": []},
    FACTS: {"content": "x"},
    f"{FACTS}/batch": {"facts": [{"content": "x"}]},
    f"{FACTS}/batch-delete": {"ids": ["f"]},
}


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", MEMORY, "get memory"),
        ("GET", f"{MEMORY}/status", "get memory status"),
        ("GET", f"{MEMORY}/export", "export memory"),
        ("POST", f"{MEMORY}/reload", "reload memory"),
        ("DELETE", MEMORY, "clear memory"),
        ("POST", f"{MEMORY}/import", "import memory"),
        ("POST", FACTS, "create fact"),
        ("PATCH", f"{FACTS}/f", "update fact"),
        ("DELETE", f"{FACTS}/f", "delete fact"),
        ("GET", FACTS, "list facts"),
        ("GET", f"{FACTS}/f", "get fact"),
        ("POST", f"{FACTS}/batch", "create facts"),
        ("POST", f"{FACTS}/batch-delete", "delete facts"),
        ("PATCH", f"{MEMORY}/summaries", "update summaries"),
        ("GET", "/api/agents", "list agents"),
        ("DELETE", "/api/agents/coder", "delete agent"),
    ],
)
def test_what_a_backend_does_not_support_is_told(method: str, path: str, operation: str) -> None:
    body = BODIES.get(path, {})
    with running(Broken()) as gateway, gateway.client() as client:
        answer = client.request(method, path, json=None if method == "GET" else body)
        refused(answer, 501, f"Operation '{operation}' not supported by memory backend 'Broken'.")
        assert client.get("/readyz").status_code == 200
        assert body_of(client.get(f"{MEMORY}/config")) == {"backend": "Broken", "read_only": False}


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (ValueError("Duplicate fact"), 409, "A fact with the same content already exists."),
        (ValueError("content"), 400, "Memory fact content cannot be empty."),
        (ValueError("confidence"), 400, "Invalid confidence value; must be between 0 and 1."),
        (KeyError("f1"), 404, "Memory fact 'f1' not found."),
        (CommitInDoubt(2, "/secret/path"), 500, IN_DOUBT),
        (OSError(errno.EIO, "bad", "/secret/path"), 500, "Failed to create memory fact."),
        (RuntimeError("/secret/path"), 500, "Failed to create memory fact."),
        (LockTimeout("/secret/path", 1.0), 503, "Memory is busy; nothing was changed."),
    ],
)
def test_the_errors_of_any_backend_are_told_in_the_same_words(
    error: Exception, status: int, detail: str
) -> None:
    with running(Broken(error)) as gateway, gateway.client() as client:
        answer = client.post(FACTS, json={"content": "x"})
        refused(answer, status, detail)
        assert "secret" not in answer.text


def test_an_error_of_the_program_is_in_the_log_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    with running(Broken(RuntimeError("a bug"))) as gateway, gateway.client() as client:
        refused(client.get(MEMORY), 500, "Failed to read memory data.")
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.getMessage() == "get memory of 'default/__default__' failed: a bug"


def test_files_of_version_1_that_cannot_be_migrated_are_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager, disk = watched_manager(tmp_path)
    source = tmp_path / "users" / "default" / "memory.json"
    source.parent.mkdir(parents=True)
    source.write_text('{"version": "1.0", "facts": [{"id": "fact_1", "content": "of old"}]}', "utf-8")
    with running(manager) as gateway, gateway.client() as client, caplog.at_level(logging.ERROR, "deermem"):
        disk.fail(lambda call: call.kind == "lock_file", errno.EROFS)
        refused(client.get(MEMORY), 500, CORRUPT)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "users/default/memory.json: is of version 1 and cannot be migrated: Read-only file system" in line
