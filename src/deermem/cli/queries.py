"""`get`, `list` and `search`: they write nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from deermem.cli.exits import UsageError, report_of
from deermem.cli.numbers import whole_number
from deermem.cli.options import FactIdArgument, ScopeOptions, with_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from deermem.model.fact import Fact
    from deermem.model.identity import Scope
    from deermem.repository import FactPage, MemoryRepository
    from deermem.search.port import Hit
    from deermem.storage.view import Problem

_MOST: Final = 1_000
_limit: Final = whole_number("--limit", 1, _MOST)


@dataclass(frozen=True, slots=True)
class ChoiceOptions(ScopeOptions):
    """Says which facts are wanted."""

    all_agents: Annotated[bool, typer.Option("--all-agents", help="Look at every agent of the user.")] = False
    category: Annotated[str | None, typer.Option(metavar="NAME", help="Only facts of this category.")] = None
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only facts with this topic; may be repeated.")
    ] = None

    def filters(self) -> dict[str, object]:
        """Returns the filters that were given, by field."""
        given = {"category": self.category, "topics": self.topic or None}
        return {name: value for name, value in given.items() if value is not None}

    def scopes(self, repository: MemoryRepository) -> list[Scope]:
        """Returns where to look."""
        from deermem.model.identity import Scope

        if not self.all_agents:
            return [self.scope]
        if self.agent is not None:
            raise UsageError("--agent and --all-agents exclude each other")
        user = self.scope.user
        return [Scope(user, agent) for agent in repository.list_agents(user.raw)]


@with_options(ScopeOptions)
def get(options: ScopeOptions, fact_id: FactIdArgument) -> None:
    """Show one fact.

    With --quiet only its content is printed, as it is.
    """
    from deermem.cli.texts import fact_lines
    from deermem.compat import fact_document
    from deermem.errors import FactNotFoundError

    with options.repository() as repository:
        fact = repository.get_fact(options.scope, fact_id)
    if fact is None:
        raise FactNotFoundError(fact_id)

    def drawn() -> RenderableType:
        from deermem.cli.drawing import fact_panel

        return fact_panel(fact)

    options.out.show(fact_document(fact), lines=fact_lines(fact), brief=[fact.content], drawn=drawn)


@with_options(ChoiceOptions)
def list_facts(
    options: ChoiceOptions,
    limit: Annotated[
        int, typer.Option(parser=_limit, metavar="NUMBER", help="The most facts to show, at most 1,000.")
    ] = 100,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on behind what was shown before.")
    ] = None,
) -> None:
    """List facts, sorted by id.

    Files that cannot be read are left out and reported, and the exit code says so.
    """
    from deermem.compat import fact_document

    with options.repository() as repository:
        page = _page_of(repository, options, limit, cursor)
        hint = "" if page.facts or page.problems else _hint_of(repository, options)
    problems = [report_of(problem, options.storage_root) for problem in page.problems]
    document: dict[str, Any] = {"revision": page.revision}
    document["facts"] = [fact_document(fact) for fact in page.facts]
    if page.next_cursor is not None:
        document["nextCursor"] = page.next_cursor
    document["problems"] = [problem.document()["error"] for problem in problems]
    _show_facts(options, document, page.facts)
    if not (page.facts or problems):
        options.out.note("No facts.")
        options.out.hint(hint)
    if page.next_cursor is not None:
        options.out.note(f"There are more: repeat the command with --cursor {page.next_cursor}")
    options.out.exit_if(problems)


@with_options(ChoiceOptions)
def search(
    options: ChoiceOptions,
    query: Annotated[str, typer.Argument(metavar="TEXT", show_default=False)],
    limit: Annotated[
        int, typer.Option(parser=_limit, metavar="NUMBER", help="The most facts to show, at most 1,000.")
    ] = 10,
) -> None:
    """Find facts that contain a text.

    Upper and lower case are the same; the highest confidence comes first. Files that cannot be read
    are left out and reported, and the exit code says so.
    """
    from deermem.compat import fact_document

    with options.repository() as repository:
        hits, more, unread = _found(repository, options, query, limit)
        hint = "" if hits or unread else _hint_of(repository, options)
    problems = [report_of(problem, options.storage_root) for problem in unread]
    document: dict[str, Any] = {
        "query": query,
        "hits": [
            {"score": hit.score, "matchType": hit.match_type, "fact": fact_document(hit.fact)} for hit in hits
        ],
        "more": more,
        "problems": [problem.document()["error"] for problem in problems],
    }
    _show_facts(options, document, [hit.fact for hit in hits])
    if not (hits or problems):
        options.out.note("Nothing found.")
        options.out.hint(hint)
    if more:
        options.out.note(_how_to_see_more(limit))
    options.out.exit_if(problems)


def _found(
    repository: MemoryRepository, options: ChoiceOptions, query: str, limit: int
) -> tuple[list[Hit], bool, list[Problem]]:
    """Returns the hits, whether there are more, and what is wrong with files that were left out."""
    from deermem.errors import Corruption, UnsupportedFormat
    from deermem.search.substring import substring_search

    scopes, filters = options.scopes(repository), options.filters()
    # At the limit of the store itself one more cannot be asked for.
    asked = min(limit + 1, _MOST)
    problems: list[Problem] = []
    try:
        hits = repository.search_facts(query, scopes, top_k=asked, filters=filters)
    except (Corruption, UnsupportedFormat) as error:
        parts = [repository.readable_snapshot(scope) for scope in scopes]
        problems = [problem for _, found in parts for problem in found] or [error]
        hits = substring_search((snapshot for snapshot, _ in parts), query, asked, filters)
    return hits[:limit], len(hits) > limit or len(hits) == _MOST, problems


def _how_to_see_more(limit: int) -> str:
    if limit == _MOST:
        return f"There may be more than {_MOST:,}: search for a longer text, or for one category or topic"
    return f"There are more: repeat the command with --limit {min(10 * limit, _MOST)}"


def _hint_of(repository: MemoryRepository, options: ChoiceOptions) -> str:
    """Says what was looked at when nothing was found there."""
    from deermem.cli.absence import nothing_of

    scope = options.scope
    return nothing_of(repository, scope.user, None if options.all_agents else scope.agent)


def _show_facts(options: ChoiceOptions, document: dict[str, Any], facts: Sequence[Fact]) -> None:
    from deermem.cli.texts import fact_cells

    def drawn() -> RenderableType:
        from deermem.cli.drawing import fact_list

        return fact_list(facts, with_agent=options.all_agents)

    rows = (fact_cells(fact, with_agent=options.all_agents) for fact in facts)
    options.out.show(
        document,
        lines=("\t".join(cells) for cells in rows),
        brief=(fact.id for fact in facts),
        drawn=drawn if facts else None,
    )


def _page_of(
    repository: MemoryRepository, options: ChoiceOptions, limit: int, cursor: str | None
) -> FactPage:
    """Returns a part of the facts that were asked for; with all agents the cursor is `agent/id`."""
    from deermem.model.identity import is_fact_id
    from deermem.repository import FactPage

    scopes, filters = options.scopes(repository), options.filters()
    if not options.all_agents:
        if cursor is not None and not is_fact_id(cursor):
            raise UsageError("the cursor is not one of `list`", "it is the id of the last fact shown before")
        return repository.list_facts(
            scopes[0], filters=filters, limit=limit, cursor=cursor, skip_corrupt=True
        )
    start, slash, after = (cursor or "").partition("/")
    if cursor and not (slash and (not after or is_fact_id(after))):
        raise UsageError("the cursor is not one of `list --all-agents`", "it looks like `agent/id`")
    facts: list[Fact] = []
    problems: list[Any] = []
    revision = 0
    for scope in scopes:
        if scope.agent < start:
            continue
        if len(facts) == limit:
            return FactPage(tuple(facts), f"{scope.agent}/", revision, tuple(problems))
        behind = after if scope.agent == start and after else None
        page = repository.list_facts(
            scope, filters=filters, limit=limit - len(facts), cursor=behind, skip_corrupt=True
        )
        facts += page.facts
        problems += page.problems
        revision = max(revision, page.revision)
        if page.next_cursor is not None:
            return FactPage(tuple(facts), f"{scope.agent}/{page.next_cursor}", revision, tuple(problems))
    return FactPage(tuple(facts), None, revision, tuple(problems))
