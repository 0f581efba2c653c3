"""The rules of a storage for reading: lists, searches, isolation, damage, and memories of version 1."""

# ruff: noqa: D102 - the name of a test is its claim

from __future__ import annotations

from pathlib import Path

from deermem.errors import Corruption, FactConflict, InvalidInputError
from deermem.model.identity import Scope
from deermem.testing.claims import refused, require
from deermem.testing.places import write_file
from deermem.testing.storage_samples import (
    HERE,
    LOOKALIKES,
    OTHER_AGENT,
    OTHER_USER,
    RememberingIndex,
    StorageRules,
    bucket_of,
    contents,
    fact_at,
    fact_file,
    make_draft,
    write_manifest,
)

BAD_IDS = ("", "../x", "a/b", "a b", "x\n", "readme", "x" * 129)
VERSION_1 = {
    "version": "1.0",
    "lastUpdated": "2026-01-01T00:00:00Z",
    "user": {"topOfMind": {"summary": "tea", "updatedAt": ""}},
    "history": {},
    "facts": [{"id": "fact_old", "content": "Drinks tea.", "confidence": 0.9, "source": "thread-1"}],
}


class ReadRules(StorageRules):
    """Says what reads, lists and searches show."""

    def test_a_user_about_whom_nothing_is_known_reads_as_empty(self) -> None:
        with self._root() as opened:
            storage = opened()
            found = storage.snapshot(HERE)
            require((found.revision, found.facts) == (0, ()), f"there is {found}")
            require(storage.get_fact(HERE, "x") is None, "there is a fact")
            require(storage.list_facts(HERE).facts == (), "there is a list of facts")
            require(storage.list_users() == (), "there is a user")

    def test_reading_writes_nothing(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(OTHER_USER, make_draft("x"))
            before = sorted(Path(storage.storage_root).rglob("*"))
            for scope in (HERE, OTHER_USER):
                storage.snapshot(scope)
                storage.get_fact(scope, "x")
                storage.search_facts("text", [scope])
                storage.get_summaries(scope.user.raw)
            new = sorted({*Path(storage.storage_root).rglob("*")} - {*before})
            require(not new, f"reading makes {[path.name for path in new]}")

    def test_several_agents_are_read_at_one_revision(self) -> None:
        with self._root() as opened:
            storage = opened()
            for n, scope in enumerate((HERE, OTHER_AGENT)):
                storage.upsert_fact(scope, make_draft("x", f"fact {n}"))
            found = storage.snapshots([HERE, OTHER_AGENT])
            with refused(InvalidInputError, "snapshots of two users at once"):
                storage.snapshots([HERE, OTHER_USER])
        told = [(contents(snapshot), snapshot.revision) for snapshot in found]
        require(told == [(["fact 0"], 2), (["fact 1"], 2)], f"two agents read as {told}")

    def test_pages_follow_one_another_in_the_order_of_ids(self) -> None:
        with self._root() as opened:
            storage = opened()
            for n in (3, 0, 4, 1, 2):
                storage.upsert_fact(HERE, make_draft(f"f{n}"))
            cursor, pages = None, []
            for _ in range(4):
                page = storage.list_facts(HERE, limit=2, cursor=cursor)
                pages.append([fact.id for fact in page.facts])
                cursor = page.next_cursor
                if cursor is None:
                    break
        require(pages == [["f0", "f1"], ["f2", "f3"], ["f4"]], f"the pages are {pages}")

    def test_a_list_is_filtered_before_it_is_cut(self) -> None:
        with self._root() as opened:
            storage = opened()
            for n in range(5):
                category = "goal" if n % 2 else "context"
                storage.upsert_fact(HERE, make_draft(f"f{n}", category=category, topics=(f"t{n}",)))
            for filters, wanted in (({"category": "goal"}, ["f1", "f3"]), ({"topics": "t4"}, ["f4"])):
                page = storage.list_facts(HERE, filters=filters, limit=2)
                found = [fact.id for fact in page.facts]
                require(found == wanted, f"{filters} finds {found}, not {wanted}")

    def test_a_limit_out_of_range_is_refused(self) -> None:
        with self._root() as opened:
            storage = opened()
            for limit in (0, -1, 1_001):
                with refused(InvalidInputError, f"the limit {limit}"):
                    storage.list_facts(HERE, limit=limit)

    def test_a_filter_that_is_unknown_is_refused(self) -> None:
        with self._root() as opened, refused(InvalidInputError, "the filter 'colour'"):
            opened().list_facts(HERE, filters={"colour": "red"})

    def test_an_id_that_names_no_fact_is_refused(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id in BAD_IDS:
                with refused(InvalidInputError, f"the id {fact_id[:20]!r}"):
                    storage.get_fact(HERE, fact_id)

    def test_a_search_finds_parts_of_texts_in_any_case(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x", "Drinks GREEN tea", confidence=0.2))
            storage.upsert_fact(HERE, make_draft("y", "a green car", confidence=0.9))
            storage.upsert_fact(HERE, make_draft("z", "takes the bus"))
            found = [hit.fact.id for hit in storage.search_facts("gReEn", [HERE])]
            best = [hit.fact.id for hit in storage.search_facts("green", [HERE], top_k=1)]
        require(found == ["y", "x"], f"it finds {found}, not y and x, the surest first")
        require(best == ["y"], f"with top_k=1 it finds {best}")

    def test_a_search_looks_only_where_it_is_told(self) -> None:
        with self._root() as opened:
            storage = opened()
            for scope in (HERE, OTHER_AGENT, OTHER_USER):
                storage.upsert_fact(scope, make_draft("x", "drinks tea"))
            found = {hit.fact.scope for hit in storage.search_facts("tea", [HERE, OTHER_USER])}
            nowhere = storage.search_facts("tea", [])
        require(found == {HERE, OTHER_USER}, f"in two scopes of three it finds {sorted(map(str, found))}")
        require(nowhere == [], "in no scope it finds something")

    def test_a_search_filters_before_it_cuts(self) -> None:
        with self._root() as opened:
            storage = opened()
            for n in range(4):
                storage.upsert_fact(HERE, make_draft(f"f{n}", "drinks tea", confidence=0.9))
            storage.upsert_fact(HERE, make_draft("rare", "drinks tea", category="goal", confidence=0.1))
            hits = storage.search_facts("tea", [HERE], top_k=1, filters={"category": "goal"})
        require([hit.fact.id for hit in hits] == ["rare"], f"it finds {[hit.fact.id for hit in hits]}")

    def test_an_adapter_is_told_of_what_is_committed(self) -> None:
        index = RememberingIndex()
        with self._root() as opened:
            storage = opened(retrieval_adapter=index)
            for fact_id in ("x", "y"):
                storage.upsert_fact(HERE, make_draft(fact_id))
            storage.search_facts("anything", [HERE])
            storage.upsert_fact(HERE, make_draft("z"))
            storage.delete_fact(HERE, "x")
            known = sorted(fact_id for _, fact_id in index.known)
        require(known == ["y", "z"], f"after x, y, z were written and x deleted, the adapter knows {known}")

    def test_an_index_that_is_built_anew_holds_what_is_stored(self) -> None:
        index = RememberingIndex()
        with self._root() as opened:
            storage = opened(retrieval_adapter=index)
            for fact_id in ("x", "y"):
                storage.upsert_fact(HERE, make_draft(fact_id))
            storage.clear_index([HERE])
            cleared = len(index.known)
            storage.rebuild_index([HERE])
            known = sorted(fact_id for _, fact_id in index.known)
        require(cleared == 0, f"of an index that was cleared {cleared} facts are left")
        require(known == ["x", "y"], f"built anew, it knows {known}")

    def test_an_adapter_is_asked_when_somebody_searches(self) -> None:
        with self._root() as opened:
            storage = opened(retrieval_adapter=RememberingIndex())
            storage.upsert_fact(HERE, make_draft("x", "drinks tea"))
            hits = [(hit.fact.id, hit.match_type) for hit in storage.search_facts("nothing like it", [HERE])]
        require(hits == [("x", "adapter")], f"the search finds {hits}")


class PlaceRules(StorageRules):
    """Says whose memories are whose, and what becomes of files that others wrote."""

    def test_users_whose_names_look_alike_are_apart(self) -> None:
        self._are_apart(LOOKALIKES)

    def test_agents_of_one_user_are_apart(self) -> None:
        self._are_apart((HERE, OTHER_AGENT, Scope.of("alice", "default"), Scope.of("alice", "lead-agent")))

    def _are_apart(self, scopes: tuple[Scope, ...]) -> None:
        with self._root() as opened:
            storage = opened()
            for n, scope in enumerate(scopes):
                storage.upsert_fact(scope, make_draft("same", f"fact {n}"))
            storage.delete_fact(scopes[0], "same")
            found = [contents(storage.snapshot(scope)) for scope in scopes]
        wanted: list[list[str]] = [[], *([f"fact {n}"] for n in range(1, len(scopes)))]
        require(found == wanted, f"after a deletion in the first scope there is {found}")

    def test_summaries_belong_to_the_user_and_not_to_an_agent(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.update_summaries(HERE.user.raw, {"user": {"topOfMind": "tea"}})
            shown = [storage.snapshot(s).summaries["user", "topOfMind"].summary for s in (HERE, OTHER_AGENT)]
            strange = storage.get_summaries(OTHER_USER.user.raw)["user", "topOfMind"].summary
        require(shown == ["tea", "tea"], f"two agents see {shown}")
        require(strange == "", "another user sees it")

    def test_agents_and_users_are_listed(self) -> None:
        with self._root() as opened:
            storage = opened()
            for scope in (HERE, OTHER_AGENT, OTHER_USER):
                storage.upsert_fact(scope, make_draft("x"))
            agents, users = storage.list_agents(HERE.user.raw), storage.list_users()
        require(agents == (HERE.agent, OTHER_AGENT.agent), f"the agents are {agents}")
        require(users == ("alice", "bob"), f"the users are {users}")

    def test_a_file_that_cannot_be_read_is_an_error_and_stays(self) -> None:
        with self._root() as opened:
            storage = opened()
            for fact_id in ("bad", "good"):
                storage.upsert_fact(HERE, make_draft(fact_id))
            path = fact_file(storage, "bad")
            write_file(path, b"no fact at all \xff")
            reader = opened()
            for what, read in (
                ("get_fact", lambda: reader.get_fact(HERE, "bad")),
                ("snapshot", lambda: reader.snapshot(HERE)),
            ):
                with refused(Corruption, f"{what} of a damaged file"):
                    read()
            page = reader.list_facts(HERE, skip_corrupt=True)
            require(path.read_bytes() == b"no fact at all \xff", "the damaged file was changed")
        told = ([fact.id for fact in page.facts], len(page.problems))
        require(told == (["good"], 1), f"with skip_corrupt it lists (facts, problems) = {told}")

    def test_an_edit_by_hand_is_seen_after_a_reload(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x", "drinks tea"))
            storage.snapshot(HERE)
            path = fact_file(storage, "x")
            write_file(path, path.read_bytes().replace(b"drinks tea", b"drinks mate"))
            found = contents(storage.reload(HERE))
        require(found == ["drinks mate"], f"after a reload there is {found}")

    def test_an_edit_by_hand_is_not_overwritten(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x", "drinks tea"))
            read = fact_at(storage, "x")
            path = fact_file(storage, "x")
            write_file(path, path.read_bytes().replace(b"drinks tea", b"drinks mate"))
            with refused(FactConflict, "an update of a file that was edited since"):
                storage.upsert_fact(HERE, read.draft(content="drinks cocoa"), expected=read)
            require(b"drinks mate" in path.read_bytes(), "the edit is gone")

    def test_an_edit_by_hand_can_be_made_a_commit(self) -> None:
        with self._root() as opened:
            storage = opened()
            storage.upsert_fact(HERE, make_draft("x", "drinks tea"))
            path = fact_file(storage, "x")
            write_file(path, path.read_bytes().replace(b"drinks tea", b"drinks mate"))
            storage.adopt_fact(HERE, "x")
            found = fact_at(opened(), "x")
        told = (found.content, found.revision)
        require(told == ("drinks mate", 2), f"the adopted fact is {told[0]!r} at revision {told[1]}")

    def test_a_migration_can_be_asked_for(self) -> None:
        with self._root() as opened:
            storage = opened()
            write_manifest(storage, VERSION_1)
            planned, report = storage.plan_migration(HERE.user.raw), storage.migrate(HERE.user.raw)
            again = storage.migrate(HERE.user.raw)
        told = (planned.needed, planned.migrated, report.migrated, again.migrated)
        require(told == (True, False, True, False), f"planned, migrated and again: it tells {told}")

    def test_a_memory_of_version_1_is_read_and_its_file_kept(self) -> None:
        with self._root() as opened:
            storage = opened()
            write_manifest(storage, VERSION_1)
            original = (bucket_of(storage) / "memory.json").read_bytes()
            found = storage.snapshot(HERE)
            backup = bucket_of(storage) / "memory.json.v1.bak"
            require(backup.is_file() and backup.read_bytes() == original, "there is no backup of the file")
        told = (contents(found), found.summaries["user", "topOfMind"].summary)
        require(told == (["Drinks tea."], "tea"), f"of a memory of version 1 it reads {told}")
