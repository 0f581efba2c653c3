"""Storages that each break one rule of the contract, under the name of the test that must find it out."""

from __future__ import annotations

from deermem import MemoryRepository
from tests.testing import broken_facts, broken_places, broken_reads, broken_seams, broken_sets, broken_sharing
from tests.testing.planted import Planted

PARTS = (broken_facts, broken_sets, broken_reads, broken_places, broken_seams, broken_sharing)
BROKEN: Planted[type[MemoryRepository]] = Planted()
for part in PARTS:
    assert BROKEN.keys().isdisjoint(part.BROKEN)
    BROKEN.update(part.BROKEN)
