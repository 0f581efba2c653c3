"""An undo takes back the last clear, import, restore or trim, and leaves alone what was changed since."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from deermem import Corruption, MemoryRepository, RevisionConflict, Scope, Section, Summaries
from deermem.maintenance.restore import OnConflict
from deermem.maintenance.taking_back import Undo, plan_undo, undo
from deermem.model.identity import DEFAULT_AGENT, UserId
from deermem.model.manifest import NO_MANIFEST
from tests.maintenance.backup.archives import files_below, restored, saved
from tests.search.adapters import DictAdapter
from tests.support.stores import ALICE, CODER, Clock, bucket_path, draft, edit, fact_path, store_with

USER = UserId.parse("alice")
LATE = Scope.of("alice", "late")
IMPORTED = Summaries.of({("user", "topOfMind"): Section("Imported.", "2026-01-01T00:00:00Z")})


@pytest.fixture
def store(tmp_path: Path) -> MemoryRepository:
    store = store_with(tmp_path, "a", "b")
    store.upsert_fact(CODER, draft("c"))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Much."}}})
    store.update_summaries("alice", {"user": {"workContext": {"summary": "Work."}}})
    return store


def contents(store: MemoryRepository) -> dict[str, str]:
    found = {}
    for agent in store.list_agents("alice"):
        facts = store.snapshot(Scope(USER, agent)).facts
        found.update({f"{agent}/{fact.id}": fact.content for fact in facts})
    return found


def summaries(store: MemoryRepository) -> dict[str, str]:
    sections = store.get_summaries("alice").sections.items()
    return {key[1]: section.summary for key, section in sections if section.summary}


def undone(store: MemoryRepository) -> Undo:
    found = undo(store, USER)
    assert found is not None
    assert found[1] == store.get_manifest("alice").revision
    return found[0]


CHANGES = {
    "clear": lambda store: store.clear(ALICE),
    "clear all": lambda store: store.clear_all("alice"),
    "import": lambda store: store.replace_all(ALICE, [draft("a", "x"), draft("new")], IMPORTED),
    "import of nothing": lambda store: store.replace_all(ALICE, [], NO_MANIFEST.summaries),
}


@pytest.mark.parametrize("name", CHANGES)
def test_everything_comes_back(store: MemoryRepository, tmp_path: Path, name: str) -> None:
    before = contents(store), summaries(store), store.get_summaries("alice")
    created = {fact.id: fact.created_at for fact in store.snapshot(ALICE).facts}
    CHANGES[name](store)
    changed_at = store.get_manifest("alice").revision
    assert (contents(store), summaries(store)) != before[:2]
    report = undone(store)
    assert report.stay == []
    for reader in (store, MemoryRepository(tmp_path)):
        assert (contents(reader), summaries(reader), reader.get_summaries("alice")) == before
        assert reader.get_manifest("alice").revision == changed_at + 1
        assert {fact.id: fact.created_at for fact in reader.snapshot(ALICE).facts} == created
    assert undo(store, USER) is None


def test_a_restore_is_taken_back(store: MemoryRepository) -> None:
    archive = saved(store)
    store.delete_fact(ALICE, "a")
    store.edit_fact(ALICE, "b", {"content": "later"})
    store.upsert_fact(LATE, draft("late"))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Later."}}})
    before = contents(store), summaries(store)
    restored(store, archive, OnConflict.OVERWRITE)
    assert contents(store) != before[0]
    report = undone(store)
    assert (contents(store), summaries(store)) == before
    assert report.gone == [(DEFAULT_AGENT, "a")]


def test_facts_that_come_back_have_revisions_that_they_never_had(store: MemoryRepository) -> None:
    store.edit_fact(ALICE, "a", {"content": "second"})
    store.clear(ALICE)
    base = store.get_manifest("alice").revision
    undone(store)
    for fact in store.snapshot(ALICE).facts:
        assert fact.revision > base
        with pytest.raises(RevisionConflict):
            store.upsert_fact(ALICE, draft(fact.id, "late"), expected=1)


def test_a_writer_from_before_the_clear_is_still_refused_after_its_undo(store: MemoryRepository) -> None:
    base = store.get_manifest("alice").revision
    fact = store.get_fact(ALICE, "a")
    store.clear(ALICE)
    undone(store)
    assert fact is not None
    with pytest.raises(RevisionConflict):
        store.upsert_fact(ALICE, fact.draft(content="late"), expected=fact, expected_manifest_revision=base)


def test_what_was_written_since_a_clear_stays(store: MemoryRepository) -> None:
    store.clear_all("alice")
    store.upsert_fact(ALICE, draft("a", "written since"))
    store.upsert_fact(ALICE, draft("z", "written since"))
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Set since."}}})
    report = undone(store)
    assert contents(store) == {
        "__default__/a": "written since",
        "__default__/b": "text of b",
        "__default__/z": "written since",
        "coder/c": "text of c",
    }
    assert report.stay == [(DEFAULT_AGENT, "a")]
    assert summaries(store) == {"topOfMind": "Set since.", "workContext": "Work."}


def test_what_an_import_wrote_and_somebody_changed_stays(store: MemoryRepository) -> None:
    store.replace_all(ALICE, [draft("a", "imported"), draft("b"), draft("new"), draft("new2")], IMPORTED)
    store.edit_fact(ALICE, "a", {"content": "edited since"})
    store.edit_fact(ALICE, "new", {"content": "edited since"})
    report = undone(store)
    assert contents(store) == {
        "__default__/a": "edited since",
        "__default__/b": "text of b",
        "__default__/new": "edited since",
        "coder/c": "text of c",
    }
    assert report.stay == [(DEFAULT_AGENT, "a"), (DEFAULT_AGENT, "new")]
    assert report.gone == [(DEFAULT_AGENT, "new2")]


def test_what_an_import_wrote_and_somebody_deleted_does_not_come_back(store: MemoryRepository) -> None:
    store.replace_all(ALICE, [draft("a", "imported"), draft("b"), draft("new")], IMPORTED)
    store.delete_fact(ALICE, "a")
    store.delete_fact(ALICE, "new")
    report = undone(store)
    assert report.stay == [(DEFAULT_AGENT, "a"), (DEFAULT_AGENT, "new")]
    assert set(contents(store)) == {"__default__/b", "coder/c"}


def test_a_fact_that_was_edited_by_hand_since_stays(store: MemoryRepository, tmp_path: Path) -> None:
    store.replace_all(ALICE, [draft("a", "imported"), draft("b")], IMPORTED)
    edit(fact_path(tmp_path, ALICE, "a"), "\nimported", "\nby hand")
    report = undone(MemoryRepository(tmp_path))
    assert report.stay == [(DEFAULT_AGENT, "a")]
    assert contents(MemoryRepository(tmp_path))["__default__/a"] == "by hand"


def test_where_all_was_changed_since_the_undo_only_forgets_the_operation(store: MemoryRepository) -> None:
    store.clear(CODER)
    store.clear(ALICE)
    for name in "ab":
        store.upsert_fact(ALICE, draft(name, "since"))
    assert len(undone(store).stay) == 2
    assert len(undone(store).back) == 1
    assert set(contents(store)) == {"__default__/a", "__default__/b", "coder/c"}
    assert undo(store, USER) is None


def test_one_operation_after_the_other_is_taken_back(store: MemoryRepository) -> None:
    before = contents(store)
    store.clear(ALICE)
    store.replace_all(CODER, [draft("x")], IMPORTED)
    store.clear_all("alice")
    assert [undone(store).copy.operation for _ in range(3)] == ["clear", "import", "clear"]
    assert contents(store) == before
    assert summaries(store) == {"topOfMind": "Much.", "workContext": "Work."}


def test_another_user_name_for_the_same_bucket_finds_the_same_facts(tmp_path: Path) -> None:
    raw = Scope.of("a@b.c")
    store = store_with(tmp_path, "a", "b", scope=raw)
    store.replace_all(raw, [draft("a", "imported")], NO_MANIFEST.summaries)
    bucket = raw.user.bucket
    found = undo(MemoryRepository(tmp_path), UserId(bucket, bucket))
    assert found is not None
    assert found[0].stay == []
    assert [fact.content for fact in MemoryRepository(tmp_path).snapshot(raw).facts] == [
        "text of a",
        "text of b",
    ]


def test_planning_writes_nothing(store: MemoryRepository, tmp_path: Path) -> None:
    store.clear_all("alice")
    before = files_below(tmp_path)
    planned = plan_undo(store, USER)
    assert planned is not None
    assert (len(planned.back), len(planned.summaries)) == (3, 2)
    assert files_below(tmp_path) == before


def test_an_operation_that_is_not_the_last_any_more_is_not_taken_back(store: MemoryRepository) -> None:
    store.clear(ALICE)
    planned = plan_undo(store, USER)
    assert planned is not None
    store.clear(CODER)
    before = contents(store)
    assert undo(store, USER, planned.copy.revision) is None
    assert contents(store) == before


def test_an_expired_copy_is_not_used(tmp_path: Path) -> None:
    clock = Clock()
    store = MemoryRepository(tmp_path, clock=clock)
    store.upsert_fact(ALICE, draft("a"))
    store.clear(ALICE)
    clock.now += timedelta(days=6, hours=23)
    assert plan_undo(store, USER) is not None
    clock.now += timedelta(hours=2)
    assert plan_undo(store, USER) is None
    assert undo(store, USER) is None


@pytest.mark.parametrize("user", ["nobody", "alice"])
def test_there_may_be_nothing_to_take_back(store: MemoryRepository, user: str) -> None:
    assert plan_undo(store, UserId.parse(user)) is None
    assert undo(store, UserId.parse(user)) is None
    assert store.list_users() == ("alice",)


def test_what_is_no_fact_stays_in_the_safety_copy(store: MemoryRepository, tmp_path: Path) -> None:
    fact_path(tmp_path, ALICE, "a").write_bytes(b"no fact")
    store.clear(ALICE)
    report = undone(store)
    assert report.unreadable == [fact_path(Path(), ALICE, "a").relative_to("users/alice").as_posix()]
    assert set(contents(store)) == {"__default__/b", "coder/c"}
    (kept,) = bucket_path(tmp_path).joinpath(".safety").iterdir()
    assert kept.name.endswith("-undone.json")
    assert b"no fact" in kept.read_bytes()
    assert undo(store, USER) is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"format": 1}', b'{"format": 1, "kept": 3}'])
def test_a_damaged_copy_is_corruption_and_nothing_is_written(
    store: MemoryRepository, tmp_path: Path, data: bytes
) -> None:
    store.clear(ALICE)
    (path,) = bucket_path(tmp_path).joinpath(".safety").iterdir()
    path.write_bytes(data)
    before = files_below(tmp_path)
    with pytest.raises(Exception, match=path.name) as raised:
        undo(store, USER)
    assert isinstance(raised.value, Corruption) or "version" in str(raised.value)
    assert files_below(tmp_path) == before


def test_a_copy_in_which_another_path_stands_writes_nothing_there(
    store: MemoryRepository, tmp_path: Path
) -> None:
    store.clear(ALICE)
    (path,) = bucket_path(tmp_path).joinpath(".safety").iterdir()
    path.write_bytes(path.read_bytes().replace(b"agents/__default__/facts", b"../../../../outside/it"))
    report = undone(store)
    assert report.back == []
    assert not (tmp_path / "outside").exists()
    assert len(report.unreadable) == 2


def test_the_retrieval_adapter_is_told(tmp_path: Path) -> None:
    adapter = DictAdapter()
    store = MemoryRepository(tmp_path, retrieval_adapter=adapter)
    store.upsert_fact(ALICE, draft("a"))
    store.clear(ALICE)
    assert not adapter.facts
    undone(store)
    assert [key[1] for key in adapter.facts] == ["a"]
