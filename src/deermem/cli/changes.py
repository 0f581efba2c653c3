"""`add`, `update`, `adopt` and `delete`: each is one transaction on named facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deermem.cli import numbers
from deermem.cli.exits import UsageError
from deermem.cli.options import FactIdArgument, ScopeOptions, with_options

if TYPE_CHECKING:
    from deermem.model.changes import Delta

ExpectedRevision = Annotated[
    int | None,
    typer.Option(
        parser=numbers.whole_number("--expected-revision", 1),
        metavar="NUMBER",
        help="Refuse if the fact is at another revision.",
    ),
]


@dataclass(frozen=True, slots=True)
class FieldOptions(ScopeOptions):
    """Says what a fact should be like beside its content."""

    category: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="preference correction context goal behavior identity constraint decision, or your own.",
        ),
    ] = None
    confidence: Annotated[
        float | None, typer.Option(parser=numbers.confidence, metavar="NUMBER", help="From 0 to 1.")
    ] = None
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="One line; without it, the first line of the content."),
    ] = None
    topic: Annotated[list[str] | None, typer.Option(metavar="NAME", help="May be repeated.")] = None
    source: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="manual, consolidation, import, unknown, or the id of a conversation."
        ),
    ] = None

    def fields(self) -> dict[str, Any]:
        """Returns the fields of a draft that were given."""
        given = {
            "category": self.category,
            "confidence": self.confidence,
            "title": self.title,
            "topics": list(dict.fromkeys(self.topic or ())) or None,
            "source": self.source,
        }
        return {name: value for name, value in given.items() if value is not None}


@with_options(FieldOptions)
def add(
    options: FieldOptions,
    content: Annotated[
        str, typer.Argument(metavar="CONTENT", show_default=False, help="`-` reads standard input.")
    ],
    fact_id: Annotated[
        str | None, typer.Option("--id", metavar="FACT_ID", help="The id; without it a new one.")
    ] = None,
) -> None:
    """Add a fact, unless its text is stored already.

    What is not given is: the category `context`, the confidence 0.5, the source `manual`. With --quiet
    only its id is printed.
    """
    from deermem.cli.texts import given_text
    from deermem.errors import InvalidInputError
    from deermem.model.fact import FactDraft
    from deermem.model.identity import parse_fact_id

    try:
        wanted = None if fact_id is None else parse_fact_id(fact_id)
    except InvalidInputError as error:  # the field `id` would bring a hint on ids that are there
        raise InvalidInputError("the fact id", error.reason) from None
    text = given_text("content", content, options.out)
    draft = FactDraft(**{"content": text, "id": wanted, "source": "manual", **options.fields()})
    with options.repository(writes=True) as repository:
        delta, _ = repository.create_fact(options.scope, draft)
    _show_change(options, delta, "Added")


@with_options(FieldOptions)
def update(
    options: FieldOptions,
    fact_id: FactIdArgument,
    content: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The new content; `-` reads standard input.")
    ] = None,
    no_topics: Annotated[bool, typer.Option("--no-topics", help="Remove all topics.")] = False,
    expected_revision: ExpectedRevision = None,
) -> None:
    """Change the given fields of a fact; the others stay."""
    from deermem.cli.texts import given_text

    if no_topics and options.topic:
        raise UsageError("--topic and --no-topics exclude each other")
    changes = options.fields()
    if no_topics:
        changes["topics"] = ()
    if content is not None:
        changes["content"] = given_text("content", content, options.out)
    if not changes:
        raise UsageError("there is nothing to change", "name a field, as in --confidence 0.9")
    with options.repository(writes=True) as repository:
        delta = repository.edit_fact(options.scope, fact_id, changes, expected=expected_revision)
    _show_change(options, delta, "Updated" if delta.written else "Nothing to change in")


@with_options(ScopeOptions)
def adopt(options: ScopeOptions, fact_id: FactIdArgument) -> None:
    """Make a commit of a fact that was edited by hand.

    The fact gets a new revision, so that every process sees the edit.
    """
    with options.repository(writes=True) as repository:
        delta = repository.adopt_fact(options.scope, fact_id)
    _show_change(options, delta, "Adopted")


@with_options(ScopeOptions)
def delete(
    options: ScopeOptions,
    fact_ids: Annotated[list[str], typer.Argument(metavar="FACT_ID...", show_default=False)],
    expected_revision: ExpectedRevision = None,
) -> None:
    """Delete facts: all of them or none.

    If one is not there, nothing is deleted; one that is named twice counts once.
    """
    from deermem.errors import FactNotFoundError
    from deermem.model.changes import ANYTHING, AtRevision, ChangeSet, Delete
    from deermem.model.identity import parse_fact_id

    wanted = dict.fromkeys(map(parse_fact_id, fact_ids))
    if expected_revision is not None and len(wanted) > 1:
        raise UsageError("--expected-revision goes with one fact only")
    scope = options.scope
    expected = ANYTHING if expected_revision is None else AtRevision(expected_revision)
    deletes = tuple(Delete(scope.agent, each, expected) for each in wanted)
    changes = ChangeSet(deletes=deletes)
    with options.repository(writes=True) as repository:
        for each in deletes:
            if repository.get_fact(scope, each.fact_id) is None:
                raise FactNotFoundError(each.fact_id)
        delta = repository.apply_changes(scope.user.raw, changes)
    options.out.show(
        {"revision": delta.revision, "deleted": [each.fact_id for each in deletes]},
        lines=[f"Deleted {each.fact_id}" for each in deletes],
    )


def _show_change(options: ScopeOptions, delta: Delta, done: str) -> None:
    from deermem.compat import fact_document

    (fact,) = delta.upserted
    options.out.show(
        {
            "revision": delta.revision,
            "changed": bool(delta.written),
            "fact": fact_document(fact),
        },
        lines=[f"{done} {fact.id} (revision {fact.revision})"],
        brief=[fact.id],
    )
