"""How growth is computed, and what the operations do at each size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scaling
from benchmarks.bench import Bench
from benchmarks.results import MISSED, OK
from benchmarks.samples import build_scope
from benchmarks.scale import Scale
from benchmarks.scaling import OPERATIONS, Measured, growth, matrix, run_operation
from deermem import MemoryRepository, Scope
from tests.support.stores import ALICE

TINY = Scale(rounds=1, samples=1, seconds=0.05, limit=4, settles=False)


def measured(**seconds: float) -> dict[str, Measured]:
    names = {"search": "search", "update": "update a fact", "check": "check the store"}
    return {names[name]: Measured(value, 1_000_000) for name, value in seconds.items()}


@pytest.mark.parametrize(
    ("seconds", "exponent", "verdict"), [(1.0, 0.0, OK), (10.0, 1.0, OK), (100.0, 2.0, MISSED)]
)
def test_the_exponent_tells_how_a_cost_grows(seconds: float, exponent: float, verdict: str) -> None:
    (found,) = growth("facts", [10, 100], [measured(search=1.0), measured(search=seconds)], of_user=None)
    assert found.ratio.middle == pytest.approx(exponent)
    assert found.verdict == verdict


def test_a_point_operation_must_not_grow() -> None:
    (found,) = growth("facts", [10, 100], [measured(update=1.0), measured(update=2.0)], of_user=None)
    assert found.verdict == MISSED


def test_what_works_on_one_user_must_not_grow_with_the_users_and_what_works_on_all_may() -> None:
    steps = [measured(search=1.0, check=1.0), measured(search=2.0, check=10.0)]
    verdicts = {each.operation: each.verdict for each in growth("users", [1, 10], steps, of_user=0.1)}
    assert verdicts == {"search": MISSED, "check the store": OK}


def test_the_table_of_growth_has_every_size_and_every_exponent() -> None:
    steps = [measured(search=1.0), measured(search=10.0), measured(search=50.0)]
    assert matrix(list(growth("facts", [10, 100, 1_000], steps, of_user=None))) == [
        ["operation", "10 facts", "100 facts", "1,000 facts", "exponents", "bar"],
        ["search", "1 s, 1 MB", "10 s, 1 MB", "50 s, 1 MB", "1.00, 0.70", "≤ 1.1"],
    ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_runs_on_a_store_and_leaves_it_readable(name: str, tmp_path: Path) -> None:
    build_scope(tmp_path, ALICE, 12)
    found = run_operation(name, tmp_path, ALICE, 12)
    assert found.seconds > 0
    assert found.peak > 1_000_000
    with MemoryRepository(tmp_path) as repository:
        grown = len(repository.snapshot(ALICE).facts)
    # A first call is not timed; the others are.
    assert grown == {"create a fact": 12 + 1 + OPERATIONS["create a fact"].calls, "clear the user": 0}.get(
        name, 12
    )


def test_a_check_that_finds_something_is_no_figure(tmp_path: Path) -> None:
    build_scope(tmp_path, ALICE, 3)
    next(tmp_path.rglob("*.md")).write_text("no fact")
    with pytest.raises(AssertionError, match="has findings"):
        run_operation("check the store", tmp_path, ALICE, 3)


def test_every_operation_is_measured_at_each_size(tmp_path: Path) -> None:
    found = list(scaling._one_scope(Bench(tmp_path, TINY), [4]))
    assert [each.keys() for each in found] == [OPERATIONS.keys()]
    assert list(tmp_path.iterdir()) == []


def test_a_store_with_more_users_has_the_facts_of_all_of_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = {name: OPERATIONS[name] for name in ("check the store", "clear the user")}
    monkeypatch.setattr(scaling, "OPERATIONS", some)
    users = scaling._many_users(Bench(tmp_path, TINY), [1, 2], 3)
    for number in (1, 2):
        next(users)
        (folder,) = tmp_path.iterdir()
        with MemoryRepository(folder) as repository:
            sizes = [
                len(repository.snapshot(Scope.of(f"user{user:06}", "assistant")).facts)
                for user in range(number)
            ]
        assert sizes == [3] * (number - 1) + [0]
