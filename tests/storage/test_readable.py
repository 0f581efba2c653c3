"""Nothing is stored that would read back as something else, and the refusal says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem import FactDraft, InvalidInputError, MemoryRepository
from deermem.model.fact import ExtraField
from tests.support.stores import ALICE

LARGE = (ExtraField("mine", f'"{"🦌" * 255_000}"'),)


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ((ExtraField("mine", '{"a": 1}'),), "cannot be stored: it would read back as something else"),
        (LARGE, "is larger than 2,000,000 bytes"),
    ],
    ids=["JSON with blanks", "two megabytes in all"],
)
def test_a_fact_that_could_not_be_read_again_is_refused_with_its_reason(
    tmp_path: Path, extra: tuple[ExtraField, ...], reason: str
) -> None:
    with MemoryRepository(tmp_path) as store:
        with pytest.raises(InvalidInputError, match=reason):
            store.upsert_fact(ALICE, FactDraft("x" * 1_000_000, id="tea", extra=extra))
        assert store.get_fact(ALICE, "tea") is None
        assert store.get_manifest(ALICE.user.raw).revision == 0
