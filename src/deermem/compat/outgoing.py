"""Values to documents. Keys without a value are left out."""

from __future__ import annotations

import json
from typing import Any

from deermem.format.manifest_json import section_document
from deermem.model.changes import Delta
from deermem.model.fact import SCHEMA_VERSION, Fact
from deermem.model.manifest import MANIFEST_VERSION, Manifest
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import SECTIONS, Summaries


def fact_document(fact: Fact) -> dict[str, Any]:
    """Returns a fact as a new dictionary; `source` is the historical string."""
    scope, source = fact.scope, fact.source
    user = scope.user.raw
    document: dict[str, Any] = {
        "id": fact.id,
        "title": fact.title,
        "content": fact.content,
        "category": fact.category,
        "topics": [*fact.topics],
        "confidence": fact.confidence,
        "createdAt": fact.created_at,
        "source": source.type if source.thread_id is None else str(source),
        "schemaVersion": SCHEMA_VERSION,
        "status": fact.status,
        "scope": {"agentName": scope.agent} if user is None else {"userId": user, "agentName": scope.agent},
        "revision": fact.revision,
        "updatedAt": fact.updated_at,
        "consolidatedFrom": [*fact.consolidated_from],
    }
    if fact.category_extension is not None:
        document["categoryExtension"] = fact.category_extension
    if fact.source_error is not None:
        document["sourceError"] = fact.source_error
    if fact.consolidated_at is not None:
        document["consolidatedAt"] = fact.consolidated_at
    if fact.last_confirmed_at is not None:
        document["lastConfirmedAt"] = fact.last_confirmed_at
    if fact.confirmation_count is not None:
        document["confirmationCount"] = fact.confirmation_count
    if fact.expected_valid_days is not None:
        document["expected_valid_days"] = fact.expected_valid_days
    for extra in fact.extra:
        document.setdefault(extra.key, json.loads(extra.json))
    return document


def summaries_document(summaries: Summaries) -> dict[str, Any]:
    """Returns `{"user": {...}, "history": {...}}` with every section."""
    groups: dict[str, Any] = {group: {} for group in SECTIONS}
    for (group, name), section in summaries.sections.items():
        groups[group][name] = section_document(section)
    return groups


def manifest_document(manifest: Manifest) -> dict[str, Any]:
    """Returns the revision and the summaries, as they open a document."""
    return {
        "version": MANIFEST_VERSION,
        "revision": manifest.revision,
        "lastUpdated": manifest.last_updated,
        **summaries_document(manifest.summaries),
    }


def snapshot_document(snapshot: Snapshot) -> dict[str, Any]:
    """Returns the whole document of a scope, facts included."""
    return {**manifest_document(snapshot.manifest), "facts": [fact_document(fact) for fact in snapshot.facts]}


def delta_document(delta: Delta) -> dict[str, Any]:
    """Returns what a commit changed; `complete` is false: it is no whole document (plan section 7)."""
    return {
        "version": delta.version,
        "revision": delta.revision,
        "lastUpdated": delta.last_updated,
        "complete": delta.complete,
        "upserted": [fact_document(fact) for fact in delta.upserted],
        "deleted": [{"id": fact_id, "agentName": agent} for agent, fact_id in delta.deleted],
    }
