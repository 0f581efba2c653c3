"""What the tests of backups share: archives in memory, and archives that nobody should trust."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from deermem import MemoryRepository
from deermem.format.layout import LOCK, SAFETY
from deermem.maintenance.backup import back_up
from deermem.maintenance.restore import OnConflict, RestorePlan, Selection, plan_restore, restore
from deermem.model.identity import UserId

TOOL = "deermem of a test"
EVERYTHING = Selection()


def saved(store: MemoryRepository, *user_ids: str | None, with_agents: bool = False) -> bytes:
    """Returns an archive of some users; of all that have a bucket if none is named."""
    users = [UserId.parse(user_id) for user_id in user_ids]
    if not users:
        users = [UserId(bucket, bucket) for bucket in store.list_users()]
    stream = io.BytesIO()
    reports = back_up(store.engine, users, stream, tool=TOOL, with_agents=with_agents)
    assert [problem for report in reports for problem in report.problems] == []
    return stream.getvalue()


def restored(
    store: MemoryRepository,
    archive: bytes,
    on_conflict: OnConflict = OnConflict.FAIL,
    selection: Selection = EVERYTHING,
) -> RestorePlan:
    """Restores an archive and returns what was planned."""
    plan = plan_restore(store.engine, io.BytesIO(archive), selection, on_conflict)
    restore(store, io.BytesIO(archive), plan)
    return plan


def files_below(root: Path) -> dict[str, bytes]:
    """Returns every file below a root but the locks."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


def without_safety_copies(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Returns the files that a backup of a store has."""
    return {name: data for name, data in files.items() if f"/{SAFETY}/" not in name}


def members_of(archive: bytes) -> list[tuple[str, bytes]]:
    """Returns the members of an archive as another program reads them."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = []
        for member in tar:
            stream = tar.extractfile(member)
            assert stream is not None
            found.append((member.name, stream.read()))
        return found


def packed(members: Iterable[tuple[str, bytes] | tarfile.TarInfo]) -> bytes:
    """Returns an archive of these members as another program writes it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member, io.BytesIO(bytes(member.size)))
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return gzip.compress(stream.getvalue(), 1, mtime=0)


def mended(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Makes the indexes and the manifest of members right again, as who forges an archive would."""
    header = json.loads(members[0][1])
    result, index, users = [], "", []
    files = 0
    revision = None
    for name, data in members:
        kept = data
        if name.endswith(".jsonl"):
            kept = index.encode()
            bucket = None if name.endswith("no-user.jsonl") else name.rpartition("/")[2][:-6]
            users.append({"bucket": bucket, "revision": revision, "files": files, "index": entry(name, kept)})
            index, files, revision = "", 0, None
        elif name == "deermem-backup/manifest.json":
            document = {
                "format": 1,
                "tool": header["tool"],
                "header": entry(members[0][0], members[0][1]),
                "users": users,
            }
            lines = [f'  "{key}": {json.dumps(value)}' for key, value in document.items()]
            told = document["header"]
            assert isinstance(told, dict)
            inner = ",\n".join(f'    "{key}": {json.dumps(value)}' for key, value in told.items())
            lines[2] = f'  "header": {{\n{inner}\n  }}'
            kept = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
        elif not name.startswith("deermem-backup/"):
            index += json.dumps(entry(name, data), separators=(",", ":"), ensure_ascii=False) + "\n"
            files += 1
            if name.endswith("/memory.json") and name.count("/") == 2:
                revision = json.loads(data).get("revision")
        result.append((name, kept))
    return result


def entry(name: str, data: bytes) -> dict[str, object]:
    """Describes a member as an index does."""
    return {"path": name, "size": len(data), "sha256": sha256(data).hexdigest()}


Change = Callable[[list[tuple[str, bytes]]], list[tuple[str, bytes]]]
