"""`init` and `path`: where the memory is."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Annotated

import typer

from deermem.cli.exits import UsageError
from deermem.cli.options import ScopeOptions, StoreOptions, with_options


@with_options(StoreOptions)
def init(options: StoreOptions) -> None:
    """Make the storage root, if it is not there.

    No command needs this: the first write makes what is missing.
    """
    from deermem.storage.filesystem import LocalFileSystem

    root = options.storage_root
    existed = os.path.isdir(root)
    file_system = LocalFileSystem(root)
    file_system.make_root()
    file_system.open_root().close()
    options.out.show(
        {"storageRoot": root, "created": not existed},
        lines=[f"{'The storage root is' if existed else 'Made the storage root'} {root}"],
        brief=[root],
    )
    options.out.note("Next: deermem add 'The first thing to remember'\n      deermem list")


@with_options(ScopeOptions)
def path(
    options: ScopeOptions,
    fact_id: Annotated[
        str | None,
        typer.Argument(metavar="[FACT_ID]", show_default=False, help="Print the path of its file."),
    ] = None,
) -> None:
    """Print where the memory is.

    After an edit of a fact's file, `deermem adopt` makes it known.
    """
    if fact_id is None:
        if options.agent is not None:
            raise UsageError("--agent goes with a fact id only")
        found = options.storage_root
    else:
        found = _path_of_fact(options, fact_id)
    options.out.show({"path": found}, lines=[found], brief=[found])


def _path_of_fact(options: ScopeOptions, fact_id: str) -> str:
    """Returns where a fact's file is, also of one that cannot be read.

    Raises:
        FactNotFoundError: There is none.
        LegacyFormat: There is none yet: the fact may be in a file of version 1.
    """
    from deermem.errors import FactNotFoundError
    from deermem.format.layout import bucket_parts, fact_parts
    from deermem.migration.looking import refuse_version_one
    from deermem.model.identity import parse_fact_id

    scope, wanted = options.scope, parse_fact_id(fact_id)
    found = os.path.join(options.storage_root, *bucket_parts(scope.user), *fact_parts(scope.agent, wanted))
    with suppress(FileNotFoundError, NotADirectoryError):
        os.lstat(found)  # what may not be looked at is an error, and not absent
        return found
    with options.plain_repository() as repository:
        refuse_version_one(repository, scope)
    raise FactNotFoundError(wanted)
