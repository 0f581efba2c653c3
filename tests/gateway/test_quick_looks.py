"""The event loop looks at a cached memory itself where that is quick, and leaves the rest to threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deermem import DeerMem, MemoryRepository, Scope
from deermem.gateway import backend as backend_module
from deermem.gateway import quick_looks
from deermem.gateway.backend import Backend
from deermem.gateway.quick_looks import JUDGED_SECONDS, PAUSE_SECONDS, SLOW_SECONDS, QuickLooks
from deermem.model.snapshot import Snapshot
from tests.gateway.servers import PATIENCE, contents, running
from tests.manager.managers import watched_manager
from tests.support.watched import Call

ALICE = Scope.of("alice")
# What the gateway calls its threads.
POOL = "deermem-gateway"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def look_for(self, seconds: float) -> str:
        self.now += seconds
        return "found"


def test_nothing_is_looked_at_before_it_is_known_where_the_store_lies() -> None:
    looks = QuickLooks(lambda: True)
    assert looks.take(lambda: "found") is None
    looks.judge()
    assert looks.take(lambda: "found") == "found"


def test_a_disk_that_others_serve_is_never_looked_at() -> None:
    looks = QuickLooks(lambda: False)
    looks.judge()
    assert looks.take(lambda: "found") is None


def test_a_store_that_moves_to_another_disk_is_judged_anew() -> None:
    clock, answers = Clock(), iter([True, False])
    looks = QuickLooks(lambda: next(answers), clock)
    looks.judge()
    clock.now += JUDGED_SECONDS * 0.9
    looks.judge()
    assert looks.take(lambda: "found") == "found"
    clock.now += JUDGED_SECONDS * 0.2
    looks.judge()
    assert looks.take(lambda: "found") is None


def test_after_a_slow_look_none_is_taken_for_a_while() -> None:
    clock = Clock()
    looks = QuickLooks(lambda: True, clock)
    looks.judge()
    assert looks.take(lambda: clock.look_for(SLOW_SECONDS * 0.9)) == "found"
    assert looks.take(lambda: clock.look_for(SLOW_SECONDS * 1.1)) == "found"
    clock.now += PAUSE_SECONDS * 0.9
    assert looks.take(lambda: "found") is None
    clock.now += PAUSE_SECONDS * 0.2
    assert looks.take(lambda: "found") == "found"


@pytest.fixture
def everything_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also lets a look take as long as it does on a machine with other work."""
    monkeypatch.setattr(backend_module, "is_local", lambda _: True)
    monkeypatch.setattr(quick_looks, "SLOW_SECONDS", PATIENCE)


@pytest.mark.usefixtures("everything_is_local")
def test_what_was_sent_before_is_sent_at_once_until_it_changes(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    backend = Backend(manager, read_only=False, max_facts_per_request=10)
    manager.create_fact("Tea", user_id="alice")
    assert backend.document_at_once(ALICE) is None
    sent = backend.document(ALICE)
    disk.calls.clear()
    assert backend.document_at_once(ALICE) is sent
    assert [call.kind for call in disk.calls] == ["open_root", "child", "child", "read"]
    manager.create_fact("Coffee", user_id="alice")
    assert backend.document_at_once(ALICE) is None


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Lets go of whoever waits when the test is over."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


@pytest.mark.usefixtures("everything_is_local")
def test_what_was_sent_before_is_sent_while_every_thread_is_taken(
    tmp_path: Path, held: threading.Event
) -> None:
    manager, disk = watched_manager(tmp_path)
    with running(manager, threads=1) as gateway, gateway.client() as client, gateway.client() as writer:
        client.create("Tea")
        assert contents(client.document()) == ["Tea"]
        waits = threading.Event()

        def hold(call: Call) -> None:
            if call.kind == "lock_file":
                waits.set()
                assert held.wait(PATIENCE)

        disk.on_call = hold
        writing = threading.Thread(target=writer.create, args=("Coffee",))
        writing.start()
        assert waits.wait(PATIENCE)
        assert contents(client.document()) == ["Tea"]
        held.set()
        writing.join(PATIENCE)
        assert contents(client.document()) == ["Coffee", "Tea"]


@pytest.mark.usefixtures("everything_is_local")
def test_while_some_threads_are_at_work_the_loop_leaves_looking_to_them(
    tmp_path: Path, held: threading.Event
) -> None:
    """They contend for the interpreter, which the loop would wait for at each call of a look."""
    manager, disk = watched_manager(tmp_path)
    with running(manager, threads=2) as gateway, gateway.client() as client, gateway.client() as writer:
        client.create("Tea")
        client.document()
        lookers: list[str] = []
        waits = threading.Event()

        def watch(call: Call) -> None:
            if call.kind == "lock_file":
                waits.set()
                assert held.wait(PATIENCE)
            elif call.kind == "read":
                lookers.append(threading.current_thread().name)

        disk.on_call = watch
        client.document()
        assert lookers.pop() != POOL
        writing = threading.Thread(target=writer.create, args=("Coffee",))
        writing.start()
        assert waits.wait(PATIENCE)
        lookers.clear()
        client.document()
        assert lookers == [POOL]
        held.set()
        writing.join(PATIENCE)


def test_a_disk_that_others_serve_and_that_hangs_does_not_stop_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: threading.Event
) -> None:
    monkeypatch.setattr(backend_module, "is_local", lambda _: False)
    manager, disk = watched_manager(tmp_path)
    with running(manager) as gateway, gateway.client() as client, gateway.client() as other:
        client.create("Tea")
        client.document()
        hangs = threading.Event()

        def hang(_: Call) -> None:
            hangs.set()
            assert held.wait(PATIENCE)

        disk.on_call = hang
        reading = threading.Thread(target=client.document)
        reading.start()
        assert hangs.wait(PATIENCE)
        assert other.get("/healthz").status_code == 200
        held.set()
        reading.join(PATIENCE)


class Reworded(MemoryRepository):
    """Shows what is stored in another way."""

    def snapshot(self, scope: Scope) -> Snapshot:
        return super().snapshot(scope)


@pytest.mark.usefixtures("everything_is_local")
def test_a_storage_that_reads_its_own_way_is_always_asked(tmp_path: Path) -> None:
    manager = DeerMem({}, repository=Reworded(tmp_path))
    backend = Backend(manager, read_only=False, max_facts_per_request=10)
    manager.create_fact("Tea", user_id="alice")
    backend.document(ALICE)
    assert backend.document_at_once(ALICE) is None
