"""The names that a store has, for completion: users, agents and facts.

A key was pressed and somebody waits, so directories are listed and little else is done: no lock is taken,
nothing is made, migrated or completed, and whatever goes wrong means that nothing is offered. Where there are
too many names to look at in that time nothing is offered either, since a part of them would pass for all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from deermem.config import read_environment
from deermem.errors import DeerMemError
from deermem.format.layout import AGENTS, FACTS, USERS, bucket_parts, fact_id_of, facts_parts, is_shard
from deermem.model.identity import (
    DEFAULT_AGENT,
    UserId,
    is_bucket_name,
    looks_encoded,
    parse_agent_name,
    stored_agent_name,
)

_MOST_NAMES: Final = 10_000
_MOST_USERS: Final = 200  # whose files are opened, for the ids that a directory's name does not tell
_HEAD: Final = 4_096
_USER_LINE: Final = re.compile(rb"^user_id: (.+)$", re.MULTILINE)


def stored_names(kind: str, said: Mapping[str, str], typed: str) -> Sequence[str]:
    """Returns what a store has that begins with what was typed, sorted.

    Args:
        kind: The option or the argument whose value is wanted, one of `KINDS`.
        said: The options of the command line and their values.
        typed: The beginning of the name.
    """
    try:
        found = KINDS[kind](said, typed)
        return sorted(name for name in found if name.startswith(typed) and _is_harmless(name))
    except (DeerMemError, OSError, ValueError):
        return ()


def _is_harmless(name: str) -> bool:
    """Tells whether a name means itself on a command line: bash does not quote what it puts in."""
    return not name.startswith("-") and all(each.isalnum() or each in "_-.@+:" for each in name)


def _users(said: Mapping[str, str], typed: str) -> Sequence[str]:
    folder = os.path.join(_root(said), USERS)
    buckets = [name for name in _folders(folder) if is_bucket_name(name)]
    begins = re.sub(r"[^A-Za-z0-9_-]", "-", typed)
    encoded = [name for name in buckets if looks_encoded(name) and name.startswith(begins)]
    if len(encoded) > _MOST_USERS:
        return ()
    known = [raw for name in encoded if (raw := _raw_id(os.path.join(folder, name), name)) is not None]
    return [name for name in buckets if not looks_encoded(name)] + known


def _agents(said: Mapping[str, str], typed: str) -> Sequence[str]:
    found = _folders(os.path.join(_bucket(said), AGENTS))
    return [name for name in found if name.startswith(typed) and stored_agent_name(name)]


def _facts(said: Mapping[str, str], typed: str) -> Sequence[str]:
    named = said.get("--agent") or DEFAULT_AGENT
    agent = DEFAULT_AGENT if named == DEFAULT_AGENT else parse_agent_name(named)
    folder = os.path.join(_bucket(said), *facts_parts(agent))
    found: list[str] = []
    seen = 0
    for shard in filter(is_shard, _folders(folder)):
        names = os.listdir(os.path.join(folder, shard))
        seen += len(names)
        if seen > _MOST_NAMES:
            return ()
        found += [each for name in names if name.startswith(typed) and (each := fact_id_of(name))]
    return found


KINDS: Final[Mapping[str, Callable[[Mapping[str, str], str], Sequence[str]]]] = {
    "--user-id": _users,
    "--agent": _agents,
    "FACT_ID": _facts,
}


def _root(said: Mapping[str, str]) -> str:
    given = said.get("--storage-path")
    # The shell has not replaced anything in the words that it hands over.
    return read_environment().storage_path(None if given is None else os.path.expandvars(given))


def _bucket(said: Mapping[str, str]) -> str:
    user = None if "--no-user" in said else said.get("--user-id", read_environment().user_id)
    return os.path.join(_root(said), *bucket_parts(UserId.parse(user)))


def _folders(path: str) -> list[str]:
    """Returns the names of the directories in a directory.

    Raises:
        ValueError: There are too many to look at.
    """
    with os.scandir(path) as entries:
        found = list(islice(entries, _MOST_NAMES + 1))
        if len(found) > _MOST_NAMES:
            raise ValueError(path)
        return [each.name for each in found if each.is_dir(follow_symlinks=False)]


def _raw_id(bucket: str, name: str) -> str | None:
    """Returns the user id that a directory was named after, if one of the facts in it tells."""
    with suppress(DeerMemError, OSError, ValueError):
        for agent in _folders(os.path.join(bucket, AGENTS)):
            folder = os.path.join(bucket, AGENTS, agent, FACTS)
            for shard in _folders(folder) if os.path.isdir(folder) else ():
                with os.scandir(os.path.join(folder, shard)) as entries:
                    files = [each.path for each in entries if each.is_file(follow_symlinks=False)]
                if files:
                    return _user_in(files[0], name)
    return None


def _user_in(path: str, bucket: str) -> str | None:
    """Returns the user id in a fact's file, if it is the one that the directory was named after."""
    with open(path, "rb") as file:
        found = _USER_LINE.search(file.read(_HEAD))
    raw = found[1].strip() if found else b""
    told = json.loads(raw) if raw.startswith(b'"') else raw.decode("utf-8")
    return told if isinstance(told, str) and told and UserId.parse(told).bucket == bucket else None
