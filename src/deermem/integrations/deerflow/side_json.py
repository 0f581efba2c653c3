"""DeerFlow's two side files: hints for the eviction of facts, in the formats that DeerFlow reads and writes.

    fact-usage.json       {fact id: {accessHeat, accessCount, lastAccessedAt}}
    eviction-audit.json   [{occurredAt, reason, policyVersion, maxFacts, reservedCorrectionSlots,
                            evicted: [{factId, category, score, components}],
                            shadow?: {policyVersion, wouldEvict, disagrees}}, ...], the newest last

Pure. Neither is canonical: what cannot be read counts as empty, entry by entry.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

USAGE: Final = "fact-usage.json"
AUDIT: Final = "eviction-audit.json"

Usage = dict[str, dict[str, Any]]
Events = list[dict[str, Any]]

_DAY: Final = 86_400


def decode(data: bytes | None, kind: type[dict[Any, Any] | list[Any]]) -> tuple[Any, bool]:
    """Reads a side file; tells also whether it was readable. What is not there is empty and readable."""
    if data is None:
        return kind(), True
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return kind(), False
    return (value, True) if isinstance(value, kind) else (kind(), False)


def encode(value: Usage | Events) -> bytes:
    """Returns the bytes of a side file."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace")


def usage_entries(value: Mapping[Any, Any]) -> Usage:
    """Returns the entries that are objects."""
    return {str(key): dict(entry) for key, entry in value.items() if isinstance(entry, Mapping)}


def with_accesses(
    usage: Usage, fact_ids: Iterable[str], present: Collection[str], now: datetime, half_life_days: float
) -> Usage:
    """Returns the usage after facts were found by a search; what is not present any more is left out.

    Heat halves with every half-life since the last access, and each access adds 1.
    """
    kept = {fact_id: entry for fact_id, entry in usage.items() if fact_id in present}
    for fact_id in fact_ids:
        if fact_id in present:
            before = kept.get(fact_id, {})
            kept[fact_id] = {
                "accessHeat": _heat(before, now, half_life_days) + 1.0,
                "accessCount": _count(before) + 1,
                "lastAccessedAt": stamp(now),
            }
    return kept


def _heat(entry: Mapping[str, Any], now: datetime, half_life_days: float) -> float:
    heat, last = entry.get("accessHeat"), _moment(entry.get("lastAccessedAt"))
    if isinstance(heat, bool) or not isinstance(heat, int | float) or last is None:
        return 0.0
    if not math.isfinite(heat) or heat < 0:
        return 0.0
    days = max(0.0, (now - last).total_seconds() / _DAY)
    return float(heat) * math.pow(2, -days / half_life_days)


def _count(entry: Mapping[str, Any]) -> int:
    count = entry.get("accessCount")
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else 0


def _moment(text: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def stamp(moment: datetime) -> str:
    """Returns a moment as DeerFlow writes it."""
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def eviction_event(decision: Any, shadow: Any, max_facts: int, now: datetime) -> dict[str, Any]:
    """Returns the audit's entry for a decision of DeerFlow's eviction policy.

    `shadow` is what the other policy would have done, or `None`.
    """
    event: dict[str, Any] = {
        "occurredAt": stamp(now),
        "reason": "capacity",
        "policyVersion": decision.policy,
        "maxFacts": max_facts,
        "reservedCorrectionSlots": decision.reserved_correction_slots,
        "evicted": [
            {
                "factId": item.fact_id,
                "category": item.category,
                "score": item.score,
                "components": dict(item.components),
            }
            for item in decision.evicted
        ],
    }
    if shadow is not None:
        event["shadow"] = {
            "policyVersion": shadow.policy,
            "wouldEvict": sorted({item.fact_id for item in shadow.evicted}),
        }
        _compare(event)
    return event


def without_facts(events: Iterable[Any], gone: Collection[str]) -> Events:
    """Returns an audit that does not name these facts; entries that name no other go."""
    kept = []
    for event in events:
        if not isinstance(event, Mapping) or not isinstance(event.get("evicted"), list):
            continue
        evicted = [
            item
            for item in event["evicted"]
            if isinstance(item, Mapping)
            and isinstance(item.get("factId"), str)
            and item["factId"] not in gone
        ]
        if not evicted:
            continue
        cleaned = {**event, "evicted": evicted}
        shadow = cleaned.pop("shadow", None)
        if isinstance(shadow, Mapping) and isinstance(shadow.get("wouldEvict"), list):
            named = [each for each in shadow["wouldEvict"] if isinstance(each, str) and each not in gone]
            cleaned["shadow"] = {**shadow, "wouldEvict": named}
            _compare(cleaned)
        kept.append(cleaned)
    return kept


def _compare(event: dict[str, Any]) -> None:
    evicted = {item["factId"] for item in event["evicted"]}
    event["shadow"]["disagrees"] = evicted != set(event["shadow"]["wouldEvict"])
