"""The charts draw what was measured, and the sections show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from benchmarks import charts, curves, scaling, sections
from benchmarks.bench import Bench
from benchmarks.command import main
from benchmarks.curves import (
    FLOOR,
    ONE_USER,
    OPERATIONS,
    OWN,
    SQLITE,
    USER_EACH,
    LockedFloor,
    SqliteUpdates,
    Throughput,
)
from benchmarks.measuring import Spread
from benchmarks.peers import table as peer_table
from benchmarks.peers.costs import Cost, installed
from benchmarks.results import Result
from benchmarks.rows import ROWS
from benchmarks.scale import Scale

TINY = Scale(rounds=1, samples=1, seconds=0.05, limit=10, settles=False)
PNG = b"\x89PNG\r\n\x1a\n"
STORES = (OWN, SQLITE, "SqliteStore", "diskcache", "diskcache as it comes", "one JSON file")


def throughputs() -> list[Throughput]:
    return [
        Throughput(store, place, writers, [float(writers * factor)])
        for factor, store in enumerate((OWN, SQLITE, FLOOR), 1)
        for place in (ONE_USER, USER_EACH)
        for writers in curves.WRITERS
    ]


def test_costs_become_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    costs = [
        Cost(store, operation, facts, [facts * 1e-5])
        for store in STORES
        for operation in OPERATIONS
        for facts in (10, 100)
    ]
    charts.draw_costs(costs, tmp_path / "charts" / charts.COSTS)
    assert (tmp_path / "charts" / charts.COSTS).read_bytes().startswith(PNG)


def test_throughputs_become_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    charts.draw_throughputs(throughputs(), tmp_path / charts.THROUGHPUT)
    assert (tmp_path / charts.THROUGHPUT).read_bytes().startswith(PNG)


def test_every_store_that_is_measured_has_a_style() -> None:
    assert {peer.name for peer in installed()} <= charts._STYLES.keys()


def test_the_own_throughput_is_compared_with_both_others() -> None:
    found = list(charts.throughput_results(throughputs()))
    assert len(found) == len({each.key for each in found}) == 2 * 2 * len(curves.WRITERS)
    assert {(each.floor_work, each.ratio.middle) for each in found} == {(SQLITE, 1 / 2), (FLOOR, 1 / 3)}


def test_writers_of_one_database_write_the_same_one_and_those_of_their_own_do_not(tmp_path: Path) -> None:
    for shared, names in ((True, {"shared"}), (False, {"0", "1"})):
        root = tmp_path / str(shared)
        root.mkdir()
        for number in range(2):
            SqliteUpdates(root, shared).begin(number)()
        assert {path.name for path in root.iterdir()} == names


def test_a_locked_floor_writes_three_files_a_writer(tmp_path: Path) -> None:
    for number in range(2):
        LockedFloor(tmp_path).begin(number)()
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 1 + 2 * 3


def test_what_is_asked_for_is_measured_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def record(name: str, _: Bench) -> Iterator[Result]:
        ran.append(name)
        return iter(())

    for name in sections.ALL:
        monkeypatch.setitem(sections.ALL, name, partial(record, name))
    asked = {
        "": [*ROWS, "PEERS"],
        "--rows P4": ["P4"],
        "--peers": ["PEERS"],
        "--rows P4 --scale --load": ["P4", "SCALE", "LOAD"],
        f"--chart {tmp_path}": ["CHART"],
    }
    for line, wanted in asked.items():
        ran.clear()
        assert main(["--dir", str(tmp_path), *line.split()], TINY) == 0
        assert ran == wanted


def test_charts_are_drawn_into_the_folder_that_is_named(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder, target = tmp_path / "charts", tmp_path / "run.json"
    assert main(["--chart", str(folder), "--dir", str(tmp_path), "--json", str(target)], TINY) == 0
    assert sorted(path.name for path in folder.iterdir()) == [charts.COSTS, charts.THROUGHPUT]
    assert json.loads(target.read_text(encoding="utf-8"))["failures"] == {}


def test_every_kind_of_result_has_its_table_in_the_documents() -> None:
    plain = Result("P1", "create", "floor", 2.0, 1.0, Spread.of([2.0]), 3.0)
    peers = list(peer_table.compared([Cost(OWN, "create", 10, [1.0]), Cost("other", "create", 10, [2.0])]))
    steps = [{"search": scaling.Measured(1.0, 1)}, {"search": scaling.Measured(10.0, 1)}]
    grown = list(scaling.growth("facts", [1, 10], steps, of_user=None))
    headers = [line for line in sections.markdown([plain, *peers, *grown]).splitlines() if "---" in line]
    assert len(headers) == 3
    assert sections.markdown([plain]).count("\n") == 3


def test_compared_with_an_earlier_run_everything_is_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    peers = list(peer_table.compared([Cost(OWN, "create", 10, [1.0]), Cost("other", "create", 10, [2.0])]))
    sections.show(peers, {peers[0].key: 0.25})
    out = capsys.readouterr().out
    assert "+100%" in out
    assert "behind a peer's time" not in out
