"""The rules of a storage for single facts, change sets and summaries."""

# ruff: noqa: D102 - the name of a test is its claim

from __future__ import annotations

import json
from dataclasses import fields

from deermem.errors import FactConflict, FactNotFoundError, ManifestConflict
from deermem.format.layout import DEFAULT_MANIFEST
from deermem.model.changes import ABSENT, ANYTHING, AtRevision, ChangeSet, Delete, Upsert
from deermem.model.fact import FactDraft
from deermem.model.summaries import SummaryPatch
from deermem.testing.claims import refused, require
from deermem.testing.storage_samples import (
    EXACT_TEXTS,
    FULL,
    HERE,
    StorageRules,
    bucket_of,
    contents,
    fact_at,
    make_draft,
    write_manifest,
)

WORK = ("user", "workContext")
FOCUS = ("user", "topOfMind")


class FactRules(StorageRules):
    """Says what happens to a fact that is written, changed and deleted, and when it is a conflict."""

    def test_a_fact_is_read_back_as_it_was_written(self) -> None:
        with self._root() as opened:
            opened().upsert_fact(HERE, FULL)
            found = fact_at(opened(), "full").draft()
        for each in fields(FactDraft):
            was, is_now = getattr(FULL, each.name), getattr(found, each.name)
            require(was == is_now, f"{each.name} was {was!r} and is {is_now!r}")

    def test_a_text_is_kept_to_the_character(self) -> None:
        drafts = [make_draft(f"f{n}", text) for n, text in enumerate(EXACT_TEXTS)]
        with self._root() as opened:
            changes = ChangeSet(upserts=tuple(Upsert(HERE.agent, draft) for draft in drafts))
            opened().apply_changes(HERE.user.raw, changes)
            found = contents(opened().snapshot(HERE))
        for was, is_now in zip(EXACT_TEXTS, found, strict=True):
            require(was == is_now, f"{was!r} comes back as {is_now!r}")

    def test_a_new_fact_gets_an_id_and_revision_1(self) -> None:
        with self._root() as opened:
            storage = opened()
            written = [storage.upsert_fact(HERE, FactDraft(text)).written[0] for text in ("tea", "bus")]
        require(written[0].id != written[1].id, "two facts get the same id")
        require([fact.revision for fact in written] == [1, 1], "a new fact does not begin at revision 1")

    def test_a_fact_that_exists_is_not_overwritten_by_accident(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x", "first"))
            with refused(FactConflict, "an upsert without an expectation of a fact that exists"):
                storage.upsert_fact(HERE, make_draft("x", "second"))
            require(fact_at(storage, "x").content == "first", "the fact was overwritten")

    def test_an_update_at_the_revision_that_was_read_counts_up(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x", created_at="2026-01-01T00:00:00Z"))
            before = fact_at(storage, "x")
            storage.upsert_fact(HERE, before.draft(content="changed"), expected=before.revision)
            after = fact_at(storage, "x")
        require(
            (after.content, after.revision) == ("changed", 2), f"it is {after.content!r} at {after.revision}"
        )
        require(after.created_at == before.created_at, "the time of its creation changed")

    def test_an_update_at_a_stale_revision_is_a_conflict_that_says_which(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            storage.upsert_fact(HERE, make_draft("x", "winner"), expected=1)
            with refused(FactConflict, "an update at a stale revision") as caught:
                storage.upsert_fact(HERE, make_draft("x", "loser"), expected=1)
            require(fact_at(storage, "x").content == "winner", "the later writer won")
        told = (caught[0].fact_id, caught[0].expected, caught[0].actual)
        require(told == ("x", 1, 2), f"the conflict tells (fact, expected, actual) = {told}")

    def test_an_update_does_not_bring_a_deleted_fact_back(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            storage.delete_fact(HERE, "x")
            with refused(FactConflict, "an update of a fact that was deleted"):
                storage.upsert_fact(HERE, make_draft("x", "back"), expected=1)
            require(storage.get_fact(HERE, "x") is None, "the fact is back")

    def test_a_fact_that_was_deleted_and_made_again_is_not_the_one_that_was_read(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x", "old", created_at="2026-01-01T00:00:00Z"))
            read = fact_at(storage, "x")
            storage.delete_fact(HERE, "x")
            storage.upsert_fact(HERE, make_draft("x", "new", created_at="2026-01-02T00:00:00Z"))
            with refused(FactConflict, "an update of the old fact"):
                storage.upsert_fact(HERE, read.draft(content="changed"), expected=read)

    def test_an_upsert_that_changes_nothing_commits_nothing(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            before = storage.snapshot(HERE)
            delta = storage.upsert_fact(HERE, before.facts[0].draft(), expected=1)
            after = storage.snapshot(HERE)
        require(after.revision == before.revision == delta.revision, "memory.json went on")
        require(after.facts == before.facts, "the fact was written again")

    def test_an_edit_keeps_what_it_does_not_name(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, FULL)
            storage.edit_fact(HERE, "full", {"confidence": 0.75})
            found = fact_at(storage, "full")
        require(found.confidence == 0.75, "the edit did nothing")
        require(found.draft(confidence=FULL.confidence) == FULL, "the edit changed what it does not name")

    def test_an_edit_of_an_absent_fact_says_so(self) -> None:
        with self._root() as opened:
            storage = opened()
            with refused(FactNotFoundError, "an edit of an absent fact"):
                storage.edit_fact(HERE, "x", {"content": "new"})

    def test_a_deleted_fact_is_gone(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id in ("x", "y"):
                storage.upsert_fact(HERE, make_draft(fact_id))
            storage.delete_fact(HERE, "x")
            found = contents(opened().snapshot(HERE))
        require(found == ["text of y"], f"after the deletion of x there is {found}")

    def test_deleting_an_absent_fact_is_no_error_and_no_commit(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            delta = storage.delete_fact(HERE, "y")
        require(
            (delta.revision, delta.deleted) == (1, ()), f"it is told as {delta.deleted} at {delta.revision}"
        )

    def test_a_delete_at_a_stale_revision_is_a_conflict(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            storage.upsert_fact(HERE, make_draft("x", "changed"), expected=1)
            with refused(FactConflict, "a delete at a stale revision"):
                storage.delete_fact(HERE, "x", expected=1)
            require(fact_at(storage, "x").content == "changed", "the fact was deleted all the same")


class ChangeRules(StorageRules):
    """Says what a change set is, what summaries do, and when either is a conflict."""

    def test_a_change_set_is_one_commit_and_tells_what_it_changed(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("gone"))
            delta = storage.apply_changes(
                HERE.user.raw,
                ChangeSet(
                    upserts=(Upsert(HERE.agent, make_draft("x")), Upsert(HERE.agent, make_draft("y"))),
                    deletes=(Delete(HERE.agent, "gone", AtRevision(1)),),
                    summaries=SummaryPatch.parse({"user": {"topOfMind": "tea"}}),
                ),
            )
            found = storage.snapshot(HERE)
        require((delta.revision, found.revision) == (2, 2), f"it took {found.revision - 1} commits")
        require(contents(found) == ["text of x", "text of y"], f"afterwards there is {contents(found)}")
        told = ([fact.id for fact in delta.upserted], [key[1] for key in delta.deleted], delta.complete)
        require(told == (["x", "y"], ["gone"], False), f"it tells {told}")

    def test_a_conflict_in_a_change_set_undoes_all_of_it(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            upserts = (Upsert(HERE.agent, make_draft("y")), Upsert(HERE.agent, make_draft("x"), ABSENT))
            with refused(FactConflict, "a change set with a fact that exists"):
                storage.apply_changes(HERE.user.raw, ChangeSet(upserts=upserts))
            found = storage.snapshot(HERE)
        require((contents(found), found.revision) == (["text of x"], 1), f"there is {contents(found)}")

    def test_a_stale_manifest_revision_is_a_conflict_that_says_which(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id in ("x", "y"):
                storage.upsert_fact(HERE, make_draft(fact_id))
            upsert = Upsert(HERE.agent, make_draft("z"))
            with refused(ManifestConflict, "a change set on a stale revision") as caught:
                storage.apply_changes(
                    HERE.user.raw, ChangeSet(upserts=(upsert,), expected_manifest_revision=1)
                )
        told = (caught[0].expected, caught[0].actual)
        require(told == (1, 2), f"the conflict tells (expected, actual) = {told}")

    def test_a_point_operation_goes_through_on_a_newer_manifest(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id in ("x", "y"):
                storage.upsert_fact(HERE, make_draft(fact_id))
            changed = make_draft("x", "changed")
            storage.upsert_fact(HERE, changed, expected=1, expected_manifest_revision=1)
            require(fact_at(storage, "x").content == "changed", "the change is lost")

    def test_what_was_read_before_a_clear_is_not_written_after_it(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            base = storage.get_manifest(HERE.user.raw).revision
            storage.clear(HERE)
            with refused(ManifestConflict, "a write that is based on what was cleared"):
                storage.upsert_fact(HERE, make_draft("y"), expected_manifest_revision=base)
            require(not storage.snapshot(HERE).facts, "the fact is there")

    def test_a_new_intent_after_a_clear_is_written(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            storage.clear(HERE)
            storage.upsert_fact(HERE, make_draft("y"))
            require(contents(storage.snapshot(HERE)) == ["text of y"], "the fact is not there")

    def test_an_upsert_that_expects_nothing_writes_whatever_is_there(self) -> None:
        with self._root() as opened:
            storage = opened()
            for n in range(2):
                upsert = Upsert(HERE.agent, make_draft("x", f"state {n}"), ANYTHING)
                storage.apply_changes(HERE.user.raw, ChangeSet(upserts=(upsert,)))
            require(fact_at(storage, "x").content == "state 1", "the second write is lost")

    def test_a_summary_that_is_patched_leaves_the_others(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.update_summaries(HERE.user.raw, {"user": {"workContext": "rows", "topOfMind": "tea"}})
            storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": "bus"}})
            found = opened().get_summaries(HERE.user.raw)
        told = (found[WORK].summary, found[FOCUS].summary)
        require(told == ("rows", "bus"), f"the summaries are {told}")

    def test_a_summary_that_is_written_says_when(self) -> None:
        with self._root() as opened:
            storage = opened()
            delta = storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": "tea"}})
            found = storage.get_summaries(HERE.user.raw)[FOCUS]
        require(found.updated_at == delta.last_updated, f"it is of {found.updated_at!r}")

    def test_summaries_on_a_stale_revision_are_a_conflict(self) -> None:
        with self._root() as opened:
            storage = opened()
            for text in ("tea", "bus"):
                storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": text}})
            with refused(ManifestConflict, "a summary on a stale revision"):
                storage.update_summaries(
                    HERE.user.raw, {"user": {"topOfMind": "late"}}, expected_manifest_revision=1
                )
            require(storage.get_summaries(HERE.user.raw)[FOCUS].summary == "bus", "the late one won")

    def test_unknown_keys_of_the_summary_file_are_kept(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x"))
            path = bucket_of(storage) / DEFAULT_MANIFEST
            document = {**json.loads(path.read_bytes()), "theirs": {"kept": [1, 2]}}
            write_manifest(storage, document)
            opened().upsert_fact(HERE, make_draft("y"))
            found = json.loads(path.read_bytes())
        require(found["revision"] == 2, "nothing was committed")
        require(found.get("theirs") == {"kept": [1, 2]}, f"the unknown key is {found.get('theirs')!r}")
