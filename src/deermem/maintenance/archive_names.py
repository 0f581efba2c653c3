"""Which names can stand side by side in an archive: two of them have to be two on every file system."""

from __future__ import annotations

from deermem.maintenance.archive import Parts, folded


class MemberNames:
    """Knows the names of one user's members."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._folders: set[str] = set()

    def objection(self, parts: Parts) -> str:
        """Adds a path below the bucket, and returns an empty text; or says why it cannot be added."""
        levels = [folded("/".join(parts[:depth])) for depth in range(1, len(parts) + 1)]
        if levels[-1] in self._names:
            return "is there twice, or differs only in case from another"
        if levels[-1] in self._folders or not self._names.isdisjoint(levels[:-1]):
            return "is a file and a directory at once"
        self._names.add(levels[-1])
        self._folders.update(levels[:-1])
        return ""
