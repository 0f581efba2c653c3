"""`status`: what is where, and whether it is well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deermem.cli.exits import NOT_MIGRATED, UsageError, report_of
from deermem.cli.options import UserOptions, with_options
from deermem.cli.output import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from deermem.cli.survey import Memory, Root
    from deermem.model.identity import UserId

_SHOWN_USERS = 10
_JOURNAL = {
    "unknown": "unknown",
    "none": "no transaction is under way",
    "completed": "an interrupted transaction was found and completed",
    "present": "a transaction is under way",
}


@with_options(UserOptions)
def status(
    options: UserOptions,
    all_users: Annotated[bool, typer.Option("--all-users", help="Look at every user.")] = False,
) -> None:
    """Show where the memory is and how it is.

    Looks at one user, or at all. What is wrong is reported, and the exit code says so.
    """
    from deermem.cli.absence import no_root
    from deermem.cli.survey import noted, survey_root, survey_user, survey_users
    from deermem.model.identity import UserId

    if all_users and (options.user_id is not None or options.no_user):
        raise UsageError("--all-users goes with neither --user-id nor --no-user")
    user = UserId.parse(options.user)
    with options.plain_repository() as repository:
        root = survey_root(repository.storage_root)
        users: list[UserId] | None = None
        with noted(root.problems, root.path):
            users = survey_users(repository)
        looked_at = (users or []) if all_users else [user]
        memories = [survey_user(repository, each) for each in looked_at]
    if all_users and not root.exists:
        root.problems.append(report_of(no_root(root.path)))
    problems = list(
        dict.fromkeys([*root.problems, *(problem for each in memories for problem in each.problems)])
    )
    warnings = [*root.warnings, *(warning for each in memories for warning in each.warnings)]
    warnings += _told_of_version_one(memories, options.storage_path)
    document: dict[str, Any] = {
        **root.document(),
        **({"storageClass": options.storage_class} if options.storage_class else {}),
        **({} if users is None else {"users": [each.bucket for each in users]}),
        "memories": [each.document() for each in memories],
        "warnings": warnings,
        "problems": [problem.document()["error"] for problem in problems],
    }
    rows = _root_rows(root, users)
    if options.storage_class:
        rows.insert(2, ("storage class", options.storage_class))
    if not all_users:
        rows += _memory_rows(memories[0])
    listed = memories if all_users else []
    lines = [f"{name:<14}{one_line(value)}" for name, value in rows]
    lines += ["\t".join(map(one_line, _cells(memory))) for memory in listed]
    options.out.show(document, lines=lines, drawn=lambda: _drawn(rows, listed))
    for warning in warnings:
        options.out.note(f"Warning: {warning}")
    if not (root.exists or root.problems):
        options.out.note("Nothing is stored yet: `deermem add` or `deermem init` makes the storage root.")
    options.out.exit_if(problems)


def _told_of_version_one(memories: Sequence[Memory], path: str | None) -> list[str]:
    """Says which users are not migrated, and how that is done; one sentence for many."""
    from deermem.cli.version_one import how_to_migrate, option_of

    waiting = [each for each in memories if each.version_one]
    if len(waiting) > 1:
        command = how_to_migrate("--all-users", path)
        return [f"{len(waiting)} users are of version 1, not migrated yet: {command}"]
    return [
        f"{each.version_one[0]} {NOT_MIGRATED}: {how_to_migrate(option_of(each.user), path)}"
        for each in waiting
    ]


def _root_rows(root: Root, users: Sequence[UserId] | None) -> list[tuple[str, str]]:
    state = ("exists" if root.exists else "does not exist yet") + (
        ", writable" if root.writable else ", NOT writable"
    )
    rows = [("storage root", root.path), ("", state)]
    if root.mount is not None:
        rows.append(("file system", f"{root.mount.type}, {root.mount.source} on {root.mount.point}"))
    rows.append(("probe", _probe(root)))
    rows.append(("users", _names(users) if users else _known(None if users is None else 0)))
    return rows


def _probe(root: Root) -> str:
    if root.probe.skipped or root.probe.failure:
        return f"not tried: {root.probe.skipped or root.probe.failure}"
    known = (
        ("locks", root.probe.locks),
        ("renames", root.probe.replaces),
        ("syncs", root.probe.syncs_files and root.probe.syncs_directories is not False),
    )
    return ", ".join(f"{name} {'work' if works else 'do NOT work'}" for name, works in known)


def _names(users: Sequence[UserId]) -> str:
    more = ", …" if len(users) > _SHOWN_USERS else ""
    return f"{len(users)}: {', '.join(map(str, users[:_SHOWN_USERS]))}{more}"


def _memory_rows(memory: Memory) -> list[tuple[str, str]]:
    since = f", since {memory.last_updated}" if memory.last_updated else ""
    agents = ", ".join(f"{name} {_known(count)}" for name, count in memory.agents.items())
    return [
        ("user", str(memory.user)),
        ("facts", f"{_known(memory.facts)}: {agents}" if agents else _known(memory.facts)),
        ("revision", f"{_known(memory.revision)}{since}"),
        ("journal", _JOURNAL[memory.journal]),
    ]


def _known(count: int | None) -> str:
    return "unknown" if count is None else str(count)


def _cells(memory: Memory) -> list[str]:
    return [
        str(memory.user),
        _known(memory.revision),
        str(len(memory.agents)),
        _known(memory.facts),
        memory.journal,
        str(len(memory.problems)),
    ]


def _drawn(rows: Sequence[tuple[str, str]], memories: Sequence[Memory]) -> RenderableType:
    from rich.console import Group

    from deermem.cli.drawing import Listing, properties

    if not memories:
        return properties(rows)
    columns = ("User", "Revision", "Agents", "Facts", "Journal", "Problems")
    return Group(properties(rows), Listing(columns, [_cells(memory) for memory in memories], long=0))
