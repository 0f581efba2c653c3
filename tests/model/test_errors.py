"""Errors take facts, write their own sentence, and survive a journey to another process."""

from __future__ import annotations

import copy
import pickle

import pytest

import deermem
from deermem import errors
from deermem.errors import DeerMemError
from deermem.storage.port import FileTooLarge, UnexpectedFileType

SAMPLES: list[Exception] = [
    deermem.InvalidInputError("confidence", "must be a number"),
    deermem.DuplicateFact(fact_id="a"),
    deermem.FactNotFoundError("a"),
    deermem.ManifestConflict(3, 5),
    deermem.ManifestConflict(3, 5, "the facts of coder were cleared since"),
    deermem.FactConflict("a", 1, 2),
    deermem.FactConflict("a", None, 2),
    deermem.FactConflict("a", 2, None),
    deermem.FactConflict("a", 2, 2, "read", "edited"),
    deermem.LockTimeout("/x/.memory.lock", 10.0, "process 7 (python)"),
    deermem.LockTimeout("/x/.memory.lock", 10.0),
    deermem.Corruption("users/a/memory.json", "is not JSON", "look"),
    deermem.UnsupportedFormat("users/a/memory.json", "3.0", "2.0"),
    deermem.MigrationError("users/a/memory.json", "differs"),
    deermem.CommitInDoubt(7, "Input/output error"),
    deermem.SearchIndexError("Index", "is down"),
    UnexpectedFileType("users/a", "is a link"),
    FileTooLarge("users/a", "is large"),
]
IDS = [f"{number}-{type(error).__name__}" for number, error in enumerate(SAMPLES)]


@pytest.mark.parametrize("error", SAMPLES, ids=IDS)
def test_an_error_survives_pickling_and_copying_with_all_it_knows(error: Exception) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - our own bytes
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


@pytest.mark.parametrize("error", SAMPLES, ids=IDS)
def test_an_error_is_one_sentence_that_names_what_it_is_about(error: Exception) -> None:
    sentence = str(error)
    assert "\n" not in sentence
    assert len(sentence) > 10
    assert "None" not in sentence


def test_every_error_of_the_package_has_one_base() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    assert all(issubclass(one, DeerMemError) for one in classes)
    assert all(isinstance(error, DeerMemError) for error in SAMPLES[:-2])


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (deermem.InvalidInputError, ValueError),
        (deermem.DuplicateFact, ValueError),
        (deermem.FactNotFoundError, KeyError),
        (deermem.LockTimeout, TimeoutError),
        (deermem.CommitInDoubt, OSError),
        (deermem.FactConflict, deermem.RevisionConflict),
        (deermem.ManifestConflict, deermem.RevisionConflict),
    ],
)
def test_an_error_is_also_what_python_callers_expect(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)


def test_an_error_that_python_counts_among_those_of_the_disk_has_no_number_of_another_error() -> None:
    doubt = deermem.CommitInDoubt(28, "Input/output error")
    timeout = deermem.LockTimeout("/x/.memory.lock", 10.0)
    assert doubt.errno is None  # 28 would be "no space left"
    assert timeout.errno is None
