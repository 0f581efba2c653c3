"""What each command makes of a user's memory: pure functions of a snapshot, so that none can race.

A plan is computed under the user's lock on what is there at that moment, and every fact that it touches
must be unchanged since. So a `str_replace` is of the text as it is, never of one that was read before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from deermem.integrations.anthropic.answers import (
    already_exists,
    destination_exists,
    does_not_exist,
    nothing_to_edit,
    occurs_nowhere,
    occurs_often,
    refusal,
)
from deermem.integrations.anthropic.contents import AnyFile, Contents, SummaryFile
from deermem.integrations.anthropic.paths import (
    FACTS,
    ROOT,
    SUMMARY_FILES,
    MemoryPath,
    fact_id_of,
    may_be_made,
    summary_of,
)
from deermem.integrations.anthropic.texts import MemoryFile, changed_draft, moved_draft, new_draft
from deermem.integrations.anthropic.views import snippet
from deermem.model.changes import ChangeSet, Delete, Unchanged, Upsert
from deermem.model.snapshot import Snapshot
from deermem.model.summaries import Section, SummaryPatch

MAX_PLACES: Final = 20


@dataclass(frozen=True, slots=True)
class Planned:
    """Is what to change and what to answer; `text` is what the path then holds, where it is a file."""

    changes: ChangeSet
    answer: str
    text: str | None = None


Plan = Callable[[Snapshot], Planned]


def create(snapshot: Snapshot, path: MemoryPath, text: str) -> Planned:
    """Makes a new file; no file is ever replaced."""
    contents = Contents(snapshot)
    if path.is_fixed or contents.exists(path):
        raise already_exists(path.shown)
    _check_place(contents, path)
    section = summary_of(path.parts)
    changes = (
        _summary_changes(snapshot, section, text)
        if section is not None
        else ChangeSet(upserts=(Upsert(snapshot.scope.agent, new_draft(path.parts, text)),))
    )
    return Planned(changes, f"File created successfully at: {path.shown}", text)


def str_replace(snapshot: Snapshot, path: MemoryPath, old: str, new: str, limit: int) -> Planned:
    """Replaces a text that occurs once; of its surroundings the answer shows up to `limit` characters."""
    file = Contents(snapshot).file(path)
    if file is None:
        raise nothing_to_edit(path.shown)
    places = _places(file.text, old)
    if not places:
        raise occurs_nowhere(old, path.shown)
    if len(places) > 1:
        lines = dict.fromkeys(file.text.count("\n", 0, place) + 1 for place in places)
        raise occurs_often(old, lines, more=len(places) == MAX_PLACES)
    (place,) = places
    text = f"{file.text[:place]}{new}{file.text[place + len(old) :]}"
    return Planned(_edit(snapshot, file, text), snippet(text, place, limit), text)


def insert(snapshot: Snapshot, path: MemoryPath, line: int, text: str, seen: bytes | None) -> Planned:
    """Inserts lines after a line.

    Args:
        snapshot: What is there.
        path: Which file.
        line: After which line; 0 is before the first.
        text: The lines; whether the last ends in a line feed makes no difference within the file.
        seen: The digest of the text that the line number was counted in, where it is known.
    """
    file = Contents(snapshot).file(path)
    if file is None:
        raise does_not_exist(path.shown)
    if seen is not None and seen != digest(file.text):
        raise refusal(
            f"Error: {path.shown} was changed since it was viewed, so the line number may mean another "
            "line. View it again before you insert."
        )
    lines = file.text.removesuffix("\n").split("\n") if file.text else []
    if not 0 <= line <= len(lines):
        raise refusal(
            f"Error: Invalid `insert_line` parameter: {line}. "
            f"It should be within the range of lines of the file: [0, {len(lines)}]"
        )
    ended = file.text.endswith("\n") or (line == len(lines) and text.endswith("\n"))
    lines.insert(line, text.removesuffix("\n"))
    result = "\n".join(lines) + ("\n" if ended else "")
    return Planned(_edit(snapshot, file, result), f"The file {path.shown} has been edited.", result)


def delete(snapshot: Snapshot, path: MemoryPath) -> Planned:
    """Deletes a file, or a directory with all that is in it."""
    if path.is_fixed:
        raise refusal(f"Error: Cannot delete the {path.shown} directory itself")
    contents = Contents(snapshot)
    file = contents.file(path)
    files = contents.below(path.parts) if file is None else [file]
    if not files:
        raise does_not_exist(path.shown)
    answer = f"Successfully deleted {path.shown}"
    if isinstance(file, SummaryFile):
        return Planned(_patched(snapshot, file.section, ""), answer)
    return Planned(ChangeSet(deletes=tuple(_deletion(each) for each in _facts(files))), answer)


def rename(snapshot: Snapshot, old: MemoryPath, new: MemoryPath) -> Planned:
    """Moves a file or a directory; nothing is ever replaced."""
    if old.is_fixed:
        raise refusal(f"Error: Cannot rename the {old.shown} directory itself")
    if old.in_summaries or new.in_summaries:
        raise refusal("Error: Summaries cannot be renamed; create a file and delete the other.")
    contents = Contents(snapshot)
    if new.is_fixed or contents.exists(new):
        raise destination_exists(new.shown)
    file = contents.file(old)
    files = contents.below(old.parts) if file is None else [file]
    if not files:
        raise does_not_exist(old.shown)
    if new.parts[: len(old.parts)] == old.parts:
        raise refusal(f"Error: Cannot move {old.shown} into itself")
    if file is None and new.in_facts:
        raise refusal(f"Error: {ROOT}/{FACTS} has no directories")
    _check_place(contents, new if file is not None else replace(new, shown=new.shown.rstrip("/")))
    facts = _facts(files)
    moved = [moved_draft(each, (*new.parts, *each.parts[len(old.parts) :])) for each in facts]
    agent = snapshot.scope.agent
    changes = ChangeSet(
        upserts=tuple(Upsert(agent, draft) for draft in moved),
        deletes=tuple(_deletion(each) for each in facts),
    )
    return Planned(
        changes, f"Successfully renamed {old.shown} to {new.shown}", None if file is None else file.text
    )


def clear(snapshot: Snapshot) -> Planned:
    """Deletes the agent's facts and the user's summaries; it can be taken back like any clear."""
    nothing = SummaryPatch(dict.fromkeys(SUMMARY_FILES.values(), Section()))
    changes = ChangeSet(clears=frozenset([snapshot.scope.agent]), summaries=nothing, keeps="clear")
    return Planned(changes, "All memory cleared")


def digest(text: str) -> bytes:
    """Returns what stands for a text that the model saw."""
    return sha256(text.encode()).digest()


def _check_place(contents: Contents, path: MemoryPath) -> None:
    """Makes sure that a file, or a directory, may be made at a path.

    Raises:
        ToolError: Says what is in the way.
    """
    if path.shown.endswith("/"):
        raise refusal(f"Error: {path.shown} is the path of a directory, not of a file")
    above = contents.file_above(path)
    if above is not None:
        raise refusal(f"Error: {above} is a file, not a directory")
    if path.in_summaries and summary_of(path.parts) is None:
        raise refusal(f"Error: Only these files can be in {ROOT}/summaries: {', '.join(SUMMARY_FILES)}")
    if path.in_facts and ((fact_id := fact_id_of(path.parts)) is None or not may_be_made(fact_id)):
        raise refusal(
            f"Error: A file in {ROOT}/{FACTS} must be named like fact_1.md: lower-case letters, digits, '_' "
            f"and '-'. Create other files elsewhere in {ROOT}."
        )


def _places(text: str, wanted: str) -> list[int]:
    """Returns where a text occurs, overlapping occurrences included; of many, the first."""
    if not wanted:
        return [] if text else [0]
    places: list[int] = []
    place = text.find(wanted)
    while place >= 0 and len(places) < MAX_PLACES:
        places.append(place)
        place = text.find(wanted, place + 1)
    return places


def _edit(snapshot: Snapshot, file: AnyFile, text: str) -> ChangeSet:
    if isinstance(file, SummaryFile):
        return _summary_changes(snapshot, file.section, text)
    draft = changed_draft(file, text)
    return ChangeSet(upserts=(Upsert(snapshot.scope.agent, draft, Unchanged(file.fact)),))


def _summary_changes(snapshot: Snapshot, section: tuple[str, str], text: str) -> ChangeSet:
    if not text.strip():
        raise refusal("Error: A summary cannot be empty; delete the file instead.")
    return _patched(snapshot, section, text)


def _patched(snapshot: Snapshot, section: tuple[str, str], text: str) -> ChangeSet:
    changed = replace(snapshot.summaries[section], summary=text, updated_at="")
    return ChangeSet(summaries=SummaryPatch({section: changed}))


def _facts(files: list[AnyFile]) -> list[MemoryFile]:
    return [file for file in files if isinstance(file, MemoryFile)]


def _deletion(file: MemoryFile) -> Delete:
    return Delete(file.fact.scope.agent, file.fact.id, Unchanged(file.fact))
