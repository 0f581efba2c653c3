"""Writing: one JSON document, plain lines for pipes, or Rich on a terminal.

Everything is written as UTF-8, whatever the locale says. That the reader of a pipe goes away is no
error: what is left is dropped in silence, and the command's exit code stays its own.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

import typer

from deermem.cli.exits import ExitCode, OutputFailed, Report

if TYPE_CHECKING:
    from rich.console import RenderableType

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL_OR_LINE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# They turn the direction of the text around them, so that a person reads what is not there.
_BIDIRECTIONAL: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# JSON leaves these as they are, but terminals take some of them for commands.
_RAW_IN_JSON: Final = re.compile(r"[\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Output:
    """Writes what a command has to say in the form that the user asked for."""

    as_json: bool = False
    quiet: bool = False

    def show(
        self,
        document: Mapping[str, Any],
        *,
        lines: Iterable[str] = (),
        brief: Iterable[str] = (),
        drawn: Callable[[], RenderableType] | None = None,
    ) -> None:
        """Writes a command's result.

        Args:
            document: With `--json`.
            lines: Otherwise.
            brief: Otherwise, with `--quiet`: what a script reads, without a word more.
            drawn: Instead of `lines` on a terminal that can show it.
        """
        if self.as_json:
            write(sys.stdout, json_text(document), as_it_is=True)
        elif self.quiet:
            _write_lines(brief)
        elif drawn is not None and can_draw():
            write(sys.stdout, _rendered(drawn()))
        else:
            _write_lines(lines)

    def note(self, text: str) -> None:
        """Tells a person something that is not the result, on standard error."""
        if not (self.as_json or self.quiet):
            write(sys.stderr, f"{visible(text)}\n")

    def hint(self, text: str) -> None:
        """Tells a person what may help, on standard error; nothing if the text is empty."""
        if text:
            self.note(f"Hint: {text}")

    def report(self, report: Report) -> None:
        """Tells what went wrong: a document on standard output with `--json`, else on standard error."""
        if not self.as_json or report.type == OutputFailed.__name__:
            warn(report)
            return
        try:
            write(sys.stdout, json_text(report.document()), as_it_is=True)
        except OutputFailed:
            warn(report)

    def exit_if(self, problems: Sequence[Report]) -> None:
        """Exits with the code of the first problem; the document of `--json` has named them already."""
        if problems:
            if not self.as_json:
                for problem in problems:
                    warn(problem)
            raise typer.Exit(problems[0].code)


def warn(report: Report) -> None:
    """Writes a report on standard error, for a person."""
    # The terminal has shown ^C, and its cursor stands behind it.
    start = "\n" if report.code == ExitCode.INTERRUPTED and is_terminal(sys.stderr) else ""
    hint = f"Hint: {visible(report.hint)}\n" if report.hint else ""
    write(sys.stderr, f"{start}Error: {visible(report.message)}\n{hint}")


def json_text(document: Mapping[str, Any]) -> str:
    """Returns a document as indented JSON."""
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    return _RAW_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def visible(text: str) -> str:
    """Returns text that no terminal takes for a command: control characters are spelled out."""
    return _CONTROL.sub(_spelled_out, text)


def number_of(count: int, word: str) -> str:
    """Returns how many there are, with the word in the number that goes with it."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def shown(text: str) -> str:
    """Returns text for a terminal, where what would turn its direction is spelled out, too."""
    return _BIDIRECTIONAL.sub(_spelled_out, visible(text))


def one_line(text: str) -> str:
    """Returns text for a cell of a table: control characters and line breaks are spelled out."""
    return _CONTROL_OR_LINE.sub(_spelled_out, text)


def is_terminal(stream: TextIO | None) -> bool:
    """Tells whether a person looks at a stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def can_draw() -> bool:
    """Tells whether standard output is a terminal that can show more than lines."""
    return is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb"


def use_utf8() -> None:
    """Makes standard output and error UTF-8; what has no encoding at all is spelled out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def write(stream: TextIO | None, text: str, *, as_it_is: bool = False) -> None:
    """Writes text at once; a stream that is closed takes nothing.

    Args:
        stream: Where; on a terminal what turns the direction of text is spelled out.
        text: What.
        as_it_is: Whether a terminal gets it unchanged, too.

    Raises:
        OutputFailed: Standard output cannot be written, for another reason than that nobody reads it.
    """
    if stream is None or not text:
        return
    if not as_it_is and is_terminal(stream):
        text = _BIDIRECTIONAL.sub(_spelled_out, text)
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        silence(stream)
        unread = error.errno == errno.EPIPE or (os.name == "nt" and error.errno == errno.EINVAL)
        if unread or stream is sys.stderr:
            return
        raise OutputFailed(error.errno, error.strerror, "standard output") from None


def _write_lines(lines: Iterable[str]) -> None:
    shown = map(visible, lines) if is_terminal(sys.stdout) else lines
    write(sys.stdout, "".join(f"{line}\n" for line in shown))


def silence(stream: TextIO) -> None:
    """Leads a stream nowhere, or Python would complain at exit of what is left in its buffer."""
    with io.FileIO(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def _rendered(renderable: RenderableType) -> str:
    from rich.console import Console, detect_legacy_windows

    plain = bool(os.environ.get("NO_COLOR")) or detect_legacy_windows()
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system=None if plain else "auto",
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def _spelled_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
