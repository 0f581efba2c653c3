#!/usr/bin/env python3
"""Makes version-1 memory version 2: `deermem migrate` for a checkout, where no extra need be installed.

    PYTHONPATH=. python scripts/migrate_memory_markdown.py --all-users --dry-run
    PYTHONPATH=. python scripts/migrate_memory_markdown.py --all-users

Needs PyYAML alone. The package is that of this checkout, installed or not.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from deermem.config import read_environment
from deermem.errors import DeerMemError, InvalidInputError
from deermem.migration import MAX_JOBS, Account, MigrationRequest
from deermem.repository import MemoryRepository
from deermem.storage.opening import has_root

FAILED = 1
INVALID = 2
INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the options, which are those of `deermem migrate`."""
    options = argparse.ArgumentParser(
        description="Make version-1 memory version 2. Stop the old application and take a snapshot of the "
        "storage root first.",
        allow_abbrev=False,
    )
    options.add_argument("--all-users", action="store_true", help="every user that is stored")
    options.add_argument(
        "--user-id", action="append", default=[], metavar="ID", help="a user; may be repeated"
    )
    options.add_argument("--no-user", action="store_true", help="the memory without a user, in the root")
    options.add_argument(
        "--storage-path", metavar="DIR", help="the storage root [DEERMEM_DATA_DIR, else ~/.deermem]"
    )
    options.add_argument(
        "--dry-run", action="store_true", help="only say what would be done; nothing is written"
    )
    options.add_argument("--json", action="store_true", help="print one JSON document, also of an error")
    options.add_argument(
        "--on-invalid",
        choices=("fail", "quarantine"),
        default="fail",
        help="whether a value that cannot be migrated stops its user or is kept in a file [fail]",
    )
    options.add_argument(
        "--adopt-lead-agent",
        action="store_true",
        help="move the facts of an agent lead-agent without config.yaml to the default agent",
    )
    options.add_argument(
        "--jobs", type=int, default=4, metavar="NUMBER", help=f"how many users at a time, 1 to {MAX_JOBS} [4]"
    )
    options.add_argument(
        "--rollback", action="store_true", help="put the version-1 files back from their backups"
    )
    return options


def run(arguments: Sequence[str]) -> int:
    """Migrates, and returns the exit code."""
    given = parser().parse_args(arguments)
    if find_spec("yaml") is None:
        report(given.json, "ModuleNotFoundError", "the Python module yaml is missing: pip install PyYAML")
        return FAILED
    try:
        request = MigrationRequest(
            all_users=given.all_users,
            user_ids=tuple(given.user_id),
            no_user=given.no_user,
            rollback=given.rollback,
            dry_run=given.dry_run,
            on_invalid=given.on_invalid,
            adopt_lead_agent=given.adopt_lead_agent,
            jobs=given.jobs,
        )
        settings = read_environment()
        root = os.path.realpath(settings.storage_path(given.storage_path))
        with MemoryRepository(
            root, lock_timeout=settings.lock_timeout, manifest_filename=settings.manifest_filename
        ) as repository:
            if not has_root(repository.engine.file_system):
                report(given.json, "UsageError", f"nothing is stored at {root}")
                return INVALID
            return tell(request, repository, as_json=given.json)
    except KeyboardInterrupt:
        report(given.json, "KeyboardInterrupt", "interrupted")
        return INTERRUPTED
    except InvalidInputError as error:
        report(given.json, type(error).__name__, f"{error.field} {error.reason}")
        return INVALID
    except (DeerMemError, OSError) as error:
        report(given.json, type(error).__name__, str(error))
        return FAILED


def tell(request: MigrationRequest, repository: MemoryRepository, *, as_json: bool) -> int:
    """Does what is asked for and says so, user by user."""
    account = Account(request, repository.storage_root)
    if not as_json:
        write(account.first_line())
    users = request.users(repository)
    told: list[dict[str, Any]] = []
    for outcome in request.outcomes(repository, users):
        if as_json:
            told.append(account.document(outcome))
        else:
            write(*account.lines(outcome))
    if as_json:
        write(json.dumps(account.whole_document(told), ensure_ascii=True, indent=2))
    else:
        write(account.last_line())
        if account.hint():
            sys.stderr.write(f"Hint: {account.hint()}\n")
    return FAILED if account.failed else 0


def report(as_json: bool, kind: str, message: str) -> None:
    """Says what kept the run from beginning."""
    if as_json:
        write(json.dumps({"error": {"type": kind, "message": message}}, indent=2))
    else:
        sys.stderr.write(f"Error: {message}\n")


def write(*lines: str) -> None:
    """Writes lines at once, so that a log shows how far it is."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
