"""`demo`: the main operations on a bundled sample, in a directory of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deermem.cli.exits import UsageError
from deermem.cli.options import StoreOptions, with_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from deermem.cli.tour import Tour


@with_options(StoreOptions)
def demo(options: StoreOptions) -> None:
    """Show the store at work on a bundled sample.

    Loads facts of several users, agents and languages, then adds, updates, searches and clears. It
    works in a temporary directory, or in the one of --storage-path, which must be empty and is kept.
    """
    from deermem.cli.tour import take_tour
    from deermem.repository import MemoryRepository

    with _empty_root(options) as root, MemoryRepository(root) as repository:
        tour = take_tour(repository)
    kept = options.storage_path is not None
    document = {
        "storageRoot": root,
        "kept": kept,
        "steps": [{"did": did, "outcome": list(outcome)} for did, outcome in tour.steps],
        "files": list(tour.files),
        "fact": {"path": tour.shown_path, "text": tour.shown_text},
    }
    options.out.show(document, lines=_lines(tour), drawn=lambda: _drawn(tour))
    options.out.note(f"The files are in {root}" if kept else "The temporary directory is gone again.")


@contextmanager
def _empty_root(options: StoreOptions) -> Iterator[str]:
    if options.storage_path is not None:
        root = options.storage_root
        if os.path.isdir(root) and os.listdir(root):
            raise UsageError(
                f"{root} is not empty", "the demonstration writes and clears: give it a directory of its own"
            )
        yield root
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="deermem-demo-") as root:
        yield os.path.realpath(root)


def _lines(tour: Tour) -> Iterator[str]:
    for number, (did, outcome) in enumerate(tour.steps, start=1):
        yield f"{number}. {did}"
        yield from (f"   {line}" for line in outcome)
    yield ""
    yield "The files:"
    yield from (f"   {path}" for path in tour.files)
    yield ""
    yield f"One of them, {tour.shown_path}:"
    yield ""
    yield from tour.shown_text.splitlines()


def _drawn(tour: Tour) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.text import Text

    from deermem.cli.drawing import tree
    from deermem.cli.output import visible

    parts: list[RenderableType] = []
    for number, (did, outcome) in enumerate(tour.steps, start=1):
        parts.append(Text(f"{number}. {did}", style="bold green"))
        parts.append(Padding(Text(visible("\n".join(outcome))), (0, 0, 1, 3)))
    parts.append(tree("storage root", tour.files))
    parts.append(Padding(Panel(Text(visible(tour.shown_text.rstrip())), title=Text(tour.shown_path)), (1, 0)))
    return Group(*parts)
