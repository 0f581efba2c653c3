"""The migrations whose crashes are explored: of each source, of all at once, and back again."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any, Final

from deermem import Scope
from deermem.format.fact_markdown import encode_fact
from deermem.format.layout import fact_parts
from deermem.format.manifest_json import encode_manifest
from deermem.model.fact import FactDraft, next_fact
from deermem.model.identity import DEFAULT_AGENT, FactId, UserId
from deermem.model.manifest import Manifest
from deermem.repository import MemoryRepository
from deermem.testing.crash_scenario import Scenario
from deermem.testing.memory_model import Action, MemoryModel, ModelFact

USER: Final = "alice"
HERE: Final = Scope.of(USER)
THERE: Final = Scope.of(USER, "research")
BUCKET: Final = f"users/{USER}"
OWN: Final = f"{BUCKET}/memory.json"
AGENTS_OWN: Final = f"{BUCKET}/agents/research/memory.json"
BOTH: Final = (DEFAULT_AGENT, "research")

OPERATION: Final = "0123456789abcdef0123456789abcdef"
_THEN: Final = "2025-01-01T00:00:00Z"
_LATER: Final = "2025-01-02T00:00:00Z"


def _document(**contents: str) -> bytes:
    facts = [{"id": fact_id, "content": text, "createdAt": _THEN} for fact_id, text in contents.items()]
    return json.dumps({"version": "1.0", "lastUpdated": _THEN, "facts": facts}).encode()


def _memory(revision: int, *facts: tuple[str, str, str]) -> MemoryModel:
    return MemoryModel(revision, frozenset(ModelFact(*fact, 1) for fact in facts))


FIRST: Final = (DEFAULT_AGENT, "a", "First text.")
SECOND: Final = ("research", "r", "Found.")
V1_FILES: Final = MappingProxyType({OWN: _document(a="First text.")})
V1_OF_BOTH: Final = MappingProxyType({**V1_FILES, AGENTS_OWN: _document(r="Found.")})


def _fact(fact_id: str, text: str) -> tuple[str, bytes]:
    fact = next_fact(FactDraft(text, id=FactId(fact_id)), HERE, _THEN, None)
    return "/".join((BUCKET, *fact_parts(HERE.agent, fact.id))), encode_fact(fact)


def _half_done() -> dict[str, bytes]:
    """Returns what the predecessor leaves when it dies after an update, a delete and a create."""
    changed, kept_changed = _fact("a", "Half."), _fact("a", "First text.")
    created, kept_deleted = _fact("n", "New."), _fact("b", "Other text.")
    manifest = encode_manifest(Manifest(3, _THEN))
    journal: dict[str, Any] = {
        "operationId": OPERATION,
        "state": "prepared",
        "agentName": DEFAULT_AGENT,
        "expectedRevision": 3,
        "nextRevision": 4,
        "factIds": ["a", "n", "b"],
        "oldEntries": {
            "a": {"path": kept_changed[0].removeprefix(f"{BUCKET}/")},
            "b": {"path": kept_deleted[0].removeprefix(f"{BUCKET}/")},
        },
    }
    aside = f"{BUCKET}/.recovery/{OPERATION}"
    return {
        changed[0]: changed[1],
        created[0]: created[1],
        OWN: encode_manifest(Manifest(4, _LATER)),
        f"{aside}/memory.json": manifest,
        f"{aside}/a.md": kept_changed[1],
        f"{aside}/b.md": kept_deleted[1],
        f"{BUCKET}/.memory.journal.json": json.dumps(journal).encode(),
    }


def _misplaced() -> dict[str, bytes]:
    """Returns a file of version 1 that names the file of a fact, which lies in the wrong shard."""
    _, fact = _fact("a", "First text.")
    path = f"agents/{DEFAULT_AGENT}/facts/00/a.md"
    document = {"version": "1.0", "lastUpdated": _THEN, "facts": {"a": {"path": path}}}
    return {OWN: json.dumps(document).encode(), f"{BUCKET}/{path}": fact}


def _interrupted_migration(*, replaced: bool) -> dict[str, bytes]:
    """Returns what the predecessor leaves when it dies within a migration."""
    own = V1_FILES[OWN]
    fact = _fact("a", "First text." if replaced else "Half.")
    journal: dict[str, Any] = {
        "operationId": OPERATION,
        "state": "prepared",
        "agentName": DEFAULT_AGENT,
        "expectedRevision": 0,
        "nextRevision": 1,
        "factIds": ["a"],
        "oldEntries": {},
    }
    return {
        OWN: encode_manifest(Manifest(1, _THEN)) if replaced else own,
        f"{OWN}.v1.bak": own,
        fact[0]: fact[1],
        f"{BUCKET}/.recovery/{OPERATION}/memory.json": own,
        f"{BUCKET}/.memory.journal.json": json.dumps(journal).encode(),
    }


READ: Final = Action("read", lambda repository: repository.snapshot(HERE), lambda memory: memory)
READ_THERE: Final = Action("read there", lambda repository: repository.snapshot(THERE), lambda memory: memory)


def migrate_and_look(repository: MemoryRepository) -> None:
    """Migrates, and makes sure that the fences tell of every file that was migrated, now or before."""
    repository.migrate(USER)
    with repository.engine.opened(UserId.parse(USER)) as bucket:
        noted = {} if bucket is None else bucket.read_fences().migrated
    if noted.keys() != {path.removeprefix(f"{BUCKET}/") for path in V1_OF_BOTH}:
        raise ValueError(f"the fences tell of {sorted(noted)} alone")


MIGRATE: Final = Action("migrate", lambda repository: repository.migrate(USER), lambda memory: memory)
MIGRATE_ALL: Final = Action("migrate", migrate_and_look, lambda memory: memory)
# The next access migrates again, above the revision of the rollback.
ROLL_BACK: Final = Action(
    "roll back",
    lambda repository: repository.roll_migration_back(USER),
    lambda memory: memory.committed().committed(),
)
CLEAR_ALL: Final = Action(
    "clear all",
    lambda repository: repository.clear_all(USER),
    lambda memory: MemoryModel(memory.revision).committed(),
)

MIGRATIONS: Final = (
    Scenario(
        "migrate the user's file by a read",
        READ,
        files=V1_FILES,
        start=_memory(1, FIRST),
        backed_up=(OWN,),
    ),
    Scenario(
        "migrate all files of a user",
        MIGRATE_ALL,
        agents=BOTH,
        first=MIGRATE_ALL,
        files=V1_OF_BOTH,
        start=_memory(1, FIRST, SECOND),
        backed_up=(OWN, AGENTS_OWN),
    ),
    Scenario(
        "clear all with unread files of version 1",
        CLEAR_ALL,
        agents=BOTH,
        cleared=BOTH,
        safety_copy="2-clear.json",
        first=MIGRATE,
        files=V1_OF_BOTH,
        start=_memory(1, FIRST, SECOND),
        backed_up=(OWN, AGENTS_OWN),
    ),
    Scenario(
        "roll a migration back",
        ROLL_BACK,
        (MIGRATE,),
        agents=BOTH,
        first=MIGRATE,
        files=V1_OF_BOTH,
        start=_memory(1, FIRST, SECOND),
        backed_up=(OWN, AGENTS_OWN),
    ),
    Scenario(
        "migrate what a snapshot shares",
        READ,
        files=V1_FILES,
        start=_memory(1, FIRST),
        backed_up=(OWN,),
        snapshot="snapshots/first",
    ),
    Scenario(
        "roll back a transaction of the predecessor",
        READ,
        files=_half_done(),
        start=_memory(5, FIRST, (DEFAULT_AGENT, "b", "Other text.")),
    ),
    Scenario(
        "do an interrupted migration of the predecessor again",
        READ,
        files=_interrupted_migration(replaced=True),
        start=_memory(2, FIRST),
        backed_up=(OWN,),
    ),
    Scenario(
        "do a migration of the predecessor again that wrote facts alone",
        READ,
        files=_interrupted_migration(replaced=False),
        start=_memory(2, FIRST),
        backed_up=(OWN,),
    ),
    Scenario(
        "migrate a fact that lies in the wrong shard",
        READ,
        files=_misplaced(),
        start=_memory(1, FIRST),
        backed_up=(OWN,),
    ),
    Scenario(
        "roll back a migration of a fact that lay in the wrong shard",
        ROLL_BACK,
        (MIGRATE,),
        files=_misplaced(),
        start=_memory(1, FIRST),
        backed_up=(OWN,),
    ),
)
