"""Writers that compete do on each step what is measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from benchmarks.children import all_together, in_fresh_process, write_together
from benchmarks.rows import other_users, same_user
from benchmarks.rows.changed_read import ChangedStore
from benchmarks.samples import build_scope
from deermem import MemoryRepository, Scope

SCOPE = Scope.of("alice", "assistant")


class Broken:
    """Is a work that cannot be begun."""

    def begin(self, number: int) -> Callable[[], object]:
        raise OSError(number, "no such work")


def test_each_step_is_a_commit_also_when_a_writer_begins_again(tmp_path: Path) -> None:
    ids = tuple(build_scope(tmp_path, SCOPE, 10))
    work = same_user.Updates(tmp_path, ids)
    for _ in range(2):
        step = work.begin(1)
        for _ in range(4):
            step()
    with MemoryRepository(tmp_path) as repository:
        assert repository.get_manifest("alice").revision == 1 + 8


def test_writers_of_different_users_commit_to_their_own(tmp_path: Path) -> None:
    scopes = [other_users.scope_of(number) for number in range(2)]
    ids = [tuple(build_scope(tmp_path, scope, 10)) for scope in scopes]
    for number in range(2):
        other_users.OwnUser(tmp_path, ids[number]).begin(number)()
    with MemoryRepository(tmp_path) as repository:
        assert [repository.get_manifest(scope.user.raw).revision for scope in scopes] == [2, 2]


def test_a_changed_store_is_read_as_it_is(tmp_path: Path) -> None:
    store = ChangedStore(tmp_path, 10)
    before = store.read()
    store.change()
    after = store.read()
    changed = [new.id for old, new in zip(before.facts, after.facts, strict=True) if old != new]
    assert (after.revision, len(changed)) == (before.revision + 1, 1)


def test_what_writers_did_is_counted_together(tmp_path: Path) -> None:
    ids = tuple(build_scope(tmp_path, SCOPE, 16))
    writing = write_together(same_user.Updates(tmp_path, ids), 2, 0.05)
    with MemoryRepository(tmp_path) as repository:
        commits = repository.get_manifest("alice").revision - 1
    assert len(writing.calls) == commits - 2  # each writer does one step before the clock starts
    assert writing.rate == pytest.approx(len(writing.calls) / writing.elapsed)


def test_a_process_that_fails_is_an_error_of_the_benchmark() -> None:
    with pytest.raises(RuntimeError, match="ended with code 1"):
        write_together(Broken(), 1, 0.05)


def test_a_fresh_process_returns_its_result() -> None:
    assert in_fresh_process(divmod, 17, 5) == (3, 2)


def test_each_of_several_works_runs_once_in_a_process_of_its_own(tmp_path: Path) -> None:
    seconds = all_together([partial(os.mkdir, tmp_path / name) for name in ("one", "two")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    assert seconds > 0
