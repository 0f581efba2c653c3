"""What processes do that fork; each function has a pipe to the test as its first argument."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from deermem import ChangeSet, DeerMem, MemoryRepository, Upsert
from deermem.model.manifest import NO_MANIFEST, Manifest
from deermem.storage.view import View
from tests.support.stores import ALICE, draft
from tests.support.watched import Call, WatchedFileSystem, call_of

PATIENCE = 30.0


def answer_of_a_fork(work: Callable[[], object]) -> Callable[[], str]:
    """Runs something in a forked child; the result waits for its answer, or the name of what it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = repr(work())
        except BaseException as error:  # noqa: BLE001 - it is the answer
            answer = type(error).__name__
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)

    def wait() -> str:
        with os.fdopen(reader, "rb") as pipe:
            text = pipe.read().decode()
        os.waitpid(child, 0)
        return text

    return wait


def fork_beside_a_transaction(pipe: Connection, root: Path) -> None:
    """Forks while another thread is within a transaction; says what a child could do then and later."""
    disk = WatchedFileSystem(root)
    inside, go_on = threading.Event(), threading.Event()

    def stop(call: Call) -> None:
        if call_of("rename", "held.md")(call):
            inside.set()
            assert go_on.wait(PATIENCE)

    disk.on_call = stop
    hasty, patient = (MemoryRepository(disk, lock_timeout=seconds) for seconds in (0.2, PATIENCE))
    thread = threading.Thread(target=lambda: patient.upsert_fact(ALICE, draft("held")))
    thread.start()
    assert inside.wait(PATIENCE)
    while_held = answer_of_a_fork(lambda: hasty.upsert_fact(ALICE, draft("child")).revision)()
    # This one shares its threads' turns with the parent's writer, which does not exist in the child.
    when_released = answer_of_a_fork(lambda: patient.upsert_fact(ALICE, draft("child")).revision)
    go_on.set()
    thread.join(PATIENCE)
    pipe.send((while_held, when_released(), patient.upsert_fact(ALICE, draft("parent")).revision))


def fork_beside_a_change_of_the_cache(pipe: Connection, root: Path) -> None:
    """Forks while another thread is in the midst of a change of the cache; the child reads and writes."""
    store = MemoryRepository(root)
    store.snapshot(ALICE)
    inside, go_on = threading.Event(), threading.Event()

    class Slow:
        """Is looked at under the cache's lock."""

        @property
        def manifest(self) -> Manifest:
            inside.set()
            assert go_on.wait(PATIENCE)
            return NO_MANIFEST

    thread = threading.Thread(target=store.engine.cache.remember, args=(ALICE.user, Slow()))
    thread.start()
    assert inside.wait(PATIENCE)

    def work() -> tuple[Sequence[str], int]:
        signal.alarm(int(PATIENCE))
        known = sorted(store.snapshot(ALICE).by_id)
        return known, store.upsert_fact(ALICE, draft("child")).revision

    answer = answer_of_a_fork(work)()
    go_on.set()
    thread.join(PATIENCE)
    pipe.send(answer)


def fork_beside_a_call(pipe: Connection, root: Path) -> None:
    """Forks while another thread is in a call of the manager; the child closes it."""
    disk = WatchedFileSystem(root)
    inside, go_on = threading.Event(), threading.Event()

    def stop(call: Call) -> None:
        if call_of("rename", "memory.json")(call):
            inside.set()
            assert go_on.wait(PATIENCE)

    disk.on_call = stop
    manager = DeerMem({}, repository=MemoryRepository(disk))
    thread = threading.Thread(target=manager.create_fact, args=("text",), kwargs={"user_id": "alice"})
    thread.start()
    assert inside.wait(PATIENCE)

    def work() -> bool:
        signal.alarm(int(PATIENCE))
        return manager.shutdown_flush(PATIENCE / 2)

    answer = answer_of_a_fork(work)()
    go_on.set()
    thread.join(PATIENCE)
    pipe.send((answer, manager.shutdown_flush(PATIENCE)))


def fork_within_a_transaction(pipe: Connection, root: Path) -> None:
    """Forks in the thread that decides what to write; the child goes on as if it held the lock."""
    parent = os.getpid()

    def decide(_: View) -> ChangeSet:
        child = os.fork()
        if child != 0:
            os.waitpid(child, 0)
        return ChangeSet(upserts=(Upsert(ALICE.agent, draft("new")),))

    try:
        MemoryRepository(root).engine.commit(ALICE.user, decide)
        outcome = "committed"
    except BaseException as error:
        if os.getpid() == parent:
            raise
        outcome = type(error).__name__
    pipe.send(outcome)
    if os.getpid() != parent:
        os._exit(0)


def fork_beside_a_waiter(pipe: Connection, root: Path) -> None:
    """Forks while another thread waits for the lock; then gets the lock and stands still with it."""
    disk = WatchedFileSystem(root)
    waiting = threading.Event()

    def watch(call: Call) -> None:
        if call_of("lock_file")(call):
            waiting.set()
        if call_of("rename", "mine.md")(call):
            pipe.send("inside")
            threading.Event().wait()

    disk.on_call = watch
    store = MemoryRepository(disk, lock_timeout=60)
    threading.Thread(target=lambda: store.upsert_fact(ALICE, draft("mine")), daemon=True).start()
    assert waiting.wait(PATIENCE)
    while not any(thread.name == "deermem-lock" for thread in threading.enumerate()):
        os.sched_yield()  # the thread that waits in the kernel tells nobody that it does
    child = os.fork()
    if child == 0:
        signal.pause()
    pipe.send(child)
    threading.Event().wait()
