"""Looks at the facts of one agent: every file, its place, and what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from deermem.errors import Corruption, InvalidInputError, UnsupportedFormat
from deermem.format.fact_envelope import NotAFactDocument, has_conflict, open_envelope
from deermem.format.fact_markdown import decode_fact
from deermem.format.layout import (
    FACT_SUFFIX,
    fact_id_of,
    fact_parts,
    facts_parts,
    is_shard,
    is_windows_device,
    shard_of,
)
from deermem.maintenance.check_names import case_twins, kind_of_stray
from deermem.maintenance.check_scan import MAX_SET_ASIDE, Parts, Scan
from deermem.maintenance.findings import Action
from deermem.model.fact import Fact
from deermem.model.identity import (
    DEFAULT_AGENT,
    AgentName,
    FactId,
    Scope,
    is_fact_id,
    parse_agent_name,
    safe_user_id,
)
from deermem.storage.fact_files import MAX_FACT_FILE_BYTES, id_in
from deermem.storage.port import Directory, EntryKind, EntryStatus, FileIdentity, FileTooLarge

# More edits than a person makes: then the store was copied, and the time stamps say nothing of each file.
_EDITS_TOLD: Final = 20
_COARSE_NS: Final = 2_000_000_000
_TICK_NS: Final = 20_000_000
_SECOND: Final = 1_000_000_000


class Wandered(NamedTuple):
    """Is a readable fact that lies in a place that is not its own."""

    parts: Parts
    fact: Fact
    data: bytes
    kind: str


@dataclass(slots=True)
class AgentScan:
    """Collects what is seen of one agent until all of it is known.

    `ids` are those of all files in their places, `taken` those whose place a repair leaves as it is.
    """

    scope: Scope
    ids: set[FactId] = field(default_factory=set)
    taken: set[FactId] = field(default_factory=set)
    wandered: list[Wandered] = field(default_factory=list)
    edited: list[Parts] = field(default_factory=list)


def scan_facts(scan: Scan, facts: Directory, agent: AgentName) -> None:
    """Looks at everything in the `facts` directory of an agent."""
    found = AgentScan(Scope(scan.user, agent))
    top = facts_parts(agent)
    for name, status in sorted(facts.statuses().items()):
        if not is_shard(name):
            _look_at_other(scan, found, facts, (*top, name), status)
        elif scan.is_expected((*top, name), status, EntryKind.DIRECTORY):
            with scan.noting((*top, name)), facts.child(name) as shard:
                _scan_shard(scan, found, shard, (*top, name))
    _place_wandered(scan, found)
    for twins in case_twins(found.ids):
        others = ", ".join(twins[1:])
        scan.add("case-twins", fact_parts(agent, FactId(twins[0])), f"differs only in case from {others}")
    _tell_edits(scan, found)


def _scan_shard(scan: Scan, found: AgentScan, shard: Directory, place: Parts) -> None:
    for name, status in shard.statuses().items():
        fact_id = fact_id_of(name)
        parts = (*place, name)
        if fact_id is None or shard_of(fact_id) != place[-1]:
            _look_at_other(scan, found, shard, parts, status)
        elif scan.is_expected(parts, status, EntryKind.FILE):
            _read_fact(scan, found, shard, parts, fact_id)


def _read_fact(scan: Scan, found: AgentScan, shard: Directory, parts: Parts, fact_id: FactId) -> None:
    """Reads a file that has a fact's name in that fact's shard."""
    try:
        read = scan.read(shard, parts, MAX_FACT_FILE_BYTES)
    except FileTooLarge:
        _note_too_large(scan, shard, parts)
        return
    if read is None:
        return
    data, identity = read
    scan.fact_files += 1
    found.ids.add(fact_id)
    try:
        fact = decode_fact(data, path="", scope=found.scope, fact_id=fact_id)
    except UnsupportedFormat as error:
        found.taken.add(fact_id)
        scan.see_any_in(data)
        scan.add("fact-newer", parts, f"has schema {error.found}; this release knows {error.supported}")
        return
    except Corruption as error:
        scan.see_any_in(data)
        _diagnose(scan, found, parts, data, identity, error)
        return
    scan.facts += 1
    found.taken.add(fact_id)
    _compare_with_manifest(scan, found, parts, fact, identity)
    if is_windows_device(fact_id) and not scan.windows_names:
        scan.add("device-name", parts, "has the name of a device on Windows, and cannot be read there")


def _compare_with_manifest(
    scan: Scan, found: AgentScan, parts: Parts, fact: Fact, identity: FileIdentity
) -> None:
    scan.see(fact.revision)
    image = scan.image
    if image is None or image.identity is None:
        return
    if fact.revision > image.manifest.revision:
        message = f"is at revision {fact.revision}, beyond {image.manifest.revision} of {scan.manifest_name}"
        scan.add("fact-ahead", parts, message, Action.RAISE, evidence=identity)
    written, now = identity.mtime_ns, image.identity.mtime_ns
    coarse = written % _SECOND == 0 or now % _SECOND == 0
    if written > now + (_COARSE_NS if coarse else _TICK_NS):
        found.edited.append(parts)


def _note_too_large(scan: Scan, directory: Directory, parts: Parts) -> None:
    scan.fact_files += 1
    with scan.noting(parts):
        identity = directory.identify(parts[-1])
        action = Action.SET_ASIDE if identity.size <= MAX_SET_ASIDE else Action.NONE
        message = f"has {identity.size:,} bytes; a fact has at most {MAX_FACT_FILE_BYTES:,}"
        scan.add("fact-too-large", parts, message, action, evidence=identity)


def _diagnose(
    scan: Scan, found: AgentScan, parts: Parts, data: bytes, identity: FileIdentity, error: Corruption
) -> None:
    """Says why a file is no fact of its place, as exactly as it can be known."""
    kind = "fact-corrupt"
    text = data.decode("utf-8", "replace")
    names = _names_in(text)
    if has_conflict(text):
        kind = "fact-conflict-markers"
    elif names is not None:
        kind = _kind_of_foreign(names, found.scope, parts[-1])
    fact = None if kind != "fact-other-id" or names is None else _decoded(data, found.scope, names.get("id"))
    if fact is not None:
        found.wandered.append(Wandered(parts, fact, data, kind))
        return
    hint = f" ({error.hint})" if error.hint else ""
    scan.add(kind, parts, f"{error.reason}{hint}", Action.SET_ASIDE, evidence=identity)


def _names_in(text: str) -> Mapping[str, str | None] | None:
    """Returns what the front matter says of id, user and agent; `None` where it cannot be read."""
    from deermem.format import yaml_nodes, yaml_tree

    try:
        entries = yaml_tree.parse_front_matter(open_envelope(text).front).entries
        return {
            name: node.string()
            for name in ("id", "user_id", "agent_name")
            if isinstance(node := entries.get(name), yaml_nodes.Scalar)
        }
    except (NotAFactDocument, yaml_nodes.UnreadableYaml):
        return None


def _kind_of_foreign(names: Mapping[str, str | None], scope: Scope, file_name: str) -> str:
    try:
        user = names.get("user_id")
        if (None if user is None else safe_user_id(user)) != scope.user.bucket:
            return "fact-foreign-user"
        agent = names.get("agent_name")
        if agent != scope.agent and (agent == DEFAULT_AGENT or parse_agent_name(agent) != scope.agent):
            return "fact-foreign-agent"
    except InvalidInputError:
        return "fact-corrupt"
    fact_id = names.get("id")
    return "fact-corrupt" if fact_id is None or fact_id + FACT_SUFFIX == file_name else "fact-other-id"


def _decoded(data: bytes, scope: Scope, fact_id: str | None) -> Fact | None:
    if not is_fact_id(fact_id):
        return None
    try:
        return decode_fact(data, path="", scope=scope, fact_id=FactId(fact_id or ""))
    except (Corruption, UnsupportedFormat):
        return None


def _look_at_other(
    scan: Scan, found: AgentScan, directory: Directory, parts: Parts, status: EntryStatus
) -> None:
    """Looks at an entry that is no fact by its name, or lies where that fact does not belong."""
    name = parts[-1]
    kind = kind_of_stray(name)
    if status.kind != EntryKind.FILE:
        scan.add("stray-entry", parts, f"is a {status.kind} that is not the store's")
        return
    size = 0 if status.identity is None else status.identity.size
    action = Action.SET_ASIDE if size <= MAX_SET_ASIDE else Action.NONE
    if kind is not None:
        what = "a temporary file" if kind == "temporary-file" else "a copy that a sync client made"
        scan.add(kind, parts, f"looks like {what}; reads ignore it", action, evidence=status.identity)
        return
    data = None
    if name.endswith(FACT_SUFFIX) and size <= MAX_FACT_FILE_BYTES:
        read = scan.read(directory, parts, MAX_FACT_FILE_BYTES)
        data = None if read is None else read[0]
    if data is None or id_in(data) is None:
        scan.add("stray-entry", parts, "is no file of the store; reads ignore it")
        return
    scan.fact_files += 1
    fact = _decoded(data, found.scope, id_in(data))
    if fact is not None:
        kind = "fact-misplaced" if fact.id + FACT_SUFFIX == name else "sync-copy"
        found.wandered.append(Wandered(parts, fact, data, kind))
    else:
        scan.see_any_in(data)
        message = "is a fact document that cannot be read, in a place that is no fact's"
        scan.add("fact-misplaced", parts, message, action, evidence=status.identity)


def _place_wandered(scan: Scan, found: AgentScan) -> None:
    """Says of each fact that lies in another's place whether it can go to its own."""
    for parts, fact, data, kind in sorted(found.wandered, key=lambda each: each.parts):
        scan.see(fact.revision)
        place = fact_parts(found.scope.agent, fact.id)
        evidence = hash(data)
        if fact.id in found.taken:
            told = "sync-copy" if kind == "sync-copy" else "fact-duplicate"
            message = f"is a second document of the fact {fact.id}, which lies in shard {place[-2]}"
            scan.add(told, parts, message, Action.SET_ASIDE, evidence=evidence)
            continue
        found.taken.add(fact.id)
        told = "fact-misplaced" if kind == "sync-copy" else kind
        message = f"is the fact {fact.id}, which belongs into shard {place[-2]}"
        scan.add(told, parts, message, Action.MOVE, evidence=evidence, target=place)


def _tell_edits(scan: Scan, found: AgentScan) -> None:
    if len(found.edited) > _EDITS_TOLD:
        message = (
            f"{len(found.edited):,} facts are newer than {scan.manifest_name}, as after a copy or a restore"
        )
        scan.add("fact-edited", facts_parts(found.scope.agent), message)
        return
    for parts in found.edited:
        message = f"is newer than {scan.manifest_name}: edited by hand? `deermem adopt` makes it a commit"
        scan.add("fact-edited", parts, message)
