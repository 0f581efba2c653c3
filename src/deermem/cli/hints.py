"""Hints that depend on what was typed and on what is stored."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Final

from deermem.cli.denial import told_of_denial
from deermem.cli.exits import Report
from deermem.errors import DeerMemError, FactNotFoundError

if TYPE_CHECKING:
    from deermem.cli.options import StoreOptions

_COMMAND: Final = re.compile(r"`deermem (\w+)([^`]*)`")
# What a command in a hint needs to mean the same memory; --help needs nothing.
_OF_USER: Final = frozenset(["check", "clear", "get", "list", "search", "status", "update"])
# This one wants its user named, whoever else is the default.
_NAMES_USER: Final = frozenset(["migrate"])
_OF_AGENT: Final = frozenset(["get", "list", "search", "update"])


def improved(report: Report, error: BaseException, options: StoreOptions, root: str) -> Report:
    """Returns a report whose message and hint fit the command that failed."""
    if isinstance(error, PermissionError):
        report = told_of_denial(report, error, root, os.path.join(root, *_bucket_parts(options)))
    elif isinstance(error, FactNotFoundError) and (agents := _agents_with(options, error.fact_id)):
        named = " or ".join(f"--agent {agent}" for agent in agents)
        report = report._replace(hint=f"it is a fact of the agent {' and of '.join(agents)}: add {named}")
    return report._replace(hint=spelled_out(report.hint, options))


def spelled_out(hint: str, options: StoreOptions) -> str:
    """Returns a hint whose commands have the options that say which memory is meant."""
    return _COMMAND.sub(lambda found: _repeated(found, options), hint)


def _repeated(found: re.Match[str], options: StoreOptions) -> str:
    """Returns a command of a hint with the options that say which memory is meant."""
    from deermem.cli.options import ScopeOptions, UserOptions
    from deermem.cli.version_one import option_of
    from deermem.model.identity import UserId

    name, rest = found.groups()
    given: list[str] = []
    if name in _NAMES_USER and isinstance(options, UserOptions) and not rest:
        given += [option_of(UserId.parse(options.user))]
        given += [] if options.storage_path is None else ["--storage-path", shlex.quote(options.storage_path)]
        return f"`deermem {name} {' '.join(given)}`"
    if name in _OF_USER and "--help" not in rest:
        if isinstance(options, ScopeOptions) and name in _OF_AGENT and options.agent and "--a" not in rest:
            given += ["--agent", options.agent]
        if isinstance(options, UserOptions) and options.no_user:
            given.append("--no-user")
        elif isinstance(options, UserOptions) and options.user_id is not None:
            given += ["--user-id", options.user_id]
        if options.storage_path is not None:
            given += ["--storage-path", options.storage_path]
    return f"`deermem {name}{rest}{''.join(f' {shlex.quote(each)}' for each in given)}`"


def _agents_with(options: StoreOptions, fact_id: str) -> list[str]:
    """Returns the other agents of the user that have a fact of this id."""
    from deermem.cli.absence import agents_with
    from deermem.cli.options import ScopeOptions
    from deermem.model.identity import parse_fact_id

    if not isinstance(options, ScopeOptions):
        return []
    try:
        scope = options.scope
        with options.repository() as repository:
            found = agents_with(repository, scope.user, parse_fact_id(fact_id))
    except (DeerMemError, OSError):
        return []
    return [agent for agent in found if agent != scope.agent]


def _bucket_parts(options: StoreOptions) -> tuple[str, ...]:
    from deermem.cli.options import UserOptions
    from deermem.format.layout import bucket_parts
    from deermem.model.identity import UserId

    try:
        return bucket_parts(UserId.parse(options.user)) if isinstance(options, UserOptions) else ()
    except (DeerMemError, ValueError):
        return ()
