"""The rules of a storage for operations on all facts of an agent or a user."""

# ruff: noqa: D102 - the name of a test is its claim

from __future__ import annotations

from deermem.compat import read_document, snapshot_document
from deermem.errors import AgentNotFoundError, DuplicateFact, ManifestConflict, NotACustomAgent
from deermem.maintenance.taking_back import undo
from deermem.model.changes import ChangeSet, Upsert
from deermem.model.fact import FactDraft
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import EMPTY_SUMMARIES, Summaries, SummaryPatch
from deermem.testing.claims import refused, require
from deermem.testing.places import write_file
from deermem.testing.storage_samples import (
    EXACT_TEXTS,
    FULL,
    HERE,
    OTHER_AGENT,
    OTHER_USER,
    StorageRules,
    bucket_of,
    contents,
    fact_at,
    make_draft,
)

FOCUS = ("user", "topOfMind")


class SetRules(StorageRules):
    """Says what creating below a cap, clearing, trimming, consolidating and importing do."""

    def test_the_same_text_is_not_created_twice(self) -> None:
        with self._root() as opened:
            storage = opened()
            _, first = storage.create_fact(HERE, FactDraft("Drinks tea."))
            with refused(DuplicateFact, "the same text in another case") as caught:
                storage.create_fact(HERE, FactDraft("  drinks TEA. "))
        require(caught[0].fact_id == first, f"it is told to be the text of {caught[0].fact_id!r}")

    def test_a_cap_evicts_the_fact_that_is_least_sure(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id, confidence in (("a", 0.9), ("b", 0.1), ("c", 0.5)):
                storage.upsert_fact(HERE, make_draft(fact_id, confidence=confidence))
            delta, new = storage.create_fact(HERE, make_draft("d", confidence=0.8), max_facts=3)
            found = contents(storage.snapshot(HERE))
        require(new == "d", f"the new id is {new!r}")
        require(found == ["text of a", "text of c", "text of d"], f"there is {found}")
        require([key[1] for key in delta.deleted] == ["b"], f"it tells that {delta.deleted} went")

    def test_a_new_fact_that_the_cap_evicts_has_no_id(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("a", confidence=0.9))
            _, new = storage.create_fact(HERE, make_draft("b", confidence=0.1), max_facts=1)
            found = contents(storage.snapshot(HERE))
        require((new, found) == (None, ["text of a"]), f"the id is {new!r}, and there is {found}")

    def test_a_clear_empties_one_agent_and_no_other(self) -> None:
        with self._root() as opened:
            storage = opened()
            for scope in (HERE, OTHER_AGENT, OTHER_USER):
                storage.upsert_fact(scope, make_draft("x"))
            storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": "tea"}})
            storage.clear(HERE)
            left = [len(storage.snapshot(scope).facts) for scope in (HERE, OTHER_AGENT, OTHER_USER)]
            summary = storage.get_summaries(HERE.user.raw)[FOCUS].summary
        require(left == [0, 1, 1], f"of one fact in three scopes each there are {left}")
        require(summary == "tea", "a summary went with the facts")

    def test_clear_all_empties_one_user_and_no_other(self) -> None:
        with self._root() as opened:
            storage = opened()
            for scope in (HERE, OTHER_AGENT, OTHER_USER):
                storage.upsert_fact(scope, make_draft("x"))
                storage.update_summaries(scope.user.raw, {"user": {"topOfMind": "tea"}})
            storage.clear_all(HERE.user.raw)
            left = [len(storage.snapshot(scope).facts) for scope in (HERE, OTHER_AGENT, OTHER_USER)]
            texts = [storage.get_summaries(user)[FOCUS].summary for user in ("alice", "bob")]
        require(left == [0, 0, 1], f"of one fact in three scopes each there are {left}")
        require(texts == ["", "tea"], f"the summaries of both users are {texts}")

    def test_the_revision_of_the_last_clear_is_told(self) -> None:
        with self._root() as opened:
            storage = opened()
            for scope in (HERE, OTHER_AGENT):
                storage.upsert_fact(scope, make_draft("x"))
            never = storage.cleared_at(HERE)
            storage.clear(HERE)
            agents = (storage.cleared_at(HERE), storage.cleared_at(OTHER_AGENT))
            storage.clear_all(HERE.user.raw)
            both = (opened().cleared_at(HERE), opened().cleared_at(OTHER_AGENT))
        told = (never, *agents, *both)
        require(told == (0, 3, 0, 4, 4), f"before, after a clear, after a clear of all it tells {told}")

    def test_what_a_clear_deleted_can_be_taken_back(self) -> None:
        with self._root() as opened:
            storage = opened(undo_days=7)
            storage.upsert_fact(HERE, make_draft("x"))
            storage.clear_all(HERE.user.raw)
            done = undo(storage, HERE.user)
            found = contents(storage.snapshot(HERE))
        require(done is not None, "there is nothing to take back")
        require(found == ["text of x"], f"there is {found}")

    def test_a_trim_keeps_the_facts_that_are_surest(self) -> None:
        with self._root() as opened:
            storage = opened()
            for n in range(5):
                storage.upsert_fact(HERE, make_draft(f"f{n}", confidence=n / 5))
            storage.trim(HERE, 2)
            found = contents(storage.snapshot(HERE))
        require(found == ["text of f3", "text of f4"], f"there is {found}")

    def test_a_consolidation_replaces_facts_by_one_that_names_them(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id in ("a", "b", "c"):
                storage.upsert_fact(HERE, make_draft(fact_id))
            storage.consolidate(HERE, ["a", "b"], make_draft("ab"))
            found = storage.snapshot(HERE)
        require([fact.id for fact in found.facts] == ["ab", "c"], f"there is {contents(found)}")
        merged = found.facts[0]
        told = (merged.consolidated_from, merged.source.type)
        require(told == (("a", "b"), "consolidation"), f"it says of itself {told}")

    def test_an_import_replaces_facts_and_summaries(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id in ("gone", "known"):
                storage.upsert_fact(HERE, make_draft(fact_id, created_at="2026-01-01T00:00:00Z"))
            storage.upsert_fact(OTHER_AGENT, make_draft("x"))
            storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": "tea"}})
            storage.replace_all(HERE, [make_draft("known", "changed"), make_draft("new")], EMPTY_SUMMARIES)
            found, elsewhere = storage.snapshot(HERE), storage.snapshot(OTHER_AGENT)
        require(contents(found) == ["changed", "text of new"], f"there is {contents(found)}")
        require(found.summaries[FOCUS].summary == "", "a summary outlives the import")
        known = found.facts[0]
        require((known.revision, known.created_at) == (2, "2026-01-01T00:00:00Z"), f"it is {known}")
        require(contents(elsewhere) == ["text of x"], "the import changed another agent")

    def test_an_export_that_is_imported_elsewhere_says_the_same(self) -> None:
        with self._root() as opened:
            storage = opened()
            for n, text in enumerate(EXACT_TEXTS):
                storage.upsert_fact(HERE, make_draft(f"f{n}", text))
            storage.upsert_fact(HERE, FULL)
            storage.update_summaries(HERE.user.raw, {"history": {"recentMonths": "moved to Oslo"}})
            exported = snapshot_document(storage.snapshot(HERE))
            storage.replace_all(OTHER_USER, *read_document(exported))
            again = snapshot_document(opened().snapshot(OTHER_USER))
        for key in ("user", "history"):
            require(exported[key] == again[key], f"{key} was {exported[key]} and is {again[key]}")
        for was, is_now in zip(exported["facts"], again["facts"], strict=True):
            changed = {key for key in was if was[key] != is_now.get(key)} - {"scope", "updatedAt"}
            require(not changed, f"of the fact {was['id']!r} these keys changed: {sorted(changed)}")


class PlanRules(StorageRules):
    """Says what becomes of plans that others overtake, and of agents."""

    def test_a_plan_is_made_anew_after_a_conflict(self) -> None:
        with self._root() as opened:
            storage, other = opened(), opened()
            seen: list[int] = []

            def plan(snapshot: Snapshot) -> ChangeSet:
                if not seen:
                    other.upsert_fact(HERE, make_draft("meanwhile"))
                seen.append(len(snapshot.facts))
                return ChangeSet(upserts=(Upsert(HERE.agent, make_draft("x", f"made of {seen[-1]}")),))

            storage.run(HERE, plan)
            require(fact_at(storage, "x").content == "made of 1", f"it was made of {seen} facts")

    def test_a_plan_that_is_always_overtaken_is_given_up(self) -> None:
        with self._root() as opened:
            storage, other = opened(), opened()
            tries: list[int] = []

            def plan(snapshot: Snapshot) -> ChangeSet:
                tries.append(snapshot.revision)
                other.upsert_fact(HERE, make_draft(f"meanwhile{len(tries)}"))
                return ChangeSet(upserts=(Upsert(HERE.agent, make_draft("late")),))

            with refused(ManifestConflict, "a plan that is always overtaken"):
                storage.run(HERE, plan)
            require(len(tries) == 3, f"it was tried {len(tries)} times, not 3")
            require(storage.get_fact(HERE, "late") is None, "its fact was written all the same")

    def test_a_custom_agent_is_deleted_with_what_it_owns(self) -> None:
        with self._root() as opened:
            storage = opened()
            for scope in (HERE, OTHER_AGENT):
                storage.upsert_fact(scope, make_draft("x"))
            directory = bucket_of(storage) / "agents" / OTHER_AGENT.agent
            write_file(directory / "config.yaml", "model: none\n")
            storage.delete_agent(OTHER_AGENT)
            require(not (directory / "config.yaml").exists(), "its config.yaml is there")
            left = [contents(storage.snapshot(scope)) for scope in (OTHER_AGENT, HERE)]
            require(left == [[], ["text of x"]], f"of it and the default agent there is {left}")

    def test_an_agent_with_memories_alone_is_preserved(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(OTHER_AGENT, make_draft("x"))
            with refused(NotACustomAgent, "the deletion of an agent without config.yaml"):
                storage.delete_agent(OTHER_AGENT)
            require(contents(storage.snapshot(OTHER_AGENT)) == ["text of x"], "its fact is gone")

    def test_an_agent_that_is_not_there_cannot_be_deleted(self) -> None:
        with self._root() as opened, refused(AgentNotFoundError, "the deletion of an unknown agent"):
            opened().delete_agent(OTHER_AGENT)

    def test_maintenance_commits_through_the_storage(self) -> None:
        patch = SummaryPatch.replace_all(Summaries.of({}))
        with self._root() as opened:
            storage = opened()
            upserts = (Upsert(HERE.agent, make_draft("x")),)
            delta = storage.commit(HERE.user, lambda _: ChangeSet(upserts=upserts, summaries=patch))
            found = contents(storage.snapshot(HERE))
        require((delta.revision, found) == (1, ["text of x"]), f"there is {found} at {delta.revision}")
