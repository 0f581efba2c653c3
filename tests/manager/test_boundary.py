"""What crosses the boundary: the contract's names and arguments, and its errors."""

from __future__ import annotations

import errno
import inspect
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deermem.errors
from deermem import (
    ArchiveError,
    CommitInDoubt,
    Corruption,
    DeerMem,
    DeerMemError,
    DuplicateFact,
    FactConflict,
    FactNotFoundError,
    InvalidInputError,
    LockTimeout,
    ManifestConflict,
    MemoryConflictError,
    MemoryCorruptionError,
    MemoryManager,
    MemoryManagerError,
    MigrationError,
    NotACustomAgent,
    RestoreConflict,
    RevisionConflict,
    Scope,
    SearchIndexError,
    UnsupportedFormat,
)
from deermem.manager import translated
from tests.manager.managers import manager_at, watched_manager
from tests.support.stores import bucket_path, edit, fact_path, store_with, tree
from tests.support.watched import call_of

SCOPE = ["user_id", "agent_name"]
OPERATIONS = {
    "add": ["thread_id", "messages", *SCOPE, "trace_id"],
    "add_nowait": ["thread_id", "messages", *SCOPE, "trace_id"],
    "get_context": ["user_id", "agent_name", "thread_id"],
    "search": ["query", "top_k", *SCOPE, "category"],
    "get_memory": SCOPE,
    "reload_memory": SCOPE,
    "clear_memory": SCOPE,
    "import_memory": ["memory_data", *SCOPE],
    "export_memory": SCOPE,
    "delete_memory": SCOPE,
    "create_fact": ["content", "category", "confidence", *SCOPE],
    "update_fact": ["fact_id", "content", "category", "confidence", *SCOPE],
    "delete_fact": ["fact_id", *SCOPE],
    "warm": [],
    "shutdown_flush": ["timeout"],
    "close": [],
}
POSITIONAL = {
    "thread_id",
    "messages",
    "query",
    "top_k",
    "memory_data",
    "content",
    "category",
    "confidence",
} | {
    "fact_id",
    "timeout",
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("kind", [MemoryManager, DeerMem])
@pytest.mark.parametrize("twin", ["", "a"])
def test_an_operation_has_the_parameters_of_the_contract(
    kind: type[MemoryManager], name: str, twin: str
) -> None:
    method = getattr(kind, twin + name)
    parameters = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
    assert {each.name for each in parameters} == set(OPERATIONS[name])
    scoped = {"user_id", "agent_name"} - ({"user_id"} if name == "get_context" else set())
    assert {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} >= scoped & set(
        OPERATIONS[name]
    )
    assert inspect.iscoroutinefunction(method) == bool(twin)


def test_the_defaults_are_those_of_the_contract() -> None:
    created = inspect.signature(DeerMem.create_fact).parameters
    assert (created["category"].default, created["confidence"].default) == ("context", 0.5)
    assert inspect.signature(DeerMem.search).parameters["top_k"].default == 5


class OnlyTheLeast(MemoryManager):
    """Implements what a backend must."""

    def add(self, *_: Any, **__: Any) -> None:
        """Takes anything."""

    def get_context(self, *_: Any, **__: Any) -> str:
        """Knows nothing."""
        return ""


UNSUPPORTED: dict[str, Callable[[MemoryManager], object]] = {
    "search": lambda manager: manager.search("x"),
    "get memory": lambda manager: manager.get_memory(),
    "export": lambda manager: manager.export_memory(),
    "reload memory": lambda manager: manager.reload_memory(),
    "import memory": lambda manager: manager.import_memory({}),
    "clear memory": lambda manager: manager.clear_memory(),
    "delete": lambda manager: manager.delete_memory(),
    "create fact": lambda manager: manager.create_fact("x"),
    "update fact": lambda manager: manager.update_fact("x"),
    "delete fact": lambda manager: manager.delete_fact("x"),
}


@pytest.mark.parametrize("operation", UNSUPPORTED)
def test_what_a_backend_does_not_have_is_not_implemented(operation: str) -> None:
    with pytest.raises(NotImplementedError):
        UNSUPPORTED[operation](OnlyTheLeast())


def test_a_backend_without_more_has_nothing_to_warm_to_flush_and_to_close() -> None:
    manager = OnlyTheLeast()
    assert manager.warm() is None
    assert manager.shutdown_flush(1) is True
    manager.add_nowait("t", ["x"])
    manager.close()


def test_a_backend_without_add_and_get_context_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="add"):
        MemoryManager()  # type: ignore[abstract]


TRANSLATED = [
    (
        ManifestConflict(3, 5),
        MemoryConflictError,
        {"expected_revision": 3, "current_revision": 5, "fact_id": None},
    ),
    (
        FactConflict("f", 2, 2, "old", "new"),
        MemoryConflictError,
        {"fact_id": "f", "current_revision": 2, "expected_text": "old", "current_text": "new"},
    ),
    (FactConflict("f", 2, None), MemoryConflictError, {"expected_revision": 2, "current_revision": None}),
    (RevisionConflict("other"), MemoryConflictError, {"current_revision": None}),
    (
        Corruption("users/x/memory.json", "is bad", "mend"),
        MemoryCorruptionError,
        {"path": "users/x/memory.json"},
    ),
    (UnsupportedFormat("memory.json", "3.0", "2.0"), MemoryCorruptionError, {"path": "memory.json"}),
    (MigrationError("memory.json", "is bad"), MemoryCorruptionError, {"reason": "is bad"}),
    (SearchIndexError("x", "down"), MemoryManagerError, {}),
]


@pytest.mark.parametrize(
    ("raised", "crosses", "attributes"), TRANSLATED, ids=[str(number) for number in range(len(TRANSLATED))]
)
def test_an_error_of_the_store_is_translated(
    raised: DeerMemError, crosses: type[MemoryManagerError], attributes: dict[str, object]
) -> None:
    with pytest.raises(crosses) as caught, translated():
        raise raised
    assert type(caught.value) is crosses
    assert {name: getattr(caught.value, name) for name in attributes} == attributes
    assert caught.value.__cause__ is raised
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - made here


CROSSING = [
    InvalidInputError("f", "r"),
    DuplicateFact(),
    FactNotFoundError("f"),
    LockTimeout("l", 1.0),
    CommitInDoubt(2, "EIO"),
    OSError(errno.ENOSPC, "full"),
]


@pytest.mark.parametrize("raised", CROSSING, ids=lambda each: type(each).__name__)
def test_an_error_that_may_cross_is_left_as_it_is(raised: Exception) -> None:
    with pytest.raises(type(raised)) as caught, translated():
        raise raised
    assert caught.value is raised
    assert isinstance(raised, ValueError | KeyError | OSError)


def test_every_error_of_the_package_is_translated_or_may_cross() -> None:
    # The last three are of deleting an agent and of restoring a backup, which only front doors do.
    only_front_doors = (NotACustomAgent, ArchiveError, RestoreConflict)
    may_cross = (ValueError, KeyError, OSError, MemoryManagerError, *only_front_doors)
    translated_kinds = tuple(type(raised) for raised, _, _ in TRANSLATED)
    errors = [
        each
        for each in vars(deermem.errors).values()
        if isinstance(each, type) and issubclass(each, DeerMemError) and each is not DeerMemError
    ]
    assert [each.__name__ for each in errors if not issubclass(each, (*may_cross, *translated_kinds))] == []


READING_ALL: dict[str, Callable[[DeerMem], object]] = {
    "get_memory": lambda manager: manager.get_memory(user_id="alice"),
    "export_memory": lambda manager: manager.export_memory(user_id="alice"),
    "reload_memory": lambda manager: manager.reload_memory(user_id="alice"),
    "get_context": lambda manager: manager.get_context("alice"),
    "search": lambda manager: manager.search("x", user_id="alice"),
    "create_fact": lambda manager: manager.create_fact("new", user_id="alice"),
    "update_fact": lambda manager: manager.update_fact("y", "new", user_id="alice"),
    "delete_fact": lambda manager: manager.delete_fact("y", user_id="alice"),
    "import_memory": lambda manager: manager.import_memory({"facts": []}, user_id="alice"),
}
ALL: dict[str, Callable[[DeerMem], object]] = {
    **READING_ALL,
    "clear_memory": lambda manager: manager.clear_memory(user_id="alice"),
}


@pytest.mark.parametrize("operation", READING_ALL)
def test_a_broken_fact_is_a_corruption_error_that_names_the_file_and_changes_nothing(
    tmp_path: Path, operation: str
) -> None:
    store_with(tmp_path, "x", "y")
    broken = fact_path(tmp_path, Scope.of("alice"), "x")
    broken.write_text("no fact", "utf-8")
    before = tree(tmp_path)
    with pytest.raises(MemoryCorruptionError) as corruption:
        READING_ALL[operation](manager_at(tmp_path))
    assert corruption.value.path == broken.relative_to(tmp_path).as_posix()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("operation", ALL)
def test_a_memory_of_a_newer_version_is_a_corruption_error_and_stays(tmp_path: Path, operation: str) -> None:
    store_with(tmp_path, "y")
    path = bucket_path(tmp_path) / "memory.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "version": "3.0"}), "utf-8")
    before = path.read_bytes()
    with pytest.raises(MemoryCorruptionError, match=r"3\.0"):
        ALL[operation](manager_at(tmp_path))
    assert path.read_bytes() == before


def test_other_users_do_not_notice_what_is_broken(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    store_with(tmp_path, "z", scope=Scope.of("bob"))
    fact_path(tmp_path, Scope.of("alice"), "x").write_text("no fact", "utf-8")
    assert len(manager_at(tmp_path).get_memory(user_id="bob")["facts"]) == 1


def test_a_lock_that_is_held_too_long_is_a_time_out_that_names_the_file(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    manager, disk = watched_manager(tmp_path)
    other = manager_at(tmp_path, file_lock_timeout_seconds=1)
    waits: list[str] = []

    def wait_in_vain(call: Any) -> None:
        if call_of("rename", "memory.json")(call):
            with pytest.raises(TimeoutError) as timeout:
                other.create_fact("late", user_id="alice")
            waits.append(str(timeout.value))

    disk.on_call = wait_in_vain
    manager.create_fact("new", user_id="alice")
    (told,) = waits
    assert str(bucket_path(tmp_path) / ".memory.lock") in told


def test_an_error_of_the_disk_crosses_as_it_is_and_changes_nothing(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    document, _ = manager.create_fact("x", user_id="alice")
    disk.fail(call_of("create"), errno.ENOSPC)
    with pytest.raises(OSError, match="No space left") as full:
        manager.create_fact("y", user_id="alice")
    assert full.value.errno == errno.ENOSPC
    disk.heal()
    assert manager.reload_memory(user_id="alice") == document


def test_a_store_operation_of_a_front_door_is_translated_too(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    manager = manager_at(tmp_path)
    scope = Scope.of("alice")
    with pytest.raises(MemoryConflictError) as conflict:
        manager.run_on_store(lambda store: store.delete_fact(scope, "x", expected=2))
    assert conflict.value.current_revision == 1
    assert manager.run_on_store(lambda store: store.get_fact(scope, "x")) is not None


def test_a_hand_edit_that_was_not_read_before_is_no_conflict(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    edit(fact_path(tmp_path, Scope.of("alice"), "x"), "\n\ntext of x\n", "\n\nby hand\n")
    document = manager_at(tmp_path).update_fact("x", confidence=0.9, user_id="alice")
    assert document["facts"][0]["content"] == "by hand"
