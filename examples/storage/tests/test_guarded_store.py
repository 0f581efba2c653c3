"""The guarded store keeps every rule of a storage, and does what it adds."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from guarded_store import GuardedRepository, kind_of_secret

from deermem import DeerMem, FactDraft, MemoryRepository, Scope
from deermem.testing.storage_contract import StorageContract

ALICE = Scope.of("alice")
# Made of pieces, so that no scanner takes this file for a leak.
SECRETS = (
    "-----BEGIN RSA " + "PRIVATE KEY-----",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "ghp_" + "a1" * 20,
    "xoxb-" + "1234567890-abc",
    "sk-" + "x" * 24,
    "eyJ" + "a" * 12 + ".eyJ" + "b" * 12 + "." + "c" * 12,
)


class TestGuardedRepository(StorageContract):
    """Inherits one test for each rule."""

    def make_storage(self, root: Path, **settings: Any) -> MemoryRepository:
        """Builds the storage as the settings would."""
        return GuardedRepository(root, **settings)


@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
def test_a_secret_is_known_wherever_it_stands(secret: str) -> None:
    assert kind_of_secret(f"Remember that the key is {secret}, please.")


@pytest.mark.parametrize("text", ["", "Drinks tea.", "The key is under the mat.", "Uses ask-me-anything."])
def test_a_harmless_text_is_no_secret(text: str) -> None:
    assert kind_of_secret(text) is None


@pytest.mark.parametrize("piece", ["eyJ-", "eyJaaaaaaaaaa.", "-----BEGIN ", "sk-", "A", " "])
def test_a_large_text_takes_no_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    kind_of_secret(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("field", ["content", "title", "source", "source_error", "category", "topics"])
def test_a_fact_with_a_secret_is_refused_and_nothing_is_written(tmp_path: Path, field: str) -> None:
    secret: Any = (SECRETS[1],) if field == "topics" else SECRETS[1]
    draft = FactDraft(**{"content": "Drinks tea.", field: secret})
    with GuardedRepository(tmp_path) as storage:
        with pytest.raises(ValueError, match="an access key of AWS") as caught:
            storage.upsert_fact(ALICE, draft)
        assert storage.snapshot(ALICE).revision == 0
    assert SECRETS[1] not in str(caught.value)


def test_every_way_to_write_is_guarded(tmp_path: Path) -> None:
    with GuardedRepository(tmp_path) as storage:
        storage.upsert_fact(ALICE, FactDraft("Drinks tea.", id="x"))
        secret = FactDraft(f"The key is {SECRETS[2]}.")
        for write in (
            lambda: storage.create_fact(ALICE, secret),
            lambda: storage.edit_fact(ALICE, "x", {"content": secret.content}),
            lambda: storage.consolidate(ALICE, ["x"], secret),
            lambda: storage.replace_all(ALICE, [secret], storage.get_summaries("alice")),
            lambda: storage.update_summaries("alice", {"user": {"topOfMind": secret.content}}),
        ):
            with pytest.raises(ValueError, match="a token of GitHub"):
                write()
        assert storage.snapshot(ALICE).revision == 1


def test_a_host_is_told_by_a_value_error(tmp_path: Path) -> None:
    settings = {"storage_path": str(tmp_path), "storage_class": "guarded_store.GuardedRepository"}
    with DeerMem(settings) as manager, pytest.raises(ValueError, match="content: looks like an API key"):
        manager.create_fact(f"Uses {SECRETS[4]}.", user_id="alice")


def test_each_commit_is_one_line_without_a_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "guarded_store.commits")
    with GuardedRepository(tmp_path) as storage:
        storage.upsert_fact(ALICE, FactDraft("Drinks tea.", id="x"))
        storage.upsert_fact(ALICE, FactDraft("Drinks tea.", id="x"), expected=1)  # changes nothing
        storage.delete_fact(ALICE, "x")
    lines = [
        json.loads(record.message) for record in caplog.records if record.name == "guarded_store.commits"
    ]
    assert [(line["revision"], line["written"], line["deleted"]) for line in lines] == [
        (1, ["__default__/x@1"], []),
        (2, [], ["__default__/x"]),
    ]
    assert "tea" not in caplog.text
