"""Creators at work at once can neither store the same text twice nor exceed the cap."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, DuplicateFact, MemoryRepository
from deermem.storage.port import Directory
from tests.manager.managers import contents, manager_at
from tests.support.threads import run_together
from tests.support.watched import WatchedFileSystem

CAP = 10

# Each process creates the texts that it reads, and tells what came of each.
PROCESS = """
import json, sys
from deermem import DeerMem, DuplicateFact, MemoryRepository
from deermem.storage.port import Directory
manager = DeerMem({"storage_path": sys.argv[1], "max_facts": int(sys.argv[2])})
print("ready", flush=True)
outcome = []
for text in json.loads(sys.stdin.readline()):
    try:
        document, fact_id = manager.create_fact(text, user_id="alice")
        outcome.append([text, "stored" if fact_id else "evicted", len(document["facts"])])
    except DuplicateFact:
        outcome.append([text, "duplicate", 0])
print(json.dumps(outcome))
"""

Outcome = list[list[Any]]


def create_in_threads(root: Path, texts: list[list[str]], cap: int) -> Outcome:
    manager = manager_at(root, max_facts=cap)
    outcome: Outcome = []

    def creator(own: list[str]) -> Callable[[], None]:
        def create() -> None:
            for text in own:
                outcome.append(create_one(manager, text))

        return create

    run_together(*(creator(own) for own in texts))
    return outcome


def create_one(manager: DeerMem, text: str) -> list[Any]:
    try:
        document, fact_id = manager.create_fact(text, user_id="alice")
    except DuplicateFact:
        return [text, "duplicate", 0]
    return [text, "stored" if fact_id else "evicted", len(document["facts"])]


def create_in_processes(root: Path, texts: list[list[str]], cap: int) -> Outcome:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(root), str(cap)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in texts
    ]
    outcome: Outcome = []
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process, own in zip(processes, texts, strict=True):
        assert process.stdin is not None
        process.stdin.write(json.dumps(own) + "\n")
        process.stdin.flush()
    for process in processes:
        told, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        outcome += json.loads(told)
    return outcome


CREATORS = [(create_in_threads, 8), (create_in_processes, 2)]


@pytest.mark.parametrize(("create", "creators"), CREATORS, ids=["8 threads", "2 processes"])
def test_of_creators_of_the_same_texts_one_succeeds_with_each(
    tmp_path: Path, create: Callable[..., Outcome], creators: int
) -> None:
    texts = [f"text {number}" for number in range(6)]
    outcome = create(tmp_path, [texts] * creators, 100)
    assert contents(manager_at(tmp_path).get_memory(user_id="alice")) == texts
    counted = Counter((text, what) for text, what, _ in outcome)
    assert counted == Counter({(text, "stored"): 1 for text in texts}) + Counter(
        {(text, "duplicate"): creators - 1 for text in texts}
    )


@pytest.mark.parametrize(("create", "creators"), CREATORS, ids=["8 threads", "2 processes"])
def test_creators_of_different_texts_never_exceed_the_cap(
    tmp_path: Path, create: Callable[..., Outcome], creators: int
) -> None:
    each = 24 // creators
    texts = [[f"text {creator} {number}" for number in range(each)] for creator in range(creators)]
    outcome = create(tmp_path, texts, CAP)
    assert len(outcome) == 24
    assert max(size for _, _, size in outcome) == CAP
    stored = contents(manager_at(tmp_path, max_facts=CAP).get_memory(user_id="alice"))
    assert len(stored) == CAP
    assert set(stored) <= {text for text, what, _ in outcome if what == "stored"}


class Overtaken(WatchedFileSystem):
    """Is a disk on which somebody makes the store just after it was looked for."""

    make_store: Callable[[], object] | None = None

    def open_root(self) -> Directory:
        make, self.make_store = self.make_store, None
        if make is not None:
            make()
            raise FileNotFoundError(errno.ENOENT, "no storage root yet")
        return super().open_root()


def test_a_first_create_that_another_thread_overtakes_is_no_corruption(tmp_path: Path) -> None:
    disk = Overtaken(tmp_path / "store")
    manager = DeerMem(repository=MemoryRepository(disk))
    disk.make_store = lambda: manager.create_fact("first", user_id="alice")
    document, fact_id = manager.create_fact("second", user_id="alice")
    assert fact_id is not None
    assert contents(document) == ["first", "second"]
