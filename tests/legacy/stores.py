"""Stores as earlier releases left them, byte for byte in their style.

Each function writes one into a user bucket that is empty or absent (without users: into the storage root),
and each is a `Store`, listed in `STORES`. Generations, oldest first:

    list     since February 2026: one `memory.json` of version 1.0 with a list of facts
    agents   since March 2026: also one for each custom agent, `agents/{agent}/memory.json`
    map      July 2026, never released: version 2.0, Markdown facts, listed in each `memory.json`
    markdown July 2026: version 2.0, Markdown facts below `agents/`, undo journal, `.v1.bak` after migrations
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.legacy.markdown import (
    ENGLISH_MARKDOWN,
    FRIDAYS_MARKDOWN,
    GERMAN_MARKDOWN,
    LISBON_MARKDOWN,
    MAP_AGENT_MARKDOWN,
    MAP_USER_MARKDOWN,
    PYTHON_MARKDOWN,
)
from tests.legacy.samples import (
    AGENT_FACTS,
    ENRICHED_FACTS,
    FRIDAYS,
    GERMAN,
    LISBON,
    LOOSE_FACTS,
    PLAIN_FACTS,
    PYTHON,
    REFUSED_FACTS,
    Document,
    document_bytes,
    v1_document,
    v2_document,
)

Store = Callable[[Path], None]

USER: Final = "alice"
MANIFEST: Final = "memory.json"
JOURNAL: Final = ".memory.journal.json"
OPERATION: Final = "6cd16be981044ae78edfb7fd8c9c17f7"
RECOVERY: Final = f".recovery/{OPERATION}"


def canonical_path(fact_id: str, agent: str = "__default__") -> str:
    """Returns where the markdown generation keeps a fact, as version 2 does."""
    return f"agents/{agent}/facts/{sha256(fact_id.encode()).hexdigest()[:2]}/{fact_id}.md"


def _write(bucket: Path, files: Mapping[str, bytes | Document]) -> None:
    for name, content in files.items():
        path = bucket / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else document_bytes(content))


def plain(bucket: Path) -> None:
    """Writes the list generation: two facts, one category of the user's own, two summaries."""
    texts = {"workContext": "Builds a memory store.", "recentMonths": "Read about journals."}
    _write(bucket, {MANIFEST: v1_document(PLAIN_FACTS, **texts)})


def without_version(bucket: Path) -> None:
    """Writes the list generation as made by hand: no version, no time, summaries as plain strings."""
    document = {"user": {"workContext": "Builds a memory store."}, "facts": PLAIN_FACTS}
    _write(bucket, {MANIFEST: document})


def empty(bucket: Path) -> None:
    """Writes the list generation of a user about whom nothing was ever learned."""
    _write(bucket, {MANIFEST: v1_document([])})


def enriched(bucket: Path) -> None:
    """Writes the list generation's last form: corrections, consolidated facts, days of validity."""
    _write(bucket, {MANIFEST: v1_document(ENRICHED_FACTS, topOfMind="Moving house.")})


def loose(bucket: Path) -> None:
    """Writes the list generation with every looseness that migrates without help, in facts and summaries."""
    document = v1_document(LOOSE_FACTS, workContext="Builds a memory store.")
    document["user"]["topOfMind"] = "a summary that is a string"
    document["user"]["personalContext"] = None
    document["history"]["recentMonths"] = {"summary": "no time"}
    document["history"]["earlierContext"] = {"summary": "odd time", "updatedAt": "in March", "weight": 2}
    document["history"]["ownSection"] = {"summary": "an unknown section", "updatedAt": ""}
    document["display"] = {"sections": []}
    document["lastUpdated"] = "2026-03-28T10:30:00+00:00Z"
    _write(bucket, {MANIFEST: document})


def partly_refused(bucket: Path) -> None:
    """Writes the list generation with facts, and a summary, that version 2 cannot hold beside good ones."""
    document = v1_document([*PLAIN_FACTS, *[fact for fact, _ in REFUSED_FACTS]])
    document["user"]["workContext"] = ["a", "list"]
    _write(bucket, {MANIFEST: document})


_AGENT_FILES: Final[Mapping[str, bytes | Document]] = {
    "agents/research/memory.json": v1_document(AGENT_FACTS, workContext="Builds a memory store."),
    "agents/research/config.yaml": b"name: research\n",
    "agents/research/SOUL.md": b"Be brief.\n",
}


def agent_beside_v1(bucket: Path) -> None:
    """Writes the agents generation: a user's document and an agent's, with the same summary."""
    plain(bucket)
    _write(bucket, _AGENT_FILES)


def agent_alone(bucket: Path) -> None:
    """Writes the agents generation of a user who only ever talked to a custom agent."""
    _write(bucket, _AGENT_FILES)


def agent_in_conflict(bucket: Path) -> None:
    """Writes the agents generation with another summary in the agent's document than in the user's."""
    agent_beside_v1(bucket)
    _write(bucket, {"agents/research/memory.json": v1_document(AGENT_FACTS, workContext="Keeps bees.")})


def agent_beside_v2(bucket: Path) -> None:
    """Writes the markdown generation with an agent whose document nobody has read since."""
    markdown(bucket)
    _write(bucket, _AGENT_FILES)
    bucket.joinpath(canonical_path(PYTHON, "research")).unlink()


def _map_document(fact_id: str, fact: bytes, **texts: str) -> Document:
    digest = f"sha256:{sha256(fact).hexdigest()}"
    entry = {"path": f"facts/fa/{fact_id}.md", "revision": 1, "contentHash": digest}
    return {**v2_document(1, **texts), "facts": {fact_id: entry}}


def fact_map(bucket: Path) -> None:
    """Writes the map generation: `memory.json` of version 2.0 lists a Markdown fact by path and hash."""
    files = {MANIFEST: _map_document(GERMAN, MAP_USER_MARKDOWN, workContext="Builds a memory store.")}
    _write(bucket, {**files, f"facts/fa/{GERMAN}.md": MAP_USER_MARKDOWN})


def fact_map_of_an_agent(bucket: Path) -> None:
    """Writes the map generation of a user and an agent.

    The agent's fact lies where version 2 keeps facts, but in a shard of another rule.
    """
    fact_map(bucket)
    files = {"agents/research/memory.json": _map_document(PYTHON, MAP_AGENT_MARKDOWN)}
    _write(bucket, {**files, f"agents/research/facts/fa/{PYTHON}.md": MAP_AGENT_MARKDOWN})


def fact_map_without_hash(bucket: Path) -> None:
    """Writes the map generation with a path alone, into the place where version 2 keeps the fact."""
    document: Document = {**v2_document(1), "facts": {GERMAN: {"path": canonical_path(GERMAN)}}}
    _write(bucket, {MANIFEST: document, canonical_path(GERMAN): GERMAN_MARKDOWN})


BEFORE: Final = document_bytes(v2_document(4, workContext="Builds a memory store."))
AFTER: Final = document_bytes(v2_document(5, workContext="Builds a memory store.", topOfMind="Moving house."))


def markdown(bucket: Path) -> None:
    """Writes the markdown generation at rest: two facts of the default agent, one of a custom agent."""
    files = {
        canonical_path(GERMAN): GERMAN_MARKDOWN,
        canonical_path(FRIDAYS): FRIDAYS_MARKDOWN,
        canonical_path(PYTHON, "research"): PYTHON_MARKDOWN,
        "agents/research/config.yaml": b"name: research\n",
    }
    _write(bucket, {MANIFEST: BEFORE, ".memory.lock": b"", **files})


def after_migration(bucket: Path) -> None:
    """Writes the markdown generation at rest, with the backup that its own migration left."""
    markdown(bucket)
    _write(bucket, {f"{MANIFEST}.v1.bak": v1_document(PLAIN_FACTS)})


def changed(bucket: Path) -> None:
    """Writes what `markdown` becomes by the change that the hot journals below are about."""
    markdown(bucket)
    _write(
        bucket,
        {MANIFEST: AFTER, canonical_path(GERMAN): ENGLISH_MARKDOWN, canonical_path(LISBON): LISBON_MARKDOWN},
    )


def journal_document(state: str, fact_ids: list[str], old: list[str], revision: int = 4) -> Document:
    """Returns a journal of the markdown generation."""
    return {
        "operationId": OPERATION,
        "state": state,
        "agentName": "__default__",
        "expectedRevision": revision,
        "nextRevision": revision + 1,
        "factIds": fact_ids,
        "oldEntries": {fact_id: {"path": canonical_path(fact_id)} for fact_id in old},
    }


def _interrupted(bucket: Path, state: str, files: Mapping[str, bytes | Document]) -> None:
    markdown(bucket)
    _write(
        bucket,
        {
            f"{RECOVERY}/{MANIFEST}": BEFORE,
            f"{RECOVERY}/{GERMAN}.md": GERMAN_MARKDOWN,
            JOURNAL: journal_document(state, [GERMAN, LISBON], [GERMAN]),
            **files,
        },
    )


def hot_before_anything(bucket: Path) -> None:
    """Writes a hot journal of the markdown generation, `prepared`: nothing is changed yet.

    The change updates one fact, adds one and sets a summary. To be rolled back to `markdown`.
    """
    _interrupted(bucket, "prepared", {})


def hot_midway(bucket: Path) -> None:
    """Writes the same, one fact later. To be rolled back to `markdown`."""
    _interrupted(bucket, "prepared", {canonical_path(GERMAN): ENGLISH_MARKDOWN})


def hot_after_facts(bucket: Path) -> None:
    """Writes the same with both facts, but the old `memory.json`. To be rolled back to `markdown`."""
    files = {canonical_path(GERMAN): ENGLISH_MARKDOWN, canonical_path(LISBON): LISBON_MARKDOWN}
    _interrupted(bucket, "prepared", files)


def hot_after_manifest(bucket: Path) -> None:
    """Writes the same with all of it done, but not yet `committed`. To be rolled back to `markdown`."""
    changed(bucket)
    files = {name: bucket.joinpath(name).read_bytes() for name in (MANIFEST, canonical_path(GERMAN))}
    _interrupted(bucket, "prepared", files)


def hot_committed(bucket: Path) -> None:
    """Writes the same, `committed`, with copies and journal still there. To be finished to `changed`."""
    changed(bucket)
    files = {name: bucket.joinpath(name).read_bytes() for name in (MANIFEST, canonical_path(GERMAN))}
    _interrupted(bucket, "committed", files)


def hot_delete(bucket: Path) -> None:
    """Writes a hot journal of the markdown generation that deletes a fact, after the deletion.

    To be rolled back to `markdown`.
    """
    _interrupted(bucket, "prepared", {JOURNAL: journal_document("prepared", [GERMAN], [GERMAN])})
    bucket.joinpath(canonical_path(GERMAN)).unlink()


def hot_first_write(bucket: Path) -> None:
    """Writes a hot journal of a user's very first change: the fact is there, and no `memory.json` yet.

    To be rolled back to an empty bucket.
    """
    files = {canonical_path(LISBON): LISBON_MARKDOWN}
    _write(bucket, {JOURNAL: journal_document("prepared", [LISBON], [], revision=0), **files})


def hot_first_write_done(bucket: Path) -> None:
    """Writes `hot_first_write` with `memory.json` at revision 1, but not yet `committed`.

    There is no copy to roll back to, and `memory.json` must not be deleted.
    """
    hot_first_write(bucket)
    _write(bucket, {MANIFEST: v2_document(1)})


def hot_without_copies(bucket: Path) -> None:
    """Writes `hot_midway` with the copies gone, as a power failure leaves it. To be refused."""
    hot_midway(bucket)
    for copy in bucket.joinpath(RECOVERY).iterdir():
        copy.unlink()


def hot_migration(bucket: Path) -> None:
    """Writes a migration that the markdown generation did not finish: one fact of two, and the backup.

    To be rolled back to `plain` with its backup, and migrated then.
    """
    plain(bucket)
    source = bucket.joinpath(MANIFEST).read_bytes()
    _write(
        bucket,
        {
            f"{MANIFEST}.v1.bak": source,
            f"{RECOVERY}/{MANIFEST}": source,
            JOURNAL: journal_document("prepared", [GERMAN, FRIDAYS], [], revision=0),
            canonical_path(GERMAN): GERMAN_MARKDOWN,
        },
    )


def hot_migration_without_copies(bucket: Path) -> None:
    """Writes `hot_migration` with the copy gone. `memory.json` is all there is of the user's memory."""
    hot_migration(bucket)
    bucket.joinpath(RECOVERY, MANIFEST).unlink()


def backup_of_the_same(bucket: Path) -> None:
    """Writes the list generation with a backup equal to it: a migration that stopped before its journal."""
    plain(bucket)
    _write(bucket, {f"{MANIFEST}.v1.bak": bucket.joinpath(MANIFEST).read_bytes()})


def backup_of_another(bucket: Path) -> None:
    """Writes the list generation with a backup of other facts: no migration may touch it."""
    plain(bucket)
    _write(bucket, {f"{MANIFEST}.v1.bak": v1_document([])})


def lead_agent(bucket: Path) -> None:
    """Writes the markdown generation's first days: `lead-agent` is the bucket of the default agent."""
    facts = {GERMAN: GERMAN_MARKDOWN, FRIDAYS: FRIDAYS_MARKDOWN}
    files = {
        canonical_path(fact_id, "lead-agent"): fact.replace(b"__default__", b"lead-agent")
        for fact_id, fact in facts.items()
    }
    _write(bucket, {MANIFEST: BEFORE, **files})


def custom_lead_agent(bucket: Path) -> None:
    """Writes `lead_agent` with a `config.yaml`: a custom agent of that name, which nothing adopts."""
    lead_agent(bucket)
    _write(bucket, {"agents/lead-agent/config.yaml": b"name: lead-agent\n"})


STORES: Final[Mapping[str, Store]] = MappingProxyType(
    {
        store.__name__: store
        for store in (
            plain,
            without_version,
            empty,
            enriched,
            loose,
            partly_refused,
            agent_beside_v1,
            agent_alone,
            agent_in_conflict,
            agent_beside_v2,
            fact_map,
            fact_map_of_an_agent,
            fact_map_without_hash,
            markdown,
            after_migration,
            changed,
            hot_before_anything,
            hot_midway,
            hot_after_facts,
            hot_after_manifest,
            hot_committed,
            hot_delete,
            hot_first_write,
            hot_first_write_done,
            hot_without_copies,
            hot_migration,
            hot_migration_without_copies,
            backup_of_the_same,
            backup_of_another,
            lead_agent,
            custom_lead_agent,
        )
    }
)
