"""The repository tells an adapter of its commits, and searches with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deermem.errors import FactConflict, InvalidInputError
from deermem.model.changes import ChangeSet, Upsert
from deermem.model.fact import FactDraft
from deermem.model.identity import FactId
from deermem.repository import MemoryRepository
from deermem.testing.retrieval_samples import HERE, OTHER_AGENT, OTHER_USER
from tests.search.watched import WatchedAdapter


@pytest.fixture
def repository(tmp_path: Path, adapter: WatchedAdapter) -> MemoryRepository:
    return MemoryRepository(tmp_path / "root", retrieval_adapter=adapter, lock_timeout=2)


def draft(content: str, fact_id: str | None = None) -> FactDraft:
    return FactDraft(content, id=None if fact_id is None else FactId(fact_id))


def test_a_path_that_an_adapter_is_told_is_the_file_of_the_fact(
    tmp_path: Path, repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    repository.upsert_fact(OTHER_AGENT, draft("drinks tea", "x"))
    ((_, _, path),) = adapter.told("upsert")
    assert "drinks tea" in (tmp_path / "root" / path).read_text("utf-8")


def test_an_adapter_may_write_to_the_user_it_is_told_of_from_another_thread(
    repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    def write() -> None:
        adapter.before.clear()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(repository.upsert_fact, HERE, draft("rows", "b")).result(30)

    adapter.before["upsert"] = write
    repository.upsert_fact(HERE, draft("drinks tea", "a"))
    assert sorted(fact_id for _, fact_id in adapter.facts) == ["a", "b"]


def test_a_commit_stands_although_the_adapter_fails(
    repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    def fail() -> None:
        raise ConnectionError

    adapter.before["upsert"] = fail
    repository.upsert_fact(HERE, draft("drinks tea", "x"))
    fact = repository.get_fact(HERE, "x")
    assert fact is not None
    assert [hit.fact for hit in repository.search_facts("tea", [HERE])] == [fact]


def test_a_change_that_is_refused_or_comes_to_nothing_is_not_told(
    repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    repository.upsert_fact(HERE, draft("drinks tea", "x"))
    adapter.calls.clear()
    with pytest.raises(FactConflict):
        repository.upsert_fact(HERE, draft("rows", "x"))
    repository.upsert_fact(HERE, draft("drinks tea", "x"), expected=1)
    repository.delete_fact(HERE, "absent")
    assert adapter.calls == []


def test_commits_of_another_process_are_found(
    tmp_path: Path, repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    repository.upsert_fact(HERE, draft("drinks tea", "a"))
    repository.search_facts("tea", [HERE])
    with MemoryRepository(tmp_path / "root") as other:
        other.upsert_fact(HERE, draft("sells tea", "b"))
        other.delete_fact(HERE, "a")
    (hit,) = repository.search_facts("tea", [HERE])
    assert (hit.fact.id, hit.match_type) == ("b", "adapter")
    assert len(adapter.told("rebuild")) == 2


def test_a_fact_edited_by_hand_is_found_by_its_new_text_after_a_reload(
    tmp_path: Path, repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    repository.upsert_fact(HERE, draft("drinks tea", "x"))
    repository.search_facts("tea", [HERE])
    file = tmp_path / "root" / adapter.told("upsert")[0][2]
    file.write_text(file.read_text("utf-8").replace("tea", "coffee"), "utf-8")
    repository.reload(HERE)
    (hit,) = repository.search_facts("coffee", [HERE])
    assert (hit.fact.content, hit.match_type) == ("drinks coffee", "adapter")


def test_clear_all_empties_the_index_of_the_user_only(
    repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    for scope in (HERE, OTHER_AGENT, OTHER_USER):
        repository.upsert_fact(scope, draft("drinks tea", "x"))
    repository.clear_all("alice")
    assert [scope for scope, _ in adapter.facts] == [OTHER_USER]
    assert adapter.told("remove") == []


def test_search_sees_more_than_a_page_of_facts(repository: MemoryRepository, adapter: WatchedAdapter) -> None:
    drafts = [draft(f"drinks tea {n}", f"x{n}") for n in range(120)]
    repository.apply_changes("alice", ChangeSet(tuple(Upsert(HERE.agent, each) for each in drafts)))
    adapter.facts.clear()
    repository.rebuild_index([HERE])
    assert len(adapter.facts) == 120
    assert len(repository.search_facts("tea", [HERE], top_k=1_000)) == 120


def test_closing_the_repository_closes_the_adapter(
    repository: MemoryRepository, adapter: WatchedAdapter
) -> None:
    repository.close()
    repository.close()
    assert adapter.closed == 1


def test_an_adapter_that_cannot_be_loaded_is_refused_when_the_repository_is_built(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        MemoryRepository(tmp_path, retrieval_adapter="no.such:Adapter")
    assert caught.value.field == "retrieval_adapter"
