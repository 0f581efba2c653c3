"""What names say: temporary files, copies of sync clients, ids that collide where case is ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_TEMPORARY: Final = re.compile(
    r".*\.(?:tmp|temp|swp|swo|part|bak~)|.*\.tmp[.-][^/]*|\.#.*|\.~.*|~\$.*|~.*\.tmp|#.*#|.*~"
    r"|\.goutputstream-.*|\.syncthing\..*",
    re.IGNORECASE | re.DOTALL,
)
_SYNC_COPY: Final = re.compile(
    r".*\.sync-conflict-.*|.*\([^)]*conflict[^)]*\).*|.*[ _-]conflict(?:ed)?[ _-].*|.* \d+\.[a-z]+"
    r"|.* ?\(\d+\)\.[a-z]+|.* (?:- )?copy(?: \d+)?\.[a-z]+|.*\.orig",
    re.IGNORECASE | re.DOTALL,
)


def kind_of_stray(name: str) -> str | None:
    """Returns the kind of finding that a name stands for; `None` for a name that says nothing."""
    if _TEMPORARY.fullmatch(name):
        return "temporary-file"
    return "sync-copy" if _SYNC_COPY.fullmatch(name) else None


def begins_as_ours(name: str, manifest_name: str) -> bool:
    """Tells whether a name in a directory that is shared with the host was made of one of ours."""
    stem = manifest_name.removesuffix(".json")
    bare = name.lstrip(".~#$")
    return re.match(rf"(?:{re.escape(stem)}|memory)[. (~_-]", bare) is not None


def case_twins(names: Iterable[str]) -> list[list[str]]:
    """Returns the groups of names that differ only in case, each sorted."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.casefold(), []).append(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]
