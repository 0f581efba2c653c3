"""Erasing a user: all that is DeerMem's goes, all that is the host's stays, and nobody brings it back."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from deermem import (
    ANYTHING,
    ChangeSet,
    Corruption,
    DeerMem,
    DeerMemConfig,
    Delete,
    InvalidInputError,
    ManifestConflict,
    MemoryRepository,
    Scope,
    SearchIndexError,
    Upsert,
)
from deermem.format.layout import ERASED, erasure_name
from deermem.maintenance.erase import erase_user, plan_erasure
from deermem.model.identity import UserId
from deermem.model.manifest import NO_MANIFEST
from tests.maintenance.erase.buckets import HOSTS, LEGACY, add_host_files, fill, put
from tests.search.adapters import DictAdapter
from tests.support.stores import ALICE, BOB, CODER, JOURNAL, bucket_path, draft, files, interrupt, tree
from tests.support.watched import WatchedFileSystem, call_of


def entries(root: Path, user_id: str | None = "alice") -> set[str]:
    """Returns everything that a user's bucket holds; directories end in a slash."""
    bucket = bucket_path(root, user_id)
    return {
        path.relative_to(bucket).as_posix() + ("/" if path.is_dir() and not path.is_symlink() else "")
        for path in bucket.rglob("*")
    }


def directories_of(names: Sequence[str]) -> set[str]:
    return {f"{parent.as_posix()}/" for name in names for parent in Path(name).parents if parent != Path()}


def test_everything_of_deermem_goes_with_the_bucket(tmp_path: Path) -> None:
    store = fill(tmp_path)
    others = tree(bucket_path(tmp_path, "bob"))
    report = erase_user(store, "alice")
    assert report.bucket_removed
    assert not bucket_path(tmp_path).exists()
    assert tree(bucket_path(tmp_path, "bob")) == others
    assert report.kept == report.links == ()
    assert report.facts == 3
    assert (report.damage, report.bucket) == ("", "users/alice")


def test_what_belongs_to_the_host_stays_byte_for_byte_and_is_listed(tmp_path: Path) -> None:
    store = fill(tmp_path)
    add_host_files(tmp_path)
    report = erase_user(store, "alice")
    assert entries(tmp_path) == {*HOSTS, *directories_of([*HOSTS])}
    for name, data in HOSTS.items():
        assert (bucket_path(tmp_path) / name).read_bytes() == data
    assert not report.bucket_removed
    listed = [name.removeprefix("users/alice/") for name in report.kept]
    for name in HOSTS:
        assert sum(name == each or (each.endswith("/") and name.startswith(each)) for each in listed) == 1


def test_the_report_names_every_file_that_went(tmp_path: Path) -> None:
    store = fill(tmp_path)
    add_host_files(tmp_path)
    before = files(tmp_path)
    report = erase_user(store, "alice")
    gone = {name for name in before - files(tmp_path) if not name.endswith(".memory.lock")}
    assert gone <= set(report.removed)
    assert not set(report.removed) & files(tmp_path)


def test_what_stays_of_the_user_is_one_number_under_a_name_that_is_a_digest(tmp_path: Path) -> None:
    store = fill(tmp_path)
    erase_user(store, "alice")
    (name,) = [name for name in files(tmp_path) if "bob" not in name]
    assert name == f"{ERASED}/{erasure_name(UserId.parse('alice'))}"
    document = json.loads((tmp_path / name).read_bytes())
    assert document.keys() == {"format", "revision"}
    for path in tmp_path.rglob("*"):
        assert "alice" not in path.relative_to(tmp_path).as_posix()


def test_a_plan_writes_nothing_and_names_what_the_erasure_removes(tmp_path: Path) -> None:
    store = fill(tmp_path)
    add_host_files(tmp_path)
    bucket_path(tmp_path).joinpath(".memory.lock").unlink()
    before = tree(tmp_path)
    plan = plan_erasure(store, "alice")
    assert tree(tmp_path) == before
    report = erase_user(store, "alice")
    assert set(plan.removed) <= set(report.removed)
    assert (plan.kept, plan.facts, plan.agents) == (report.kept, report.facts, report.agents)
    assert {name for name in files(tmp_path) if name in plan.removed} == set()


def test_an_erasure_can_be_repeated(tmp_path: Path) -> None:
    store = fill(tmp_path)
    add_host_files(tmp_path)
    first = erase_user(store, "alice")
    before = tree(tmp_path)
    second = erase_user(store, "alice")
    assert tree(tmp_path) == before
    assert second.removed == ()
    assert second.kept == first.kept


def test_of_a_user_who_was_never_there_nothing_is_made(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path / "store")
    assert erase_user(store, "nobody").removed == ()
    assert list(tmp_path.iterdir()) == []


def test_the_memory_without_a_user_goes_and_the_users_stay(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(Scope.of(None), draft("r"))
    store.upsert_fact(ALICE, draft("x"))
    erase_user(store, "alice")
    store.upsert_fact(BOB, draft("b"))
    others = tree(tmp_path / "users")
    put(tmp_path / "threads" / "t.json", b"{}")
    report = erase_user(store, None)
    assert report.kept == ("threads/",)
    assert tree(tmp_path / "users") == others
    assert {path.name for path in tmp_path.iterdir()} == {"users", "threads", ERASED}
    assert store.snapshot(Scope.of(None)).facts == ()


def test_an_erased_user_reads_as_one_who_never_was(tmp_path: Path) -> None:
    store = fill(tmp_path)
    other = MemoryRepository(tmp_path)
    assert other.snapshot(ALICE).facts
    erase_user(store, "alice")
    for each in (store, other, MemoryRepository(tmp_path)):
        snapshot = each.snapshot(ALICE)
        assert (snapshot.revision, snapshot.facts) == (0, ())
        assert each.get_fact(CODER, "c") is None
        assert each.search_facts("text", [ALICE, CODER]) == []
        assert each.list_agents("alice") == ()
        assert each.get_summaries("alice") == NO_MANIFEST.summaries


def test_another_process_that_knew_the_user_writes_again_without_a_reload(tmp_path: Path) -> None:
    store = fill(tmp_path)
    other = MemoryRepository(tmp_path)
    seen = other.snapshot(ALICE).revision
    erase_user(store, "alice")
    assert other.upsert_fact(ALICE, draft("n")).revision > seen + 1
    assert store.snapshot(ALICE).by_id.keys() == {"n"}


def test_a_bucket_that_vanishes_without_an_erasure_is_still_corruption(tmp_path: Path) -> None:
    store = fill(tmp_path)
    erase_user(store, "alice")
    store.upsert_fact(ALICE, draft("n"))
    other = MemoryRepository(tmp_path)
    other.snapshot(ALICE)
    os.rename(bucket_path(tmp_path), tmp_path / "elsewhere")
    with pytest.raises(Corruption, match="went back from revision"):
        other.snapshot(ALICE)


def test_no_revision_that_was_seen_comes_again(tmp_path: Path) -> None:
    store = fill(tmp_path)
    seen = store.snapshot(ALICE).revision
    erase_user(store, "alice")
    again = store.upsert_fact(ALICE, draft("n")).revision
    assert again > seen
    erase_user(store, "alice")
    assert MemoryRepository(tmp_path).upsert_fact(ALICE, draft("m")).revision > again


@pytest.mark.parametrize("later", [0, 1, 12])
@pytest.mark.parametrize("kept", [False, True], ids=["bucket gone", "bucket kept"])
def test_a_late_writer_cannot_bring_anything_back(tmp_path: Path, later: int, kept: bool) -> None:
    store = fill(tmp_path)
    if kept:
        add_host_files(tmp_path)
    late = MemoryRepository(tmp_path)
    snapshot = late.snapshot(CODER)
    erase_user(store, "alice")
    for number in range(later):
        store.upsert_fact(CODER, draft(f"n{number}"))
    upsert, delete = Upsert(CODER.agent, draft("late")), Delete(CODER.agent, "n0", ANYTHING)
    for changes in (ChangeSet(upserts=(upsert,)), ChangeSet(deletes=(delete,))):
        based = replace(changes, expected_manifest_revision=snapshot.revision, may_rebase=True)
        with pytest.raises(ManifestConflict):
            late.apply_changes("alice", based)
    assert late.cleared_at(CODER) > snapshot.revision
    assert store.snapshot(CODER).by_id.keys() == {f"n{number}" for number in range(later)}


@pytest.mark.parametrize("name", ["memory.json", "agents/coder/memory.json"])
def test_a_file_of_version_1_that_is_put_back_begins_above_what_was_erased(tmp_path: Path, name: str) -> None:
    store = fill(tmp_path)
    seen = store.snapshot(CODER).revision
    erase_user(store, "alice")
    put(bucket_path(tmp_path) / name, LEGACY)
    other = MemoryRepository(tmp_path)
    assert {fact.id for fact in other.snapshot(ALICE if name == "memory.json" else CODER).facts} == {"old"}
    assert other.get_manifest("alice").revision > seen
    upsert = ChangeSet(upserts=(Upsert(CODER.agent, draft("late")),), expected_manifest_revision=seen)
    with pytest.raises(ManifestConflict):
        other.apply_changes("alice", replace(upsert, may_rebase=True))


def test_a_fresh_intent_is_no_late_write(tmp_path: Path) -> None:
    store = fill(tmp_path)
    erase_user(store, "alice")
    seen = store.snapshot(ALICE).revision
    changes = ChangeSet(upserts=(Upsert(ALICE.agent, draft("n")),), expected_manifest_revision=seen)
    store.apply_changes("alice", changes)
    assert store.snapshot(ALICE).by_id.keys() == {"n"}


def test_deleting_what_an_erased_user_does_not_have_makes_no_memory(tmp_path: Path) -> None:
    store = fill(tmp_path)
    erase_user(store, "alice")
    store.delete_fact(ALICE, "x")
    assert not (bucket_path(tmp_path) / "memory.json").exists()


def test_a_memory_manager_of_another_process_has_nothing_left_to_say(tmp_path: Path) -> None:
    store = fill(tmp_path)
    with DeerMem(DeerMemConfig(storage_path=str(tmp_path))) as manager:
        assert "text of x" in manager.get_context("alice")
        erase_user(store, "alice")
        assert manager.get_context("alice") == ""
        assert manager.get_memory(user_id="alice")["revision"] == 0


@pytest.mark.parametrize("kind", ["rename", "create"])
def test_an_interrupted_transaction_goes_too(tmp_path: Path, kind: str) -> None:
    fill(tmp_path)
    ending = "late.md" if kind == "rename" else ".0"
    interrupt(tmp_path, lambda store: store.upsert_fact(ALICE, draft("late")), call_of(kind, ending))
    erase_user(MemoryRepository(tmp_path), "alice")
    assert not bucket_path(tmp_path).exists()


def test_the_index_forgets_every_agent_of_the_user_and_of_no_other(tmp_path: Path) -> None:
    fill(tmp_path)
    adapter = DictAdapter()
    store = MemoryRepository(tmp_path, retrieval_adapter=adapter)
    store.rebuild_index([ALICE, CODER, BOB])
    assert {scope.user.bucket for scope, _ in adapter.facts} == {"alice", "bob"}
    erase_user(store, "alice")
    assert {scope.user.bucket for scope, _ in adapter.facts} == {"bob"}
    assert store.search_facts("text", [ALICE, CODER]) == []


class Forgetful(DictAdapter):
    """Fails to clear."""

    def clear(self, *, scopes: Sequence[Scope]) -> None:
        raise RuntimeError(f"{len(scopes)} scopes are too many")


def test_an_index_that_does_not_forget_stops_the_erasure_while_the_agents_are_known(tmp_path: Path) -> None:
    fill(tmp_path)
    store = MemoryRepository(tmp_path, retrieval_adapter=Forgetful())
    with pytest.raises(SearchIndexError, match="Forgetful"):
        erase_user(store, "alice")
    assert MemoryRepository(tmp_path).snapshot(CODER).facts == ()
    assert plan_erasure(store, "alice").agents == ("__default__", "coder", "idle", "writer")
    erase_user(MemoryRepository(tmp_path), "alice")
    assert not bucket_path(tmp_path).exists()


def test_no_safety_copy_is_made_of_what_is_erased(tmp_path: Path) -> None:
    fill(tmp_path)
    disk = WatchedFileSystem(tmp_path)
    erase_user(MemoryRepository(disk), "alice")
    made = [call.path for call in disk.calls if call.kind in ("rename", "create", "make_child")]
    assert made
    assert not [path for path in made if ".safety" in path]


def test_a_strict_store_refuses_to_erase_without_a_user(tmp_path: Path) -> None:
    MemoryRepository(tmp_path).upsert_fact(Scope.of(None), draft("r"))
    strict = MemoryRepository(tmp_path, strict_user_scope=True)
    for refused in (plan_erasure, erase_user):
        with pytest.raises(InvalidInputError):
            refused(strict, None)
    assert (tmp_path / "memory.json").exists()


DAMAGE = {
    "a manifest that is no JSON": ("memory.json", b"{"),
    "a manifest of a later version": ("memory.json", b'{"version": "9.0", "revision": 40}'),
    "a journal that is no JSON": (JOURNAL, b'{"format": 2, "revision": 77'),
    "fences that are no JSON": (".memory.fences.json", b"["),
    "an unread file of a later version": ("agents/writer/memory.json", b'{"version": "9.0"}'),
    "another backup of version 1": ("agents/writer/memory.json.v1.bak", b"another"),
}


@pytest.mark.parametrize(("name", "data"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_memory_goes_as_well(tmp_path: Path, name: str, data: bytes) -> None:
    store = fill(tmp_path)
    seen = store.snapshot(ALICE).revision
    put(bucket_path(tmp_path) / name, data)
    report = erase_user(MemoryRepository(tmp_path), "alice")
    assert report.damage
    assert report.bucket_removed
    assert not bucket_path(tmp_path).exists()
    assert store.upsert_fact(ALICE, draft("n")).revision > max(seen, 77 if name == JOURNAL else 0)


@pytest.mark.parametrize(
    "name",
    [
        "memory.json",
        JOURNAL,
        ".memory.fences.json",
        ".recovery",
        ".quarantine",
        ".safety",
        "memory.json.v1.bak",
        "agents",
        "agents/coder/facts",
        "agents/coder/.metadata",
        "agents/__default__/facts/2d",
        "agents/__default__/facts/2d/x.md",
        ".recovery/link",
    ],
)
@pytest.mark.parametrize("kind", ["directory", "file", "nothing"])
def test_links_in_place_of_ours_are_removed_and_never_followed(tmp_path: Path, name: str, kind: str) -> None:
    store = tmp_path / "store"
    fill(store)
    target = tmp_path / "target"
    if kind == "directory":
        put(target / "facts" / "2d" / "x.md", b"---\nid: x\n---\n")
        put(target / "memory.json", b"{}")
    elif kind == "file":
        target.write_bytes(b"{}")
    outside = tree(target) if target.is_dir() else {}
    path = bucket_path(store) / name
    if path.exists() or path.is_symlink():
        os.rename(path, tmp_path / "moved")
    path.symlink_to(target)
    report = erase_user(MemoryRepository(store), "alice")
    assert not bucket_path(store).exists()
    assert f"users/alice/{name}" in report.links
    if kind == "directory":
        assert tree(target) == outside
    elif kind == "file":
        assert target.read_bytes() == b"{}"


@pytest.mark.parametrize("name", ["users", "users/alice"])
def test_a_link_in_place_of_the_bucket_or_above_it_stops_the_erasure(tmp_path: Path, name: str) -> None:
    store = tmp_path / "store"
    fill(store)
    os.rename(store / name, tmp_path / "moved")
    (store / name).symlink_to(tmp_path / "moved")
    before = tree(tmp_path)
    with pytest.raises(Corruption):
        erase_user(MemoryRepository(store), "alice")
    assert tree(tmp_path) == before


def test_a_link_among_the_hosts_files_stays(tmp_path: Path) -> None:
    store = fill(tmp_path)
    put(tmp_path / "shared.md", b"shared")
    (bucket_path(tmp_path) / "linked.md").symlink_to(tmp_path / "shared.md")
    (bucket_path(tmp_path) / "agents" / "coder" / "SOUL.md").symlink_to(tmp_path / "shared.md")
    report = erase_user(store, "alice")
    assert report.kept == ("users/alice/agents/coder/SOUL.md", "users/alice/linked.md")
    assert entries(tmp_path) == {"linked.md", "agents/", "agents/coder/", "agents/coder/SOUL.md"}
