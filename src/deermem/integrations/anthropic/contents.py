"""What lies below `/memories` at one state of a user's memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from deermem.integrations.anthropic.paths import (
    ROOT,
    SUMMARIES,
    SUMMARY_NAMES,
    MemoryPath,
    Parts,
    fact_id_of,
    summary_of,
)
from deermem.integrations.anthropic.texts import MemoryFile
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import SectionKey


@dataclass(frozen=True, slots=True)
class SummaryFile:
    """Is a summary as the model sees it."""

    section: SectionKey
    parts: Parts
    text: str

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.text.encode())


AnyFile = MemoryFile | SummaryFile


class Contents:
    """Shows a snapshot as files and directories."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def file(self, path: MemoryPath) -> AnyFile | None:
        """Returns the file at a path; a directory is none."""
        if path.shown.endswith("/"):
            return None
        if path.in_summaries:
            section = summary_of(path.parts)
            text = "" if section is None else self.snapshot.summaries[section].summary
            return SummaryFile(section, path.parts, text) if section is not None and text else None
        fact_id = fact_id_of(path.parts)
        fact = None if fact_id is None else self.snapshot.by_id.get(fact_id)
        found = None if fact is None else MemoryFile.of(fact)
        return found if found is not None and found.parts == path.parts else None

    @cached_property
    def files(self) -> dict[Parts, AnyFile]:
        """All files by their paths."""
        files: list[AnyFile] = [MemoryFile.of(fact) for fact in self.snapshot.facts]
        files.extend(self._summaries())
        return {file.parts: file for file in files}

    def below(self, parts: Parts) -> list[AnyFile]:
        """Returns the files of a directory, sorted; none means that there is no such directory."""
        return [self.files[each] for each in sorted(self.files) if each[: len(parts)] == parts != each]

    def exists(self, path: MemoryPath) -> bool:
        """Tells whether a file or a directory lies at a path."""
        return not path.parts or path.parts in self.files or bool(self.below(path.parts))

    def file_above(self, path: MemoryPath) -> str | None:
        """Returns a file that lies where a path needs a directory."""
        ancestors = (path.parts[:depth] for depth in range(1, len(path.parts)))
        found = next((each for each in ancestors if each in self.files), None)
        return None if found is None else f"{ROOT}/{'/'.join(found)}"

    def _summaries(self) -> Iterator[SummaryFile]:
        for section, name in SUMMARY_NAMES.items():
            text = self.snapshot.summaries[section].summary
            if text:
                yield SummaryFile(section, (SUMMARIES, name), text)
