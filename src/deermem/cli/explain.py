"""`explain`: where a memory lies, who says so, and what state it is in on disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from deermem.cli.exits import report_of
from deermem.cli.options import ScopeOptions, with_options
from deermem.cli.output import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from deermem.maintenance.explain import Explanation


@with_options(ScopeOptions)
def explain(options: ScopeOptions) -> None:
    """Show where a memory lies, why there, and what is on disk.

    Paths, versions, revisions, an interrupted transaction and what becomes of it, files of version 1 that
    wait to be migrated. Nothing is changed, and no lock is taken.
    """
    from deermem.maintenance.explain import explain as look_at

    with options.plain_repository() as repository:
        found = look_at(repository.engine, options.scope)
        root = repository.storage_root
    problems = [report_of(problem, root) for problem in found.problems]
    origins = (_origin_of_root(options), _origin_of_user(options))
    rows = _rows(found, root, origins)
    document = {
        **_document(found, root, origins),
        "problems": [each.document()["error"] for each in problems],
    }
    options.out.show(
        document,
        lines=[f"{name:<14}{one_line(value)}" for name, value in rows],
        brief=[os.path.join(root, found.paths["directory"])],
        drawn=lambda: _drawn(rows),
    )
    options.out.exit_if(problems)


def _origin_of_root(options: ScopeOptions) -> str:
    if options.storage_path is not None:
        return "--storage-path"
    return "the default" if options.settings.data_dir is None else "DEERMEM_DATA_DIR"


def _origin_of_user(options: ScopeOptions) -> str:
    if options.no_user:
        return "--no-user"
    if options.user_id is not None:
        return "--user-id"
    return "DEERMEM_USER_ID" if os.environ.get("DEERMEM_USER_ID") else "the default"


def _rows(found: Explanation, root: str, origins: tuple[str, str]) -> list[tuple[str, str]]:
    user = found.scope.user
    directory = found.paths["directory"] + ("" if found.bucket_exists else " (does not exist)")
    encoded = "" if user.raw == user.bucket or user.bucket is None else f", encoded as {user.bucket}"
    rows = [
        ("storage root", f"{root} (from {origins[0]})"),
        ("user", f"{user}{encoded} (from {origins[1]})"),
        ("directory", directory),
        ("agent", str(found.scope.agent)),
        *((name, path) for name, path in found.paths.items() if name != "directory"),
        ("version", _known(found.version)),
        (
            "revision",
            f"{_known(found.revision)}{f', since {found.last_updated}' if found.last_updated else ''}",
        ),
        ("cache token", "none" if found.token is None else " ".join(map(str, found.token))),
        ("transaction", found.journal or "none is interrupted"),
        ("to migrate", ", ".join(found.legacy) or "nothing"),
        ("fact files", _known(found.facts)),
        ("fences", _fences(found)),
    ]
    if found.erased:
        rows.append(("erased", f"at revision {found.erased}"))
    return rows


def _known(value: object) -> str:
    return "none" if value is None else str(value)


def _fences(found: Explanation) -> str:
    fences = [("all", found.fences.everything)] if found.fences.everything else []
    fences += [(str(agent), revision) for agent, revision in found.fences.agents.items()]
    return ", ".join(f"{name} at revision {revision}" for name, revision in fences) or "none"


def _document(found: Explanation, root: str, origins: tuple[str, str]) -> dict[str, Any]:
    user = found.scope.user
    token = None
    if found.token is not None:
        mtime_ns, size, revision = found.token
        token = {"mtimeNs": mtime_ns, "size": size, "revision": revision}
    known = {
        "version": found.version,
        "revision": found.revision,
        "lastUpdated": found.last_updated,
        "cacheToken": token,
        "journal": found.journal,
        "facts": found.facts,
    }
    return {
        "storageRoot": root,
        "storageRootFrom": origins[0],
        "userId": user.raw,
        "userIdFrom": origins[1],
        "agentName": str(found.scope.agent),
        "exists": found.bucket_exists,
        "paths": found.paths,
        **{name: value for name, value in known.items() if value is not None},
        "toMigrate": found.legacy,
        "fences": {"everything": found.fences.everything, "agents": dict(found.fences.agents)},
        "erasedAt": found.erased,
    }


def _drawn(rows: list[tuple[str, str]]) -> RenderableType:
    from deermem.cli.drawing import properties

    return properties(rows)
