"""A bar for what takes long, on a terminal; in a pipe there are the lines alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from deermem.cli.output import Output, can_draw, is_terminal, shown, visible, write


@dataclass(frozen=True, slots=True)
class Progress:
    """Takes steps and lines; `advance` may be called from any thread."""

    advance: Callable[[], None]
    line: Callable[[str], None]


@contextmanager
def shown_progress(out: Output, what: str, total: int) -> Iterator[Progress]:
    """Shows how far something is, with its rate and the time that is left, while the block runs.

    Args:
        out: Says whether there is a person to show it to.
        what: What is going on.
        total: How many steps there are.
    """
    if out.as_json or out.quiet or not can_draw() or total == 0:
        yield Progress(lambda: None, _write_line)
        return
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=sys.stdout,
        force_terminal=True,
        no_color=bool(os.environ.get("NO_COLOR")),
        highlight=False,
        markup=False,
        emoji=False,
    )
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance() -> None:
            speed = bar.tasks[task].speed
            bar.update(task, advance=1, rate="" if speed is None else f"{speed:.0f}/s")

        def line(text: str) -> None:
            # What is too long for the terminal is not broken: the terminal does that, and copies it whole.
            console.print(Text(shown(text)), soft_wrap=True)

        yield Progress(advance, line)


def _write_line(text: str) -> None:
    write(sys.stdout, f"{visible(text) if is_terminal(sys.stdout) else text}\n")
