"""`summaries show` and `summaries set`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from deermem.cli.exits import UsageError
from deermem.cli.helping import MARKUP
from deermem.cli.numbers import whole_number
from deermem.cli.options import UserOptions, with_options
from deermem.cli.output import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from deermem.model.manifest import Manifest
    from deermem.model.summaries import SectionKey

_SECTION_HELP: Final = (
    "workContext, personalContext, topOfMind, recentMonths, earlierContext or longTermBackground."
)


@with_options(UserOptions)
def show(options: UserOptions) -> None:
    """Show what is known of a user as a whole."""
    with options.repository() as repository:
        manifest = repository.get_manifest(options.user)
    _show(options, manifest, changed=False)


@with_options(UserOptions)
def set_summary(
    options: UserOptions,
    section: Annotated[str, typer.Argument(metavar="SECTION", show_default=False, help=_SECTION_HELP)],
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            show_default=False,
            help="`-` reads standard input; an empty text removes the summary.",
        ),
    ],
    expected_revision: Annotated[
        int | None,
        typer.Option(
            parser=whole_number("--expected-revision", 0),
            metavar="NUMBER",
            help="Refuse if memory.json is at another revision.",
        ),
    ] = None,
) -> None:
    """Set one summary; the others stay."""
    from deermem.cli.texts import given_text

    group, name = _key_of(section)
    summary = given_text(section, text, options.out)
    with options.repository(writes=True) as repository:
        repository.get_manifest(options.user)  # what may not be shown is refused before it is changed
        repository.update_summaries(
            options.user, {group: {name: {"summary": summary}}}, expected_manifest_revision=expected_revision
        )
        manifest = repository.get_manifest(options.user)
    _show(options, manifest, changed=True)


def _key_of(section: str) -> SectionKey:
    """Returns the group and the name of `workContext` or `user.workContext`."""
    from deermem.model.summaries import SECTION_KEYS

    for key in SECTION_KEYS:
        if section in (key[1], ".".join(key)):
            return key
    raise UsageError(f"there is no summary {section!r}", _SECTION_HELP)


def _show(options: UserOptions, manifest: Manifest, *, changed: bool) -> None:
    from deermem.compat import manifest_document

    texts = {
        ".".join(key): section.summary.strip()
        for key, section in manifest.summaries.sections.items()
        if section.summary.strip()
    }
    lines = [f"{name}\t{one_line(text)}" for name, text in texts.items()]

    def drawn() -> RenderableType:
        from deermem.cli.drawing import properties

        return properties(texts.items())

    options.out.show(
        manifest_document(manifest),
        lines=lines,
        brief=() if changed else lines,
        drawn=drawn if texts else None,
    )
    if not texts:
        options.out.note("No summaries.")


application: Final = typer.Typer(rich_markup_mode=MARKUP)
application.command("show")(show)
application.command("set")(set_summary)


@application.callback()
def _of_summaries() -> None:
    """Show or set the summaries of a user."""
