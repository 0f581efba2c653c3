"""Storages that each break one rule of the contract: sharing, settings and the end."""

# ruff: noqa: ARG002 - what a broken storage is told, it may ignore

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from deermem import (
    ChangeSet,
    Corruption,
    Delta,
    FactConflict,
    FactDraft,
    MemoryRepository,
    Scope,
    Snapshot,
    UserId,
    View,
)
from deermem.testing.storage_samples import HERE, OTHER_AGENT, bucket_of, fact_file
from tests.testing.planted import Planted

BROKEN: Planted[type[MemoryRepository]] = Planted()
breaks = BROKEN.breaks


@breaks("test_a_storage_that_is_opened_later_sees_everything")
class ForgetsAtTheEnd(MemoryRepository):
    def close(self) -> None:
        super().close()
        if fact_file(self, "full").exists():
            shutil.rmtree(bucket_of(self))


@breaks("test_another_storage_on_the_root_sees_every_commit_at_once")
class ShowsWhatItSawFirst(MemoryRepository):
    seen: Snapshot | None = None

    def snapshot(self, scope: Scope) -> Snapshot:
        fresh = super().snapshot(scope)
        if scope == HERE and len(fresh.facts) == 3 and fresh.revision == 4:
            return self.seen or fresh
        self.seen = fresh
        return fresh


@breaks("test_the_files_are_those_of_a_plain_storage")
class ShoutsWhatItReads(MemoryRepository):
    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        if found.revision != 2:
            return found
        louder = [replace(fact, source_error="read") if fact.id == "full" else fact for fact in found.facts]
        return Snapshot.of(scope, found.manifest, louder)


@breaks("test_what_a_plain_storage_wrote_is_read")
class ReadsOnlyItsOwn(MemoryRepository):
    wrote = False

    def before_commit(self, user: UserId, changes: ChangeSet, view: View) -> ChangeSet:
        self.wrote = True
        return changes

    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        only = found.revision == 1 and not self.wrote and found.facts and found.facts[0].id == "full"
        return Snapshot.of(scope, found.manifest, ()) if only else found


@breaks(
    "test_what_another_program_commits_is_seen_at_once", also=["test_a_read_that_is_refused_shows_nothing"]
)
class KnowsOnlyItsOwnCommits(MemoryRepository):
    latest: ClassVar[dict[tuple[str, str], Snapshot]] = {}

    def snapshot(self, scope: Scope) -> Snapshot:
        key = (self.storage_root, str(scope))
        if key not in self.latest:
            found = super().snapshot(scope)
            if not found.revision:
                return found
            self.latest[key] = found
        return self.latest[key]

    def reload(self, scope: Scope, *, accept_root: bool = True) -> Snapshot:
        self.latest.pop((self.storage_root, str(scope)), None)
        return super().reload(scope, accept_root=accept_root)

    def after_commit(self, user: UserId, delta: Delta) -> None:
        for key in [key for key in self.latest if key[0] == self.storage_root]:
            self.latest.pop(key, None)


@breaks("test_a_check_of_the_files_finds_nothing")
class CopiesFactFiles(MemoryRepository):
    def clear(self, scope: Scope) -> Delta:
        if scope == OTHER_AGENT:
            shutil.copy(fact_file(self, "x"), fact_file(self, "x").with_name("copy.md"))
        return super().clear(scope)


@breaks("test_several_threads_and_storages_lose_no_fact")
class WritesOverOthers(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        delta = super().upsert_fact(scope, draft, **expected)
        if str(draft.id) == "w0-7":
            delta = self.delete_fact(scope, "w0-6")
        return delta


@breaks("test_of_several_writers_at_one_revision_one_wins")
class LooksBeforeItWrites(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        try:
            return super().upsert_fact(scope, draft, **expected)
        except FactConflict:
            if not draft.content.startswith("of "):
                raise
            return Delta(0, "")


@breaks("test_a_reader_beside_a_writer_sees_whole_commits")
class ReadsFactByFact(MemoryRepository):
    def snapshot(self, scope: Scope) -> Snapshot:
        found = super().snapshot(scope)
        if [fact.id for fact in found.facts] != ["a", "b"] or not found.facts[0].content.startswith("state"):
            return found
        for _ in range(1_000):  # reads, until the writer goes on or has ended
            if super().snapshot(scope).revision != found.revision:
                break
        second = super().get_fact(scope, "b")
        assert second
        return Snapshot.of(scope, found.manifest, (found.facts[0], second))


@breaks("test_a_lock_that_is_held_too_long_is_a_time_out_that_writes_nothing")
class GivesUpSilently(MemoryRepository):
    def upsert_fact(self, scope: Scope, draft: FactDraft, **expected: Any) -> Delta:
        try:
            return super().upsert_fact(scope, draft, **expected)
        except TimeoutError:
            return Delta(0, "")


@breaks("test_files_of_the_host_are_left_alone")
class ClearsTheWholeDirectory(MemoryRepository):
    def clear_all(self, user_id: str | None) -> Delta:
        shutil.rmtree(bucket_of(self, user_id) / "threads", ignore_errors=True)
        return super().clear_all(user_id)


@breaks("test_the_settings_can_name_it")
class NeedsAnArgumentOfItsOwn(MemoryRepository):
    def __init__(self, root: Path, *, key: str = "", **settings: Any) -> None:
        if settings.keys() == {
            "lock_timeout",
            "manifest_filename",
            "retrieval_adapter",
            "strict_user_scope",
            "undo_days",
        }:
            raise TypeError("missing 1 required keyword-only argument: 'key'")
        super().__init__(root, **settings)


@breaks("test_the_root_is_the_one_that_it_was_given")
class MakesItselfARoot(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        (Path(root) / "store").mkdir(exist_ok=True)
        super().__init__(Path(root) / "store", **settings)


@breaks("test_a_user_is_required_where_the_settings_say_so")
class TakesAnybody(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        settings.pop("strict_user_scope", None)
        super().__init__(root, **settings)


@breaks("test_the_summary_file_has_the_name_that_the_settings_say")
class NamesItsFilesItself(MemoryRepository):
    def __init__(self, root: Path, **settings: Any) -> None:
        settings.pop("manifest_filename", None)
        super().__init__(root, **settings)


@breaks("test_a_manager_works_on_it")
class KnowsNoManager(MemoryRepository):
    def snapshot_since(self, scope: Scope, revision: int) -> Snapshot:
        raise NotImplementedError("snapshot_since")


@breaks("test_a_manager_tells_what_goes_wrong_in_its_own_words")
class HasWordsOfItsOwn(MemoryRepository):
    def reload(self, scope: Scope, *, accept_root: bool = True) -> Snapshot:
        try:
            return super().reload(scope, accept_root=accept_root)
        except Corruption as error:
            raise RuntimeError("the store is broken") from error


@breaks("test_closing_closes_the_adapter", also=["test_it_closes_itself_at_the_end_of_a_with_block"])
class LeavesTheAdapterOpen(MemoryRepository):
    def close(self) -> None:
        self.engine.cache.clear()


@breaks(  # whatever closes it closes it once more at the end
    "test_closing_twice_is_no_error",
    also=[
        "test_a_commit_that_is_refused_writes_nothing",
        "test_a_manager_tells_what_goes_wrong_in_its_own_words",
        "test_a_manager_works_on_it",
        "test_a_storage_that_is_opened_later_sees_everything",
        "test_closing_closes_the_adapter",
        "test_it_closes_itself_at_the_end_of_a_with_block",
    ],
)
class ClosesOnce(MemoryRepository):
    closings = 0

    def close(self) -> None:
        self.closings += 1
        if self.closings == 2:
            raise RuntimeError("closed already")
        super().close()


@breaks("test_it_closes_itself_at_the_end_of_a_with_block")
class StaysOpen(MemoryRepository):
    def __exit__(self, *exception: object) -> None:
        pass
