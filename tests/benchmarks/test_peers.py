"""Each store that is compared does on the same facts what DeerMem does, and keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from select import select
from typing import Any

import pytest

from benchmarks.bench import Bench
from benchmarks.measuring import Side
from benchmarks.peers import costs, table
from benchmarks.peers.costs import CLOCKS, Cost, Operations, Repeated, installed
from benchmarks.peers.disk_cache import DiskCache, LaxDiskCache
from benchmarks.peers.one_file import OneFile
from benchmarks.peers.own import Own
from benchmarks.peers.port import Peer, document_of, sample_fact, sample_facts
from benchmarks.peers.sqlite import Sqlite
from benchmarks.scale import Scale
from benchmarks.sections import markdown

FACTS = sample_facts(30)
TINY = Scale(rounds=1, samples=1, seconds=0.05, limit=20, settles=False)


@pytest.fixture(params=installed(), ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> type[Peer]:
    found: type[Peer] = request.param
    return found


def contents(peer: Peer) -> dict[str, str]:
    return {document["id"]: document["content"] for document in peer.documents()}


def test_what_was_written_is_read_by_a_store_that_is_opened_later(kind: type[Peer], tmp_path: Path) -> None:
    new = sample_fact(1_000)
    with closing(kind(tmp_path / "store")) as peer:
        peer.fill(FACTS)
        peer.create(new)
        peer.update(FACTS[3].id, "Tea.")
        peer.delete(FACTS[4].id)
    with closing(kind(tmp_path / "store")) as later:
        wanted = {fact.id: fact.content for fact in (*FACTS, new)}
        del wanted[FACTS[4].id]
        assert contents(later) == {**wanted, FACTS[3].id: "Tea."}
        assert len(later.read_all()) == len(FACTS)
        assert later.get(FACTS[4].id) is None


def test_documents_have_every_field_of_the_facts(kind: type[Peer], tmp_path: Path) -> None:
    with closing(kind(tmp_path / "store")) as peer:
        peer.fill(FACTS)
        found = sorted(peer.documents(), key=lambda document: document["id"])
        assert found == sorted(map(document_of, FACTS), key=lambda document: document["id"])


def test_a_caller_may_change_the_documents(kind: type[Peer], tmp_path: Path) -> None:
    with closing(kind(tmp_path / "store")) as peer:
        peer.fill(FACTS)
        for document in peer.documents():
            document["topics"].append("changed")
        assert not any("changed" in document["topics"] for document in peer.documents())


def ids(found: Any) -> list[str]:
    return [each["id"] if isinstance(each, dict) else each.fact.id for each in found]


@pytest.mark.parametrize("text", ["Note 7.", "NOTE 7.", "the ", "no such words"])
def test_every_store_finds_the_same_facts_in_the_same_order(
    kind: type[Peer], tmp_path: Path, text: str
) -> None:
    with closing(kind(tmp_path / "store")) as peer, closing(Own(tmp_path / "own")) as own:
        peer.fill(FACTS)
        own.fill(FACTS)
        assert ids(peer.search(text)) == ids(own.search(text))


def test_operations_leave_a_store_as_large_as_it_was(kind: type[Peer], tmp_path: Path) -> None:
    work = Operations(kind, tmp_path / "store", 20)
    for operation in CLOCKS:
        for _ in range(3):
            side = work.side(operation)
            side.prepare()
            side.run()
    work.make_absent()
    assert len(work.peer.documents()) == 20
    work.peer.close()


def test_each_operation_does_what_its_name_says(kind: type[Peer], tmp_path: Path) -> None:
    work = Operations(kind, tmp_path / "store", 20)
    before = contents(work.peer)
    assert len(work.search()) == 1  # type: ignore[arg-type]
    assert work.get() is not None
    for operation, added in (("create", 1), ("delete", 0)):
        side = work.side(operation)
        side.prepare()
        side.run()
        assert len(contents(work.peer)) == 20 + added
    work.side("update").run()
    after = contents(work.peer)
    assert sum(after[key] != before[key] for key in before) == 1
    work.peer.close()


@pytest.mark.parametrize(("kind", "level"), [(DiskCache, 2), (LaxDiskCache, 1)])
def test_diskcache_is_as_durable_as_it_is_said_to_be(
    kind: type[DiskCache], level: int, tmp_path: Path
) -> None:
    pytest.importorskip("diskcache")
    with closing(kind(tmp_path)) as peer:
        assert peer._cache._sql("PRAGMA synchronous").fetchone() == (level,)


def test_sqlite_is_as_durable_as_it_is_said_to_be(tmp_path: Path) -> None:
    with closing(Sqlite(tmp_path)) as peer:
        assert peer._connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert peer._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_one_file_is_read_again_after_another_process_replaced_it(tmp_path: Path) -> None:
    with closing(OneFile(tmp_path)) as peer, closing(OneFile(tmp_path)) as other:
        peer.fill(FACTS)
        other.update(FACTS[0].id, "Coffee.")
        assert contents(peer)[FACTS[0].id] == "Coffee."


def cost(peer: str, seconds: float, operation: str = "create", facts: int = 100) -> Cost:
    return Cost(peer, operation, facts, [seconds])


def test_each_peer_is_compared_with_the_own_figure_of_the_same_operation() -> None:
    found = list(
        table.compared(
            [
                cost(Own.name, 2.0),
                cost("other", 1.0),
                cost(Own.name, 3.0, "update"),
                cost("other", 6.0, "update"),
            ]
        )
    )
    assert [(each.operation, each.ratio.middle) for each in found] == [("create", 2.0), ("update", 0.5)]


def test_the_table_of_peers_has_a_line_for_each_operation_and_size_and_marks_the_quickest() -> None:
    found = list(
        table.compared(
            [
                cost(Own.name, 2.0),
                cost("other", 1.0),
                cost(Own.name, 2.0, facts=10),
                cost("other", 2_469.0, facts=10),
            ]
        )
    )
    assert table.matrix(found) == [
        ["operation", "facts", Own.name, "other"],
        ["create", "10", "**2 s**", "2,470 s (1,234)"],
        ["create", "100", "2 s", "**1 s** (0.5)"],
    ]


def test_the_documents_tell_what_each_store_keeps() -> None:
    found = list(table.compared([cost(Own.name, 2.0), cost("other", 1.0)]))
    text = markdown(found)
    assert text.startswith("| operation | facts | DeerMem | other |\n| --- |")
    assert all(f"- {peer.name}: {peer.keeps}." in text for peer in installed())


def test_every_peer_that_is_installed_is_measured_in_every_operation(tmp_path: Path) -> None:
    found: Iterator[Cost] = costs.costs(Bench(tmp_path, TINY), 10)
    measured = {(each.operation, each.peer) for each in found}
    assert measured == {(operation, peer.name) for operation in CLOCKS for peer in installed()}
    assert list(tmp_path.iterdir()) == []


def test_a_peer_whose_package_is_not_there_is_left_out() -> None:
    assert not costs._is_installed("no_such_package")
    assert not costs._is_installed("no_such_package.inside")
    assert costs._is_installed("json")


def test_quick_reads_are_repeated_within_a_sample_and_writes_are_not() -> None:
    calls: list[str] = []
    reads = Repeated(Side("a", lambda: calls.append("read")), "read all")
    assert 1 < reads.calls <= 100
    calls.clear()
    reads.run()
    assert len(calls) == reads.calls
    slow = Repeated(Side("a", partial(select, [], [], [], 0.02)), "read all")
    assert slow.calls == 1
    for operation in ("create", "open and read all"):
        assert Repeated(Side("a", lambda: calls.append("write")), operation).calls == 1
    assert "write" not in calls
