"""Completion: what a shell can offer for a command line that is being typed.

`deermem completion SHELL` prints a script. At each press of the key the script starts `deermem` with the
variable `_DEERMEM_COMPLETE` and the words up to the cursor; `main` brings them here, and each line of the
answer is a word, a tab and what it means. No line at all lets the shell offer file names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib.resources import files
from typing import Annotated, Final, NamedTuple

import typer

from deermem.cli.command_tree import Node, Option
from deermem.cli.output import write


class Shell(StrEnum):
    """Is a shell that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Offer(NamedTuple):
    """Is a word that the shell may put in, and what it means."""

    word: str
    means: str


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", show_default=False, help="bash, zsh or fish.")],
) -> None:
    """Print the script that makes a shell complete commands and options.

    For bash `eval "$(deermem completion bash)"` in ~/.bashrc, for zsh the same with `zsh` in ~/.zshrc, behind
    compinit, for fish `deermem completion fish | source` in its config.fish.
    """
    write(sys.stdout, files("deermem.cli").joinpath("shells", f"completion.{shell}").read_text("utf-8"))


def print_offers(shell: str, words: Sequence[str]) -> None:
    """Prints what can stand in place of the last word.

    Args:
        shell: Which shell asks.
        words: The words after `deermem` up to the cursor, the last of them not complete and maybe empty.
    """
    offered = offers(_joined(words) if shell == Shell.BASH else list(words))
    last = words[-1] if words else ""
    cut = (
        last.partition("=")[0] + "=" if shell != Shell.BASH and last.startswith("--") and "=" in last else ""
    )
    write(sys.stdout, "".join(f"{cut}{each.word}\t{each.means}\n" for each in offered))


def _joined(words: Sequence[str]) -> list[str]:
    """Puts together `--name=value`, which bash takes for three words."""
    joined: list[str] = []
    for number, word in enumerate(words):
        if joined and joined[-1].startswith("--") and "=" in (word, words[number - 1]):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def offers(words: Sequence[str]) -> list[Offer]:
    """Returns what can stand in place of the last word; of `--name=value`, in place of the value."""
    *before, current = words or [""]
    place = _Place(Node.root())
    for word in before:
        place.go_over(word)
    found, typed = place.offers(current)
    return [each for each in found if each.word.startswith(typed)]


class _Place:
    """Is where in a command line the words have led so far."""

    def __init__(self, node: Node) -> None:
        self._enter(node)
        self._awaited: Option | None = None
        self._only_arguments = False

    def _enter(self, node: Node) -> None:
        self._node = node
        self._command = node.command()
        self._given: set[str] = set()
        self._arguments = list(self._command.arguments)

    def go_over(self, word: str) -> None:
        """Takes a complete word into account."""
        if self._awaited is not None:
            self._awaited = None
        elif word == "--":
            self._only_arguments = True
        elif word.startswith("-") and word != "-" and not self._only_arguments:
            name, equals, _ = word.partition("=")
            self._given.add(name)
            option = self._option(name)
            self._awaited = option if option is not None and option.value and not equals else None
        elif self._node.has(word):
            self._enter(self._node.below(word))
        elif self._arguments and not self._arguments[0].repeats:
            del self._arguments[0]

    def offers(self, current: str) -> tuple[list[Offer], str]:
        """Returns what may come here, and what has been typed of it."""
        if self._awaited is not None:
            return _values(self._awaited), current
        if current.startswith("-") and not self._only_arguments:
            name, equals, typed = current.partition("=")
            if equals:
                option = self._option(name)
                return (_values(option) if option is not None else []), typed
            return list(self._options()), current
        commands = [Offer(name, says) for name, says in self._node.listed()]
        return (commands or (_values(self._arguments[0]) if self._arguments else [])), current

    def _option(self, name: str) -> Option | None:
        return next((each for each in self._command.options if name in each.names), None)

    def _options(self) -> Iterator[Offer]:
        for option in self._command.options:
            if option.repeats or self._given.isdisjoint(option.names):
                yield Offer(option.long, option.help)


def _values(option: Option) -> list[Offer]:
    """Returns the values that an option or an argument may have, where they can be told."""
    known = _VALUES.get(option.long)
    return [Offer(each, "") for each in (option.choices or (known() if known else ()))]


def _categories() -> Sequence[str]:
    from deermem.model.rules import CATEGORIES

    return sorted(CATEGORIES)


def _sections() -> Sequence[str]:
    from deermem.model.summaries import SECTION_KEYS

    return [name for _, name in SECTION_KEYS]


# What Typer does not know, because these values are checked later, with a sentence of their own.
_VALUES: Final[Mapping[str, Callable[[], Sequence[str]]]] = {
    "--category": _categories,
    "--on-conflict": lambda: ("fail", "skip", "overwrite"),
    "--role": lambda: ("user", "service", "administrator"),
    "SECTION": _sections,
    "SHELL": lambda: tuple(Shell),
}
