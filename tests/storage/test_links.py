"""Guarantee G6: nothing is followed out of a user's bucket, on reads or on writes."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from deermem import Corruption, FactDraft, MemoryRepository
from tests.support.stores import ALICE, BOB, draft, fact_path, interrupt, open_descriptors, store_with, tree
from tests.support.systems import needs_descriptors
from tests.support.watched import call_of

SHARD = fact_path(Path(), ALICE, "x").parent.as_posix()
NAMES = {
    "users": "users",
    "the bucket": "users/alice",
    "memory.json": "users/alice/memory.json",
    ".memory.lock": "users/alice/.memory.lock",
    "the journal": "users/alice/.memory.journal.json",
    ".recovery": "users/alice/.recovery",
    "the fences": "users/alice/.memory.fences.json",
    "agents": "users/alice/agents",
    "an agent's directory": "users/alice/agents/__default__",
    "facts": "users/alice/agents/__default__/facts",
    "a shard": SHARD,
    "a fact": f"{SHARD}/x.md",
}
DIRECTORIES = ("users", "the bucket", ".recovery", "agents", "an agent's directory", "facts", "a shard")
# What a read of all facts does not touch may be a link then, and a write has to find it.
ONLY_WRITTEN = (".memory.lock", ".recovery", "the fences")
RIGHT_KINDS = {(".memory.lock", "empty file"), *((name, "directory") for name in DIRECTORIES)}
# On Windows neither of the last two can be made by Python.
KINDS = ("directory", "empty file", *(("pipe", "socket") if os.name != "nt" else ()))
WRONG_KINDS = [(name, kind) for name in NAMES for kind in KINDS if (name, kind) not in RIGHT_KINDS]

Operation = Callable[[MemoryRepository], object]
READS: dict[str, Operation] = {
    "snapshot": lambda store: store.snapshot(ALICE),
    "get_fact": lambda store: store.get_fact(ALICE, "x"),
    "list without the corrupt": lambda store: store.list_facts(ALICE, skip_corrupt=True),
    "list_agents": lambda store: store.list_agents("alice"),
    "get_manifest": lambda store: store.get_manifest("alice"),
}
WRITES: dict[str, Operation] = {
    "update": lambda store: store.upsert_fact(ALICE, draft("x", "two"), expected=1),
    "delete": lambda store: store.delete_fact(ALICE, "x"),
    "create": lambda store: store.create_fact(ALICE, FactDraft("new"), max_facts=1),
    "clear": lambda store: store.clear(ALICE),
    "clear_all": lambda store: store.clear_all("alice"),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a store of one fact with every file that a user can have, to copy."""
    root = tmp_path_factory.mktemp("base")
    store_with(root, "y").clear(ALICE)
    MemoryRepository(root).upsert_fact(ALICE, draft("x"))
    return root


def copy_of(base: Path, tmp_path: Path, name: str) -> Path:
    root = Path(shutil.copytree(base, tmp_path / "store"))
    if name == "the journal":
        at = call_of("rename", "memory.json")
        interrupt(root, lambda store: store.upsert_fact(ALICE, draft("z")), at)
    return root


def refused(operation: Operation, store: MemoryRepository) -> bool:
    """Tells whether an operation is refused with a typed error; another error is the test's."""
    try:
        operation(store)
    except Corruption:
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_a_link_in_place_of_a_file_or_directory_is_refused_and_what_it_leads_to_stays_as_it_is(
    base: Path, tmp_path: Path, name: str
) -> None:
    root, outside = copy_of(base, tmp_path, name), tmp_path / "outside"
    place = root / NAMES[name]
    place.rename(outside)
    place.symlink_to(outside)
    before = tree(tmp_path)
    refusals = {key: refused(read, MemoryRepository(root)) for key, read in READS.items()}
    refusals |= {key: refused(write, MemoryRepository(root)) for key, write in WRITES.items()}
    needed = {"update", "delete", "create"} if name != "the fences" else {"clear", "clear_all"}
    if name not in ONLY_WRITTEN:
        needed |= {"snapshot", "get_fact"}
    assert needed <= {key for key, refusal in refusals.items() if refusal}
    after = tree(tmp_path)
    assert {path: after[path] for path in before if path.startswith("outside")} == {
        path: before[path] for path in before if path.startswith("outside")
    }
    assert {path for path in after if path.startswith("outside")} <= set(before)


@pytest.mark.parametrize("name", NAMES)
def test_a_link_that_leads_to_nothing_makes_nothing_come_to_be_outside(
    base: Path, tmp_path: Path, name: str
) -> None:
    root = copy_of(base, tmp_path, name)
    place = root / NAMES[name]
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    place.symlink_to(tmp_path / "outside")
    for operation in (*READS.values(), *WRITES.values()):
        refused(operation, MemoryRepository(root))
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("name", [*list(NAMES)[:4], ".recovery", "agents"])
def test_a_link_that_is_there_before_the_first_write_is_refused(tmp_path: Path, name: str) -> None:
    root, outside = tmp_path / "store", tmp_path / "outside"
    outside.mkdir()
    place = root / NAMES[name]
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    with pytest.raises(Corruption):
        MemoryRepository(root).upsert_fact(ALICE, draft("x"))
    assert not list(outside.iterdir())


@pytest.mark.parametrize(("name", "kind"), WRONG_KINDS)
def test_something_of_another_kind_in_place_of_a_file_or_directory_is_refused_without_a_hang(
    base: Path, tmp_path: Path, name: str, kind: str
) -> None:
    root = copy_of(base, tmp_path, name)
    place = root / NAMES[name]
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        # The name of a socket may be about 100 characters long, the place of a test's directory is longer.
        with chdir(place.parent), socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place.name)
    elif kind == "directory":
        place.mkdir()
    else:
        place.touch()
    before = tree(root)
    operations = {**READS, **WRITES}
    refusals = {key: refused(operations[key], MemoryRepository(root)) for key in ("get_fact", "snapshot")}
    if name not in ONLY_WRITTEN:
        assert all(refusals.values())
        assert tree(root) == before
    needed = "clear" if name == "the fences" else "update"
    assert refused(operations[needed], MemoryRepository(root))
    kept = tree(root)
    assert {path: entry for path, entry in kept.items() if path in before} == before


@needs_descriptors
def test_a_refused_link_leaves_no_descriptor_open(base: Path, tmp_path: Path) -> None:
    root, outside = copy_of(base, tmp_path, "facts"), tmp_path / "outside"
    place = root / NAMES["facts"]
    place.rename(outside)
    place.symlink_to(outside)
    store = MemoryRepository(root)
    before = open_descriptors()
    for operation in (*READS.values(), *WRITES.values()):
        refused(operation, store)
    assert open_descriptors() == before


def test_a_link_to_another_users_bucket_does_not_show_that_users_facts(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    bob = tmp_path / "users" / "bob"
    bob.symlink_to(tmp_path / "users" / "alice")
    for operation in (lambda: store.snapshot(BOB), lambda: store.upsert_fact(BOB, draft("b"))):
        with pytest.raises(Corruption):
            operation()


def test_a_hard_link_to_anothers_fact_is_refused_by_the_scope_in_it(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.upsert_fact(BOB, draft("y"))
    stolen = fact_path(tmp_path, BOB, "x")
    stolen.parent.mkdir(exist_ok=True)
    os.link(fact_path(tmp_path, ALICE, "x"), stolen)
    with pytest.raises(Corruption, match="user_id"):
        store.get_fact(BOB, "x")
