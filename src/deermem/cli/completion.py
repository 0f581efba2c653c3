"""Completion: what a shell can offer for a command line that is being typed.

`deermem completion SHELL` prints a script. At each press of the key the script starts `deermem` with the
variable `_DEERMEM_COMPLETE` and the words up to the cursor; `main` brings them here, and each line of the
answer is a word, a tab and what it means. No line at all lets the shell offer file names.
"""

from __future__ import annotations

import shlex
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
    typed = _joined(words) if shell == Shell.BASH else list(words)
    name, equals, value = (typed or [""])[-1].partition("=")
    is_value = bool(equals) and name.startswith("--")
    before = f"{name}=" if is_value and shell != Shell.BASH else ""
    known = _length_before((value if is_value else name), words) if shell == Shell.BASH else 0
    write(sys.stdout, "".join(f"{before}{each.word[known:]}\t{each.means}\n" for each in offers(typed)))


def _joined(words: Sequence[str]) -> list[str]:
    """Puts together what bash takes for several words: `--name=value`, and the value `alice@example.com`."""
    joined: list[str] = []
    for number, word in enumerate(words):
        broken = {word, words[number - 1]}
        is_value = any(each.startswith("--") for each in joined[-2:])
        if joined and ((joined[-1].startswith("--") and "=" in broken) or (is_value and broken & _BREAKS)):
            joined[-1] += word
        else:
            joined.append(word)
    return [*map(_unquoted, joined[:-1]), *joined[-1:]]


def _unquoted(word: str) -> str:
    """Takes away the quotes that bash leaves around a word."""
    try:
        (plain,) = shlex.split(word)
    except ValueError:
        return word
    return plain


def _length_before(typed: str, words: Sequence[str]) -> int:
    """Returns how much of a joined word bash keeps: what is before the last `@`, or up to the last `:`."""
    last = words[-1] if words else ""
    if last == typed or not _BREAKS & set(typed):
        return 0
    kept = len(typed) - (0 if last in _BREAKS else len(last))
    return kept - 1 if typed[kept - 1] == "@" else kept


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
        self._said: dict[str, str] = {}
        self._only_arguments = False

    def _enter(self, node: Node) -> None:
        self._node = node
        self._command = node.command()
        self._given: set[str] = set()
        self._arguments = list(self._command.arguments)

    def go_over(self, word: str) -> None:
        """Takes a complete word into account."""
        if self._awaited is not None:
            self._said[self._awaited.long] = word
            self._awaited = None
        elif word == "--":
            self._only_arguments = True
        elif word.startswith("-") and word != "-" and not self._only_arguments:
            name, equals, value = word.partition("=")
            self._given.add(name)
            option = self._option(name)
            if option is not None:
                self._said[option.long] = value
            self._awaited = option if option is not None and option.value and not equals else None
        elif self._node.has(word):
            self._enter(self._node.below(word))
        elif self._arguments and not self._arguments[0].repeats:
            del self._arguments[0]

    def offers(self, current: str) -> tuple[list[Offer], str]:
        """Returns what may come here, and what has been typed of it."""
        if self._awaited is not None:
            return _values(self._awaited, self._said, current), current
        if current.startswith("-") and not self._only_arguments:
            name, equals, typed = current.partition("=")
            if equals:
                option = self._option(name)
                return (_values(option, self._said, typed) if option is not None else []), typed
            return list(self._options()), current
        commands = [Offer(name, says) for name, says in self._node.listed()]
        if commands or not self._arguments:
            return commands, current
        return _values(self._arguments[0], self._said, current), current

    def _option(self, name: str) -> Option | None:
        return next((each for each in self._command.options if name in each.names), None)

    def _options(self) -> Iterator[Offer]:
        for option in self._command.options:
            if option.repeats or self._given.isdisjoint(option.names):
                yield Offer(option.long, option.help)


def _values(option: Option, said: Mapping[str, str], typed: str) -> list[Offer]:
    """Returns the values that an option or an argument may have, where they can be told."""
    if (kind := option.long.strip("[]")) in _STORED:
        from deermem.cli.stored_names import stored_names

        return [Offer(each, "") for each in stored_names(kind, said, typed)]
    known = _VALUES.get(option.long)
    return [Offer(each, "") for each in (option.choices or (known() if known else ()))]


def _categories() -> Sequence[str]:
    from deermem.model.rules import CATEGORIES

    return sorted(CATEGORIES)


def _sections() -> Sequence[str]:
    from deermem.model.summaries import SECTION_KEYS

    return [name for _, name in SECTION_KEYS]


# Where bash breaks a word, unless it is quoted, besides at `=`.
_BREAKS: Final = frozenset("@:")

# Of which the store has names: the keys of `stored_names.KINDS`, which is imported where it is asked.
_STORED: Final = frozenset(["--user-id", "--agent", "FACT_ID"])

# What Typer does not know, because these values are checked later, with a sentence of their own.
_VALUES: Final[Mapping[str, Callable[[], Sequence[str]]]] = {
    "--category": _categories,
    "--on-conflict": lambda: ("fail", "skip", "overwrite"),
    "--role": lambda: ("user", "service", "administrator"),
    "SECTION": _sections,
    "SHELL": lambda: tuple(Shell),
}
