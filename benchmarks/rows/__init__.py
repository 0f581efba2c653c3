"""The rows: one function each, which yields its results as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.bench import Bench
from benchmarks.results import Result
from benchmarks.rows import (
    at_the_cap,
    cached_read,
    changed_read,
    clear_all,
    cold_read,
    documents,
    gateway,
    memory,
    migrating,
    other_users,
    point_writes,
    same_user,
    start_up,
)

Row = Callable[[Bench], Iterator[Result]]

ROWS: Final[dict[str, Row]] = {
    "P1": point_writes.few_facts,
    "P2": point_writes.many_facts,
    "P3": at_the_cap.measure,
    "P4": cached_read.measure,
    "P5": documents.measure,
    "P6": cold_read.measure,
    "P7": changed_read.measure,
    "P8": same_user.measure,
    "P9": other_users.measure,
    "P10": migrating.measure,
    "P11": gateway.measure,
    "P12": start_up.measure,
    "P13": memory.measure,
    "P14": clear_all.measure,
}
