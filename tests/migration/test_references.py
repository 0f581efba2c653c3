"""Facts that a version-1 file names the Markdown files of: nothing is lost, mixed up, or left half-way."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from deermem import FactDraft, MemoryRepository, MigrationError, Scope
from deermem.format.fact_markdown import encode_fact
from deermem.format.layout import shard_of
from deermem.model.fact import next_fact
from deermem.model.identity import FactId
from tests.migration.v1 import FACT, agent_document, document, put
from tests.support.stores import ALICE, BOB, CODER, bucket_path, fact_path, tree

HOME = f"agents/__default__/facts/{shard_of(FactId('fact_w'))}/fact_w.md"
ELSEWHERE = "agents/__default__/facts/00/fact_w.md"
OUTSIDE_FACTS = "notes/fact_w.md"


def put_markdown(root: Path, path: str, scope: Scope = ALICE, content: str = "Rows.") -> bytes:
    """Writes a fact document at a path below its user's bucket; returns its bytes."""
    fact = next_fact(FactDraft(content, id=FactId("fact_w")), scope, "2025-01-01T00:00:00Z", None)
    data = encode_fact(fact)
    put_bytes(root, path, data)
    return data


def put_bytes(root: Path, path: str, data: bytes) -> None:
    file = bucket_path(root) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def put_map(root: Path, path: str, content_hash: str | None = None, **fields: Any) -> Path:
    return put(
        root, {**document(), "facts": {"fact_w": {"path": path, "contentHash": content_hash}}, **fields}
    )


def contents(root: Path, scope: Scope = ALICE) -> list[str]:
    return [fact.content for fact in MemoryRepository(root).snapshot(scope).facts]


@pytest.mark.parametrize("path", [HOME, ELSEWHERE, OUTSIDE_FACTS])
@pytest.mark.parametrize("is_hashed", [True, False])
def test_a_fact_that_is_named_by_its_path_is_there_once(tmp_path: Path, path: str, is_hashed: bool) -> None:
    digest = sha256(put_markdown(tmp_path, path)).hexdigest()
    put_map(tmp_path, path, digest if is_hashed else None)
    assert contents(tmp_path) == ["Rows."]
    assert contents(tmp_path) == ["Rows."]
    assert (bucket_path(tmp_path) / HOME).exists()


def test_a_file_in_the_wrong_shard_is_kept_aside_and_does_not_stay_there(tmp_path: Path) -> None:
    data = put_markdown(tmp_path, ELSEWHERE)
    put_map(tmp_path, ELSEWHERE)
    report = MemoryRepository(tmp_path).migrate("alice")
    (kept,) = report.set_aside
    assert kept.endswith(ELSEWHERE)
    assert (tmp_path / kept).read_bytes() == data
    assert not (bucket_path(tmp_path) / ELSEWHERE).exists()


UNSOUND = {
    "no fact": (b"garbage", None),
    "no text": (b"\xff\xfe", None),
    "another content": (None, "0" * 64),
}


@pytest.mark.parametrize("path", [HOME, ELSEWHERE])
@pytest.mark.parametrize("kind", UNSOUND)
def test_what_is_refused_does_not_make_the_agent_unreadable_nor_pass_for_a_fact(
    tmp_path: Path, path: str, kind: str
) -> None:
    data, digest = UNSOUND[kind]
    data = data or put_markdown(tmp_path, path)
    put_bytes(tmp_path, path, data)
    put_map(tmp_path, path, digest)
    before = tree(tmp_path)
    with pytest.raises(MigrationError, match=r"facts\.fact_w\.path leads to a file"):
        MemoryRepository(tmp_path).migrate("alice")
    after = tree(tmp_path)
    after.pop("users/alice/.memory.lock", None)
    assert after == before
    report = MemoryRepository(tmp_path).migrate("alice", on_invalid="quarantine")
    assert [value.place for value in report.refused] == ["facts.fact_w"]
    assert contents(tmp_path) == []
    (kept,) = report.set_aside
    assert (tmp_path / kept).read_bytes() == data


def test_a_refused_file_that_lies_elsewhere_is_left_alone(tmp_path: Path) -> None:
    put_bytes(tmp_path, OUTSIDE_FACTS, b"garbage")
    put_map(tmp_path, OUTSIDE_FACTS)
    assert MemoryRepository(tmp_path).migrate("alice", on_invalid="quarantine").set_aside == ()
    assert (bucket_path(tmp_path) / OUTSIDE_FACTS).read_bytes() == b"garbage"


def test_a_fact_of_another_agent_is_not_taken_and_stays(tmp_path: Path) -> None:
    path = f"agents/coder/facts/{shard_of(FactId('fact_w'))}/fact_w.md"
    put_markdown(tmp_path, path, CODER)
    put_map(tmp_path, path)
    report = MemoryRepository(tmp_path).migrate("alice", on_invalid="quarantine")
    assert "belongs to another agent" in report.refused[0].reason
    assert contents(tmp_path) == []
    assert contents(tmp_path, CODER) == ["Rows."]


def test_a_store_without_users_does_not_take_the_facts_of_one(tmp_path: Path) -> None:
    MemoryRepository(tmp_path).upsert_fact(BOB, FactDraft("Secret.", id=FactId("fact_w")))
    path = fact_path(tmp_path, BOB, "fact_w").relative_to(tmp_path).as_posix()
    put(tmp_path, {**document(), "facts": {"fact_w": {"path": path}}}, user_id=None)
    with pytest.raises(MigrationError, match="belongs to another user"):
        MemoryRepository(tmp_path).migrate(None)
    assert contents(tmp_path, BOB) == ["Secret."]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(put_markdown(tmp_path, OUTSIDE_FACTS))
    (bucket_path(tmp_path) / OUTSIDE_FACTS).unlink()
    (bucket_path(tmp_path) / OUTSIDE_FACTS).symlink_to(tmp_path / "secret")
    put_map(tmp_path, OUTSIDE_FACTS)
    with pytest.raises(MigrationError, match="leads to a file that cannot be read"):
        MemoryRepository(tmp_path).snapshot(ALICE)


def test_a_fact_in_a_file_that_another_document_makes_leave_stops_the_migration(tmp_path: Path) -> None:
    put_markdown(tmp_path, HOME)
    put_map(tmp_path, HOME, "0" * 64)
    own = put(tmp_path, agent_document({**FACT, "id": "fact_w", "content": "Rows."}), "__default__")
    before = tree(bucket_path(tmp_path) / "agents")
    with pytest.raises(MigrationError, match="another reference leads to"):
        MemoryRepository(tmp_path).migrate("alice", on_invalid="quarantine")
    assert tree(bucket_path(tmp_path) / "agents") == before
    assert own.exists()


@pytest.mark.parametrize("path", [HOME, ELSEWHERE, OUTSIDE_FACTS])
@pytest.mark.parametrize("is_hashed", [True, False])
def test_a_rollback_puts_every_file_back_where_it_was(tmp_path: Path, path: str, is_hashed: bool) -> None:
    data = put_markdown(tmp_path, path)
    source = put_map(tmp_path, path, sha256(data).hexdigest() if is_hashed else None)
    original = source.read_bytes()
    MemoryRepository(tmp_path).migrate("alice")
    MemoryRepository(tmp_path).roll_migration_back("alice")
    assert source.read_bytes() == original
    assert (bucket_path(tmp_path) / path).read_bytes() == data
    assert (path == HOME) == (bucket_path(tmp_path) / HOME).exists()
    assert contents(tmp_path) == ["Rows."]


def test_a_rollback_puts_back_what_was_refused(tmp_path: Path) -> None:
    put_bytes(tmp_path, HOME, b"garbage")
    put_map(tmp_path, HOME)
    MemoryRepository(tmp_path).migrate("alice", on_invalid="quarantine")
    MemoryRepository(tmp_path).roll_migration_back("alice")
    assert (bucket_path(tmp_path) / HOME).read_bytes() == b"garbage"


def test_a_rollback_that_cannot_put_a_file_back_changes_nothing(tmp_path: Path) -> None:
    put_bytes(tmp_path, HOME, b"\xff")
    put_map(tmp_path, HOME)
    MemoryRepository(tmp_path).migrate("alice", on_invalid="quarantine")
    before = tree(tmp_path)
    with pytest.raises(MigrationError, match=r"move it back from \.quarantine"):
        MemoryRepository(tmp_path).roll_migration_back("alice")
    assert tree(tmp_path) == before
