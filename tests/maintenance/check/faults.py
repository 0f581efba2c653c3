"""Faults that are planted into a sound store, each with the kind of finding that must name it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from deermem import MemoryRepository, Scope
from tests.support.stores import (
    ALICE,
    CODER,
    bucket_path,
    draft,
    edit,
    fact_path,
    interrupt,
    settle,
    store_with,
)
from tests.support.watched import call_of

Plant = Callable[[Path], None]

A_SECOND = 1_000_000_000
OTHER_SHARD = "00"
OPERATION = "0" * 31 + "1"


@dataclass(frozen=True, slots=True)
class Fault:
    """Is one fault: what check must call it, where, and how it comes about.

    `mends` tells whether a repair leaves nothing worse than a note; `loses` names facts that no reader sees
    after it; `also` names kinds that come with this one.
    """

    kind: str
    where: str
    plant: Plant
    mends: bool = True
    loses: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    name: str = ""

    @property
    def id(self) -> str:
        return self.name or self.kind


def fill(root: Path) -> None:
    """Makes a sound store: facts of two agents, a summary and a clear; all of it is an hour old."""
    store = store_with(root, "a", "b", "spare")
    store.update_summaries("alice", {"user": {"topOfMind": {"summary": "Builds a store."}}})
    store.upsert_fact(CODER, draft("c"))
    store.upsert_fact(Scope.of("alice", "cleared"), draft("x"))
    store.clear(Scope.of("alice", "cleared"))
    settle(root)


def aged_copy(root: Path) -> None:
    """Makes the safety copy of the clear older than such copies are kept."""
    (path,) = alice(root).joinpath(".safety").iterdir()
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "time": "2016-02-29T12:00:00Z"}), "utf-8")


def broken_copy(root: Path) -> None:
    (path,) = alice(root).joinpath(".safety").iterdir()
    path.write_bytes(b"")


def alice(root: Path) -> Path:
    return bucket_path(root)


def fact(root: Path, fact_id: str) -> Path:
    return fact_path(root, ALICE, fact_id)


def shard_of_a(root: Path) -> Path:
    return fact(root, "a").parent


def write(name: str, data: bytes) -> Plant:
    """Plants a file with these bytes, below the bucket, as old as everything else."""

    def plant(root: Path) -> None:
        path = alice(root) / name
        make_directory(path.parent)
        write_old(path, data)

    return plant


def make_directory(path: Path) -> None:
    """Makes a directory, and those above it, as the store would."""
    if not path.exists():
        make_directory(path.parent)
        path.mkdir(0o700)


def write_old(path: Path, data: bytes) -> None:
    """Writes a file that is as old as the rest of a sound store."""
    path.write_bytes(data)
    path.chmod(0o600)
    then = path.stat().st_mtime_ns - 7_200 * A_SECOND
    os.utime(path, ns=(then, then))


def change(fact_id: str, old: str, new: str) -> Plant:
    """Plants another text in a fact's file, and keeps its time stamp."""

    def plant(root: Path) -> None:
        path = fact(root, fact_id)
        status = path.stat()
        edit(path, old, new)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return plant


def move(source: Path, target: Path) -> None:
    target.parent.mkdir(0o700, exist_ok=True)
    source.rename(target)


def misplaced(root: Path) -> None:
    move(fact(root, "a"), shard_of_a(root).parent / OTHER_SHARD / "a.md")


def duplicate(root: Path) -> None:
    other = shard_of_a(root).parent / OTHER_SHARD / "a.md"
    other.parent.mkdir(0o700)
    write_old(other, fact(root, "a").read_bytes())


def outside_a_shard(root: Path) -> None:
    move(fact(root, "a"), shard_of_a(root).parent / "a.md")


def renamed(root: Path) -> None:
    target = fact(root, "renamed")
    move(fact(root, "a"), target)


def copied_under_another_name(root: Path) -> None:
    target = fact(root, "copy")
    target.parent.mkdir(0o700, exist_ok=True)
    write_old(target, fact(root, "a").read_bytes())


def twins(root: Path) -> None:
    MemoryRepository(root).upsert_fact(ALICE, draft("A"))


def conflict(root: Path) -> None:
    path = fact(root, "a")
    text = path.read_text("utf-8") + "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n"
    write_old(path, text.encode("utf-8"))


def link(name: str) -> Plant:
    def plant(root: Path) -> None:
        path = alice(root) / name
        target = root.parent / "elsewhere"
        if path.exists():
            path.rename(target)
        else:
            target.mkdir()
        path.symlink_to(target)

    return plant


def linked_fact(root: Path) -> None:
    target = root.parent / "elsewhere.md"
    fact(root, "a").rename(target)
    fact(root, "a").symlink_to(target)


def linked_user(root: Path) -> None:
    alice(root).rename(root.parent / "elsewhere")
    alice(root).symlink_to(root.parent / "elsewhere")


def pipe(root: Path) -> None:
    fact(root, "a").unlink()
    os.mkfifo(fact(root, "a"))


def directory(root: Path) -> None:
    path = fact(root, "a")
    path.unlink()
    path.mkdir()
    write_old(path / "inside", b"kept")


def mode(bits: int, of: Callable[[Path], Path]) -> Plant:
    return lambda root: of(root).chmod(bits)


def hand_edit(root: Path) -> None:
    path = fact(root, "a")
    edit(path, "topics: []", "topics: [edited]")


def hot_journal(root: Path) -> None:
    interrupt(root, lambda store: store.upsert_fact(ALICE, draft("new")), call_of("rename", "new.md"))


def journal_over_a_broken_manifest(root: Path) -> None:
    hot_journal(root)
    write_old(alice(root) / "memory.json", b'{"version": "2.0", "revision": 6, ')


def unfit_journal(root: Path) -> None:
    hot_journal(root)
    edit(alice(root) / "memory.json", '"revision": 7', '"revision": 3')


def broken_journal(root: Path) -> None:
    hot_journal(root)
    path = alice(root) / ".memory.journal.json"
    path.write_bytes(path.read_bytes()[:-40])


def leftover(root: Path) -> None:
    interrupt(root, lambda store: store.upsert_fact(ALICE, draft("new")), call_of("rename", "journal.json"))


def predecessors_journal(state: str) -> Plant:
    """Plants a journal of the predecessor for an update of the fact `a` that it had carried out."""

    def plant(root: Path) -> None:
        kept = alice(root) / ".recovery" / OPERATION
        make_directory(kept)
        write_old(kept / "memory.json", (alice(root) / "memory.json").read_bytes())
        write_old(kept / "a.md", fact(root, "a").read_bytes())
        path = fact(root, "a").relative_to(alice(root)).as_posix()
        journal = {
            "operationId": OPERATION, "state": state, "agentName": "__default__", "expectedRevision": 6,
            "nextRevision": 7, "factIds": ["a"], "oldEntries": {"a": {"path": path}},
        }  # fmt: skip
        write_old(alice(root) / ".memory.journal.json", json.dumps(journal).encode())
        os.utime(fact(root, "a"))

    return plant


def predecessors_journal_without_backup(root: Path) -> None:
    predecessors_journal("prepared")(root)
    (alice(root) / ".recovery" / OPERATION / "a.md").unlink()


def legacy_document(**values: Any) -> bytes:
    return json.dumps({"version": "1.0", "facts": [{"id": "old", "content": "Old."}], **values}).encode()


def differing_backup(root: Path) -> None:
    write("memory.json", legacy_document())(root)
    write("memory.json.v1.bak", legacy_document(lastUpdated="2025-01-01T00:00:00Z"))(root)


def came_back(root: Path) -> None:
    """Plants the version-1 file once more, over what was made of it."""
    write("memory.json", legacy_document())(root)
    migrate(root)
    write("memory.json", legacy_document())(root)


def agent_came_back(root: Path) -> None:
    write("agents/old/memory.json", legacy_document())(root)
    migrate(root)
    write("agents/old/memory.json", legacy_document())(root)


def migrate(root: Path) -> None:
    """Migrates, and makes everything as old as the rest of a sound store."""
    with MemoryRepository(root) as store:
        store.migrate("alice")
    files = [path for path in alice(root).rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda each: each.name == "memory.json"):
        write_old(path, path.read_bytes())


def record(state: str) -> bytes:
    entry = {"path": "x.tmp", "kept": "0", "sha256": sha256(b"x").hexdigest(), "kind": "t", "reason": "t"}
    return json.dumps({"format": 1, "state": state, "revision": 4, "entries": [entry]}).encode()


def quarantined(state: str) -> Plant:
    def plant(root: Path) -> None:
        write(".quarantine/2026-01-01T00-00-00Z/0", b"x")(root)
        write(".quarantine/2026-01-01T00-00-00Z/record.json", record(state))(root)

    return plant


def device(root: Path) -> None:
    MemoryRepository(root).upsert_fact(ALICE, draft("nul"))


def upper_case_agent(root: Path) -> None:
    (alice(root) / "agents" / "coder").rename(alice(root) / "agents" / "Coder")


def second_user(name: str) -> Plant:
    return lambda root: store_with(root, "a", scope=Scope.of(name)).close()


def in_users(name: str) -> Plant:
    def plant(root: Path) -> None:
        (root / "users" / name).mkdir(0o700)
        write_old(root / "users" / name / "memory.json", b"{}")

    return plant


SHARDS = "users/alice/agents/__default__/facts"
MANIFEST = "users/alice/memory.json"
JOURNAL = "users/alice/.memory.journal.json"

FAULTS = (
    Fault("manifest-missing", MANIFEST, lambda root: (alice(root) / "memory.json").unlink()),
    Fault("manifest-corrupt", MANIFEST, write("memory.json", b'{"version": "2.0", "revision": 6')),
    Fault("manifest-corrupt", MANIFEST, write("memory.json", b""), name="manifest-empty"),
    Fault("manifest-newer", MANIFEST, write("memory.json", b'{"version": "3.0", "revision": 9}'),
          mends=False),
    Fault("manifest-legacy", MANIFEST, write("memory.json", legacy_document()), mends=False),
    Fault(
        "legacy-corrupt", "users/alice/agents/old/memory.json", write("agents/old/memory.json", b"{"),
        mends=False,
    ),
    Fault(
        "legacy-corrupt", MANIFEST, write("memory.json", legacy_document()[:-2]), mends=False,
        name="manifest of version 1 cut short",
    ),
    Fault(
        "agent-legacy", "users/alice/agents/old/memory.json",
        write("agents/old/memory.json", legacy_document()), mends=False,
    ),
    Fault(
        "backup-unreadable", "users/alice/memory.json.v1.bak", write("memory.json.v1.bak", b"{"), mends=False
    ),
    Fault("backup-differs", "users/alice/memory.json.v1.bak", differing_backup, mends=False,
          also=("migration-stopped",)),
    Fault("migration-stopped", MANIFEST, came_back, mends=False),
    Fault("migration-stopped", "users/alice/agents/old/memory.json", agent_came_back, mends=False,
          name="an agent's file that came back"),
    Fault("migration-stopped", MANIFEST,
          write("memory.json", legacy_document(facts=[{"id": "old", "content": " "}])), mends=False,
          name="a value that cannot be migrated"),
    Fault("fences-corrupt", "users/alice/.memory.fences.json", write(".memory.fences.json", b"[]")),
    Fault(
        "fences-newer", "users/alice/.memory.fences.json",
        write(".memory.fences.json", b'{"format": 2}'), mends=False,
    ),
    Fault(
        "fences-ahead", "users/alice/.memory.fences.json",
        write(".memory.fences.json", b'{"format": 1, "everything": 70, "agents": {}}'),
    ),
    Fault("journal-hot", JOURNAL, hot_journal),
    Fault("journal-hot", JOURNAL, journal_over_a_broken_manifest, also=("manifest-corrupt",),
          name="journal-over-a-broken-manifest"),
    Fault("journal-legacy", JOURNAL, predecessors_journal("prepared")),
    Fault("journal-legacy", JOURNAL, predecessors_journal("committed"), name="journal-legacy-committed"),
    Fault("journal-legacy", JOURNAL, predecessors_journal_without_backup, name="journal-legacy-no-backup"),
    Fault("journal-corrupt", JOURNAL, broken_journal),
    Fault("journal-unfit", JOURNAL, unfit_journal, also=("fences-ahead",)),
    Fault("journal-newer", JOURNAL, write(".memory.journal.json", b'{"format": 3, "state": "x"}'),
          mends=False),
    Fault("recovery-leftover", "users/alice/.recovery", leftover),
    Fault("recovery-stray", "users/alice/.recovery/notes.txt", write(".recovery/notes.txt", b"x")),
    Fault("quarantine", "users/alice/.quarantine/2026-01-01T00-00-00Z", quarantined("done")),
    Fault("quarantine-unfinished", "users/alice/.quarantine/2026-01-01T00-00-00Z", quarantined("begun")),
    Fault(
        "quarantine-unreadable", "users/alice/.quarantine/x/record.json",
        write(".quarantine/x/record.json", b"{"), mends=False,
    ),
    Fault("fact-corrupt", SHARDS, change("a", "confidence: 0.5", "confidence: very"), loses=("a",)),
    Fault("fact-corrupt", SHARDS, lambda root: write_old(fact(root, "a"), b""), loses=("a",),
          name="fact-empty"),
    Fault(
        "fact-corrupt", SHARDS, lambda root: write_old(fact(root, "a"), b"\xff\xfe\0"), loses=("a",),
        name="fact-of-bytes",
    ),
    Fault("fact-conflict-markers", SHARDS, conflict, loses=("a",)),
    Fault("fact-foreign-user", SHARDS, change("a", "user_id: alice", "user_id: bob"), loses=("a",)),
    Fault(
        "fact-foreign-agent", SHARDS, change("a", "agent_name: __default__", "agent_name: coder"),
        loses=("a",),
    ),
    Fault("fact-other-id", SHARDS, renamed),
    Fault("fact-duplicate", SHARDS, copied_under_another_name, name="fact-under-another-name"),
    Fault("fact-misplaced", SHARDS, misplaced),
    Fault("fact-misplaced", SHARDS, outside_a_shard, name="fact-outside-a-shard"),
    Fault("fact-duplicate", SHARDS, duplicate),
    Fault("fact-newer", SHARDS, change("a", "schemaVersion: 2", "schemaVersion: 3"), mends=False),
    Fault("fact-too-large", SHARDS, lambda root: write_old(fact(root, "a"), b"x" * 2_000_001), loses=("a",)),
    Fault("fact-ahead", SHARDS, change("a", "revision: 1", "revision: 50")),
    Fault("fact-edited", SHARDS, hand_edit),
    Fault("case-twins", SHARDS, twins, mends=False),
    Fault("case-twins", "users/Alice", second_user("Alice"), mends=False, name="case-twins-of-users"),
    Fault("agent-case", "users/alice/agents/Coder", upper_case_agent, mends=False),
    Fault("device-name", SHARDS, device, mends=False),
    Fault("temporary-file", SHARDS, lambda root: write_old(shard_of_a(root) / ".#a.md", b"x")),
    Fault("temporary-file", "users/alice/memory.json.x1.tmp", write("memory.json.x1.tmp", b"x"),
          name="temporary-manifest"),
    Fault(
        "sync-copy", SHARDS,
        lambda root: write_old(shard_of_a(root) / "a.sync-conflict-20260101-000000-ABC.md", b"x"),
    ),
    Fault(
        "sync-copy", SHARDS,
        lambda root: write_old(shard_of_a(root) / "a 2.md", fact(root, "a").read_bytes()),
        name="sync-copy-numbered",
    ),
    Fault(
        "sync-copy", "users/alice/memory (conflicted copy).json",
        write("memory (conflicted copy).json", b"{}"), name="sync-copy-of-the-manifest",
    ),
    Fault("stray-entry", SHARDS, lambda root: write_old(shard_of_a(root) / "README.md", b"# Facts")),
    Fault("not-a-bucket", "users/a@b.c", in_users("a@b.c")),
    Fault("safety-expired", "users/alice/.safety/", aged_copy),
    Fault("safety-unreadable", "users/alice/.safety/", broken_copy, mends=False),
    Fault("symbolic-link", SHARDS, linked_fact, loses=("a",)),
    Fault("symbolic-link", "users/alice/agents/coder", link("agents/coder"), mends=False,
          name="linked-agent"),
    Fault("symbolic-link", "users/alice/.recovery", link(".recovery"), name="linked-recovery"),
    Fault("symbolic-link", "users/alice", linked_user, mends=False, name="linked-user"),
    Fault("special-file", SHARDS, pipe, loses=("a",)),
    Fault("wrong-type", SHARDS, directory, loses=("a",)),
    Fault("permissions", SHARDS, mode(0o644, lambda root: fact(root, "a"))),
    Fault("permissions", MANIFEST, mode(0o660, lambda root: alice(root) / "memory.json"),
          name="group-manifest"),
    Fault("permissions", "users/alice", mode(0o755, alice), name="open-bucket"),
)  # fmt: skip
# Windows has neither permission bits nor named pipes.
PLANTABLE = [each for each in FAULTS if os.name != "nt" or each.kind not in {"permissions", "special-file"}]
