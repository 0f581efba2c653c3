"""`export` and `import`: the memory of one agent as the historical document."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from deermem.cli.asking import confirmed
from deermem.cli.options import ScopeOptions, with_options
from deermem.cli.outfile import given_file, result_file
from deermem.cli.output import is_terminal, json_text
from deermem.cli.texts import STANDARD_INPUT
from deermem.cli.version_one import only_looking

if TYPE_CHECKING:
    from deermem.model.fact import FactDraft
    from deermem.model.snapshot import Snapshot

MAX_DOCUMENT_BYTES: Final = 300_000_000


class Balance(NamedTuple):
    """Counts what an import does with facts."""

    come: int
    change: int
    stay: int
    go: int

    def __str__(self) -> str:
        return f"{self.come} come, {self.change} change, {self.stay} stay, {self.go} go"

    @classmethod
    def of(cls, snapshot: Snapshot, drafts: Sequence[FactDraft]) -> Balance:
        """Compares what is there with what is to be there."""
        from deermem.model.fact import next_fact

        present = dict(snapshot.by_id)
        come = change = stay = 0
        for draft in drafts:
            fact = present.pop(draft.id, None)  # type: ignore[call-overload]  # ids are strings
            if fact is None:
                come += 1
            elif next_fact(draft, snapshot.scope, fact.updated_at, fact) is fact:
                stay += 1
            else:
                change += 1
        return cls(come, change, stay, len(present))


@with_options(ScopeOptions)
def export(
    options: ScopeOptions,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; `-` is standard output.")
    ] = STANDARD_INPUT,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Print the summaries and an agent's facts as one JSON document.

    Other programs and `deermem import` read it. `deermem backup` saves more, and exactly.
    """
    from deermem.cli.absence import require_root
    from deermem.compat import snapshot_document

    with options.repository() as repository:
        require_root(repository)
        snapshot = repository.snapshot(options.scope)
    document = snapshot_document(snapshot)
    if out == STANDARD_INPUT:
        options.out.show(document, lines=[json_text(document)[:-1]], brief=[json_text(document)[:-1]])
        return
    with result_file(out, force=force) as stream:
        stream.write(json_text(document).encode("utf-8"))
    path, count = os.path.abspath(out), len(snapshot.facts)
    options.out.show(
        {"path": path, "revision": snapshot.revision, "facts": count},
        lines=[f"Wrote {count} fact{'' if count == 1 else 's'} to {path}"],
        brief=[path],
    )


@with_options(ScopeOptions)
def import_document(
    options: ScopeOptions,
    file: Annotated[
        str, typer.Argument(metavar="FILE", show_default=False, help="`-` reads standard input.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would do, and do nothing.")] = False,
) -> None:
    """Replace the summaries and an agent's facts by those of a JSON document.

    It is one transaction. A fact with a known id keeps its creation time. It says what comes and goes,
    and asks; `deermem undo` takes it back.
    """
    from deermem.compat import read_document
    from deermem.model.plans import replace_all

    drafts, summaries = read_document(_read_json(file))
    with options.repository(writes=not dry_run) as repository:
        scope = options.scope
        identified = [each if each.id else each.with_id(repository.new_fact_id()) for each in drafts]
        with nullcontext() if yes and not dry_run else only_looking(repository):
            snapshot = repository.snapshot(scope)
        balance = Balance.of(snapshot, identified)
        if dry_run:
            _show(options, snapshot.revision, balance, done=False)
            return
        if yes:
            delta = repository.run(scope, lambda current: replace_all(current, identified, summaries))
        else:
            question = f"Replace the summaries and the facts of {scope} (facts: {balance})?"
            confirmed(question, "add --yes to import without a question")
            changes = replace_all(snapshot, identified, summaries)
            # What a person said yes to is what is done, or nothing.
            changes = replace(changes, expected_manifest_revision=snapshot.revision)
            delta = repository.apply_changes(scope.user.raw, changes)
    _show(options, delta.revision, balance, done=True)


def _show(options: ScopeOptions, revision: int, balance: Balance, *, done: bool) -> None:
    what = "Imported" if done else "Would import"
    options.out.show(
        {"dryRun": not done, "revision": revision, "facts": balance._asdict()},
        lines=[f"{what} into {options.scope}: {balance}; the summaries are those of the document"],
    )


def _read_json(file: str) -> dict[str, Any]:
    """Reads a JSON object from a file or from standard input.

    Raises:
        InvalidInputError: It is none, or too large.
    """
    from deermem.errors import Corruption, InvalidInputError
    from deermem.format.strict_json import load_object

    name = "standard input" if file == STANDARD_INPUT else file
    if file != STANDARD_INPUT:
        with given_file(file) as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
    elif sys.stdin is None or is_terminal(sys.stdin):
        raise InvalidInputError(name, "has no document: lead one into it, or name a file")
    else:
        data = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise InvalidInputError(name, f"is larger than {MAX_DOCUMENT_BYTES:,} bytes")
    try:
        return load_object(data, name)
    except Corruption as error:
        raise InvalidInputError(name, error.reason) from None
