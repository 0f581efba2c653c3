"""The commands as work on a store, and what the model is told of what goes wrong."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from deermem.errors import (
    CommitInDoubt,
    InvalidInputError,
    LockTimeout,
    MemoryConflictError,
    MemoryCorruptionError,
    RevisionConflict,
)
from deermem.integrations.anthropic import plans
from deermem.integrations.anthropic.answers import no_such_path, refusal
from deermem.integrations.anthropic.contents import Contents
from deermem.integrations.anthropic.paths import Parts, parse_path
from deermem.integrations.anthropic.views import file_view, listing
from deermem.model.changes import ChangeSet
from deermem.model.identity import Scope
from deermem.model.rules import check_utf8
from deermem.repository import MemoryRepository
from deermem.storage.view import View

MAX_SEEN: Final = 1_000
MAX_CHARACTERS: Final = 30_000

Work = Callable[[MemoryRepository], str]

_log = logging.getLogger(__name__)


class Memories:
    """Makes work of commands, and remembers what the model saw: line numbers are of that text.

    Args:
        scope: The user and the agent whose memory it is.
        max_characters: How much of files and directories one answer shows.

    Raises:
        InvalidInputError: `max_characters` is no positive number.
    """

    def __init__(self, scope: Scope, max_characters: int) -> None:
        if type(max_characters) is not int or max_characters < 1:
            raise InvalidInputError("max_characters", "must be a whole number of at least 1")
        self._scope = scope
        self._limit = max_characters
        self._seen: OrderedDict[Parts, bytes] = OrderedDict()

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> Work:
        """Lists a directory or shows the lines of a file."""
        path, view_range = parse_path(_given(command, "path")), _given(command, "view_range")

        def work(repository: MemoryRepository) -> str:
            contents = Contents(repository.snapshot(self._scope))
            file = contents.file(path)
            if file is not None:
                shown = file_view(path.shown, file.text, view_range, self._limit)
                self._saw(path.parts, file.text)
                return shown
            files = contents.below(path.parts)
            if not files and path.parts:
                raise no_such_path(path.shown)
            sizes = {file.parts[len(path.parts) :]: file.size for file in files}
            return listing(path.shown, sizes, view_range, self._limit)

        return work

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> Work:
        """Makes a new file."""
        path, text = parse_path(_given(command, "path")), _text(command, "file_text")
        return self._change(lambda snapshot: plans.create(snapshot, path, text), path.parts)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> Work:
        """Replaces a text that occurs once in a file."""
        path, old = parse_path(_given(command, "path")), _text(command, "old_str")
        new = _text(command, "new_str") if _given(command, "new_str") is not None else ""
        return self._change(
            lambda snapshot: plans.str_replace(snapshot, path, old, new, self._limit), path.parts
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> Work:
        """Inserts lines into a file."""
        path, text = parse_path(_given(command, "path")), _text(command, "insert_text")
        line = _given(command, "insert_line")
        if type(line) is not int:
            raise refusal("Error: The parameter `insert_line` is missing or is no whole number.")
        return self._change(
            lambda snapshot: plans.insert(snapshot, path, line, text, self._seen.get(path.parts)), path.parts
        )

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> Work:
        """Deletes a file or a directory."""
        path = parse_path(_given(command, "path"))
        return self._change(lambda snapshot: plans.delete(snapshot, path), path.parts)

    def move(self, command: BetaMemoryTool20250818RenameCommand) -> Work:
        """Moves a file or a directory."""
        old, new = parse_path(_given(command, "old_path")), parse_path(_given(command, "new_path"))
        return self._change(lambda snapshot: plans.rename(snapshot, old, new), new.parts)

    def clear(self) -> Work:
        """Deletes the agent's facts and the user's summaries."""
        return self._change(plans.clear, ())

    def _change(self, plan: plans.Plan, parts: Parts) -> Work:
        def work(repository: MemoryRepository) -> str:
            plan(repository.snapshot(self._scope))  # what is refused takes no lock and makes no directory
            try:
                planned = self._commit(repository, plan)
            except RevisionConflict:
                # Only an edit by hand is not seen under the lock; after a reload it is.
                repository.reload(self._scope, accept_root=False)
                planned = self._commit(repository, plan)
            self._saw(parts, planned.text)
            return planned.answer

        return work

    def _commit(self, repository: MemoryRepository, plan: plans.Plan) -> plans.Planned:
        made: list[plans.Planned] = []

        def decide(view: View) -> ChangeSet:
            made.append(plan(view.snapshot(self._scope)))
            return made[-1].changes

        repository.commit(self._scope.user, decide)
        return made[-1]

    def _saw(self, parts: Parts, text: str | None) -> None:
        self._seen.pop(parts, None)
        if text is not None:
            self._seen[parts] = plans.digest(text)
        while len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)


@contextmanager
def told() -> Iterator[None]:
    """Turns what goes wrong inside the block into a result that the model can act on.

    Raises:
        ToolError: Has a text without a path of the machine.
    """
    try:
        yield
    except InvalidInputError as error:
        raise refusal(f"Error: {error}") from error
    except MemoryConflictError as error:
        raise refusal("Error: The memory was changed meanwhile. View it again and retry.") from error
    except MemoryCorruptionError as error:
        _log.warning("a memory cannot be read: %s", error)
        raise refusal(
            "Error: The stored memory is damaged and was not changed; it must be mended."
        ) from error
    except LockTimeout as error:
        raise refusal("Error: The memory is busy. Try again.") from error
    except OSError as error:
        _log.warning("a memory could not be read or written: %s", error)
        doubt = "may have been saved" if isinstance(error, CommitInDoubt) else "was not saved"
        raise refusal(f"Error: The disk failed, and the change {doubt}. View the memory.") from error


def _given(command: Any, name: str) -> Any:
    """Returns a parameter; the SDK does not check that the model gave it."""
    return getattr(command, name, None)


def _text(command: Any, name: str) -> str:
    value = _given(command, name)
    if not isinstance(value, str):
        raise refusal(f"Error: The parameter `{name}` is missing or is no text.")
    with told():  # or the answer that quotes it could not be sent
        check_utf8(name, value)
    return value
