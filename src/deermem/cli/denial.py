"""What the system refuses in a store: which path it is, whose, and the command that mends it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deermem.cli.exits import ExitCode, Report
from deermem.storage.ownership import closed_above, denied_owner, foreign_owner, is_writable, why_unusable

if TYPE_CHECKING:
    from deermem.cli.output import Output


def told_of_denial(report: Report, error: PermissionError, root: str, top: str) -> Report:
    """Returns the report of an error with what is denied and what helps; of a path elsewhere as it is.

    Args:
        report: What is told of the error so far.
        error: It often has the last component of a path alone.
        root: The storage root.
        top: The user's directory, where the path is looked for.
    """
    name = error.filename
    if isinstance(name, str) and os.path.isabs(name) and not _is_on_way(root, name):
        return report
    denied = _denied_path(root, top, name)
    unusable = why_unusable(root)
    owner = "" if denied is None or unusable else denied_owner(denied, root)
    message = report.message if denied is None else f"{error.strerror or 'Permission denied'}: {denied}"
    hint = unusable or owner or "`deermem status` says who may write here"
    return report._replace(message=message, hint=hint, code=ExitCode.DENIED)


def _is_on_way(root: str, path: str) -> bool:
    """Tells whether a path lies in a store, or above it."""
    return any(f"{below}{os.sep}".startswith(f"{top}{os.sep}") for below, top in ((root, path), (path, root)))


def warn_before_writing(out: Output, root: str, bucket: str) -> None:
    """Tells a person that the owner of a store will not be able to read what this process writes."""
    for path, is_root in ((root, True), (bucket, False)):
        if is_writable(path) and (text := foreign_owner(path, is_root=is_root)):
            out.note(f"Warning: {text}")
            return


def _denied_path(root: str, top: str, name: object) -> str | None:
    """Returns the path that may not be used; the error itself often has its last component alone.

    A new file cannot be found: then the first directory is named that may not be written.
    """
    if isinstance(name, str) and os.path.isabs(name):
        return closed_above(name) or name
    if closed := closed_above(top):
        return closed
    top = top if os.path.isdir(top) else root
    if not os.access(top, os.R_OK | os.X_OK):
        return top
    closed = ""
    for directory, names, files in os.walk(top):
        if not os.access(directory, os.W_OK | os.X_OK):
            closed = closed or directory
        for each in (*names, *files):
            path = os.path.join(directory, each)
            if each == name and not os.access(path, os.R_OK | (os.X_OK if each in names else 0)):
                return path
    return closed or None
