"""Plan section 7: facts, summaries and searches as they are read."""

from __future__ import annotations

from pathlib import Path

from deermem import ChangeSet, MemoryRepository, Upsert
from tests.support.stores import ALICE, BOB, CODER, draft, fact_path, store_with


def test_get_fact_returns_the_fact_or_none(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    fact = store.get_fact(ALICE, "x")
    assert fact is not None
    assert (fact.id, fact.content, fact.revision) == ("x", "text of x", 1)
    assert store.get_fact(ALICE, "y") is None
    assert store.get_fact(BOB, "x") is None


def test_list_facts_returns_all_facts_of_the_scope_sorted_by_id(tmp_path: Path) -> None:
    store = store_with(tmp_path, "b", "a-2", "Z", "a_1")
    store.upsert_fact(CODER, draft("other"))
    assert [fact.id for fact in store.list_facts(ALICE).facts] == ["Z", "a-2", "a_1", "b"]


def test_list_facts_filters_by_exact_values(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("a", category="goal", topics=("x", "y"), confidence=0.9))
    store.upsert_fact(ALICE, draft("b", category="goal", topics=("x",)))
    store.upsert_fact(ALICE, draft("c", category="my own"))
    found = {
        "goal": store.list_facts(ALICE, filters={"category": "goal"}),
        "both": store.list_facts(ALICE, filters={"topics": ["x", "y"]}),
        "two values": store.list_facts(ALICE, filters={"category": "goal", "confidence": 0.9}),
        "own": store.list_facts(ALICE, filters={"category": "my own"}),
        "none": store.list_facts(ALICE, filters={"category": "goa"}),
    }
    assert {name: [fact.id for fact in page.facts] for name, page in found.items()} == {
        "goal": ["a", "b"],
        "both": ["a"],
        "two values": ["a"],
        "own": ["c"],
        "none": [],
    }


def test_list_facts_pages_with_a_cursor_and_a_limit(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    upserts = tuple(Upsert(ALICE.agent, draft(f"f{number:02}")) for number in range(7))
    store.apply_changes("alice", ChangeSet(upserts=upserts))
    pages: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = store.list_facts(ALICE, limit=3, cursor=cursor)
        pages.append([fact.id for fact in page.facts])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == [["f00", "f01", "f02"], ["f03", "f04", "f05"], ["f06"]]


def test_a_cursor_need_not_be_a_fact_any_more_and_filters_count_after_it(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    for name, category in (("a", "goal"), ("c", "goal"), ("d", "context"), ("e", "goal"), ("f", "goal")):
        store.upsert_fact(ALICE, draft(name, category=category))
    page = store.list_facts(ALICE, filters={"category": "goal"}, limit=2, cursor="b")
    assert ([fact.id for fact in page.facts], page.next_cursor) == (["c", "e"], "e")
    page = store.list_facts(ALICE, filters={"category": "goal"}, limit=2, cursor=page.next_cursor)
    assert ([fact.id for fact in page.facts], page.next_cursor) == (["f"], None)


def test_a_full_last_page_has_no_next_cursor(tmp_path: Path) -> None:
    store = store_with(tmp_path, "a", "b")
    assert store.list_facts(ALICE, limit=2).next_cursor is None


def test_list_facts_can_leave_corrupt_facts_out_and_say_which(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x", "y")
    fact_path(tmp_path, ALICE, "x").write_text("no fact")
    page = store.list_facts(ALICE, skip_corrupt=True)
    assert [fact.id for fact in page.facts] == ["y"]
    assert [problem.path for problem in page.problems] == [
        fact_path(tmp_path, ALICE, "x").relative_to(tmp_path).as_posix()
    ]


def test_reading_an_unknown_user_shows_revision_zero_and_writes_nothing(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path / "new")
    snapshot = store.snapshot(ALICE)
    assert (snapshot.revision, snapshot.facts) == (0, ())
    assert store.get_fact(ALICE, "x") is None
    assert store.list_facts(ALICE).facts == ()
    assert store.get_summaries("alice")["user", "workContext"].summary == ""
    assert store.list_agents("alice") == ()
    assert store.list_users() == ()
    assert store.search_facts("x", [ALICE]) == []
    assert not (tmp_path / "new").exists()


def test_summaries_are_read_and_updated(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.update_summaries(
        "alice", {"user": {"workContext": {"summary": "Python", "updatedAt": "2026-07-19T02:00:00+02:00"}}}
    )
    section = store.get_summaries("alice")["user", "workContext"]
    assert (section.summary, section.updated_at) == ("Python", "2026-07-19T00:00:00Z")
    assert MemoryRepository(tmp_path).get_summaries("alice")["user", "workContext"] == section


def test_a_summary_without_a_time_gets_that_of_its_commit(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    delta = store.update_summaries("alice", {"history": {"recentMonths": "much"}})
    assert store.get_summaries("alice")["history", "recentMonths"].updated_at == delta.last_updated


def test_search_is_scoped_and_orders_by_confidence(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("a", "Likes tea", confidence=0.2))
    store.upsert_fact(ALICE, draft("b", "TEA at noon", confidence=0.8))
    store.upsert_fact(CODER, draft("c", "tea again"))
    store.upsert_fact(BOB, draft("d", "bob's tea"))
    assert [hit.fact.id for hit in store.search_facts("tea", [ALICE])] == ["b", "a"]
    assert {hit.fact.id for hit in store.search_facts("tea", [ALICE, CODER])} == {"a", "b", "c"}
    assert store.search_facts("tea", []) == []


def test_a_search_sees_all_facts_and_not_only_those_of_one_page(tmp_path: Path) -> None:
    store = MemoryRepository(tmp_path)
    store.upsert_fact(ALICE, draft("first"))
    first = fact_path(tmp_path, ALICE, "first")
    for number in range(130):
        # Laid down by hand: 130 durable writes take seconds.
        path = fact_path(tmp_path, ALICE, f"f{number}")
        path.parent.mkdir(exist_ok=True)
        path.write_text(first.read_text().replace("id: first", f"id: f{number}"))
    assert len(store.search_facts("text", [ALICE], top_k=1_000)) == 131
    assert len(store.list_facts(ALICE, limit=1_000).facts) == 131


def test_without_an_adapter_rebuilding_the_index_says_that_there_is_none(tmp_path: Path) -> None:
    assert store_with(tmp_path, "x").rebuild_index([ALICE]).supported is False
