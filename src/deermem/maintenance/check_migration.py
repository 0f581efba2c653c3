"""Looks whether files of version 1 can be migrated: where not, every read and write fails at them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from deermem.errors import Corruption, DeerMemError, MigrationError, UnsupportedFormat
from deermem.format.layout import legacy_parts
from deermem.maintenance.check_scan import Scan
from deermem.maintenance.findings import Finding
from deermem.storage.bucket import Bucket, ManifestImage
from deermem.storage.legacy import (
    LegacySource,
    base_image,
    legacy_agents,
    read_agent_sources,
    read_user_source,
)
from deermem.storage.migration import plan_migration

_WAITING = frozenset(["manifest-legacy", "agent-legacy"])


def look_at_migration(scan: Scan, bucket: Bucket) -> None:
    """Makes an error of each file of version 1 that waits and cannot be migrated.

    A file that cannot be read at all is an error already, and so is a `memory.json` in its way.
    """
    waiting = {finding.path for finding in scan.findings if finding.kind in _WAITING}
    if not waiting:
        return
    with suppress(DeerMemError, OSError):
        own = read_user_source(bucket, scan.now)
        image = bucket.read_manifest() if own is None else base_image(bucket, own)
        first = [] if own is None else [own]
        if own is not None and _is_stopped(scan, bucket, image, first):
            first = []
        for agent in legacy_agents(bucket):
            if bucket.path_of(legacy_parts(agent, bucket.manifest_name)) in waiting:
                _is_stopped(scan, bucket, image, [*first, *read_agent_sources(bucket, [agent], scan.now)])


def _is_stopped(scan: Scan, bucket: Bucket, image: ManifestImage, sources: Sequence[LegacySource]) -> bool:
    """Tells whether the last of these sources cannot be migrated, and notes why."""
    reason = _why_stopped(scan, bucket, image, sources)
    if not reason:
        return False
    path = bucket.path_of(sources[-1].parts)
    message = f"is of version 1 and cannot be migrated, so that what reads or writes it fails: {reason}"
    scan.findings = [each for each in scan.findings if not (each.path == path and each.kind in _WAITING)]
    scan.findings.append(Finding("migration-stopped", path, message.replace(f"{path}: ", "")))
    return True


def _why_stopped(scan: Scan, bucket: Bucket, image: ManifestImage, sources: Sequence[LegacySource]) -> str:
    try:
        plan = plan_migration(bucket, image, sources, scan.now)
    except (MigrationError, Corruption, UnsupportedFormat) as error:
        return str(error)
    if not plan.refused:
        return ""
    more = f" (and {len(plan.refused) - 1} more)" if len(plan.refused) > 1 else ""
    return (
        f"{plan.refused[0]}{more}; mend the file, or `deermem migrate --on-invalid quarantine` keeps in "
        "another what no version-2 memory can hold"
    )
