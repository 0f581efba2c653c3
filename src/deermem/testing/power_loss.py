"""What a disk may hold after a loss of power: every legal durable tree, or a seeded sample of them.

Effects on different names are independent, so the states are the product of what may become of each
name. Names that one rename ties together are taken as one unit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from math import prod
from operator import itemgetter
from typing import Any, Final, TypeVar

from deermem.testing.disk_state import (
    TOP,
    Change,
    DirectoryInode,
    DiskState,
    Effect,
    FileInode,
    apply_changes,
)

# Beyond this many effects on names that renames tie together, only nearly all and nearly none are tried.
_MAX_TIED_EFFECTS: Final = 10


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """Is a disk after a loss of power, and what was lost on the way: effects, and data of files."""

    state: DiskState
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Is one thing that may become of a unit: its names afterwards, and the effects that were lost."""

    changes: tuple[Change, ...]
    lost: tuple[str, ...]


T = TypeVar("T")
Unit = tuple[Outcome, ...]
Content = tuple[bytes, str]


class _Pick:
    """Chooses one option of each unit, and every option of the one that is odd."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any], odd: object = None) -> None:
        self._choose = choose
        self._odd = odd

    def __call__(self, options: Sequence[T]) -> Sequence[T]:
        # Two units may be equal, so identity decides.
        return options if options is self._odd else (self._choose(options),)


def _all(options: Sequence[T]) -> Sequence[T]:
    return options


class PowerLosses:
    """Enumerates what may be left of a disk.

    Some trees may hold the same, in different files. `bound` is the number of combinations.
    """

    def __init__(self, state: DiskState) -> None:
        self._state = state
        self._units: dict[int, list[Unit]] = {}
        for directory in _reachable_somehow(state):
            effects = [effect for effect in state.effects if effect.directory == directory]
            if effects:
                base = state.directories[directory].durable
                self._units[directory] = [_outcomes(tied, base) for tied in _tied(effects)]
        self._contents: dict[int, Sequence[Content]] = {
            inode: [(data, _damage(data, file.data)) for data in file.survivors]
            for inode, file in state.files.items()
            if file.survivors != (file.data,)
        }
        self._below = {
            directory: self._directories_in(inode.durable) for directory, inode in state.directories.items()
        }
        units = [unit for units in self._units.values() for unit in units]
        self.bound = prod(map(len, units)) * prod(map(len, self._contents.values()))

    def every(self) -> Iterator[PowerLoss]:
        """Yields every tree, the one that lost nothing first."""
        return self._trees(_all, _all, set())

    def sample(self, rng: random.Random, count: int) -> Iterator[PowerLoss]:
        """Yields up to `count` trees.

        First those that differ in one place from all and from nothing surviving, then random ones.
        """
        seen: set[Hashable] = set()

        def tries() -> Iterator[PowerLoss]:
            yield from self._nearly(0, seen)
            yield from self._nearly(-1, seen)
            for _ in range(4 * count):
                yield from self._trees(_Pick(rng.choice), _Pick(rng.choice), seen)

        return islice(tries(), count)

    def one(self, rng: random.Random) -> PowerLoss:
        """Returns one tree; how much of what may be lost is lost is a matter of chance, too."""
        luck = rng.choice((0.9, 0.5, 0.1))

        def choose(options: Sequence[T]) -> T:
            return options[0] if rng.random() < luck else rng.choice(options)

        return next(self._trees(_Pick(choose), _Pick(choose), set()))

    def _nearly(self, usual: int, seen: set[Hashable]) -> Iterator[PowerLoss]:
        same = _Pick(itemgetter(usual))
        yield from self._trees(same, same, seen)
        for units in self._units.values():
            for odd in units:
                yield from self._trees(_Pick(itemgetter(usual), odd), same, seen)
        for contents in self._contents.values():
            yield from self._trees(same, _Pick(itemgetter(usual), contents), seen)

    def _trees(
        self,
        outcomes: Callable[[Unit], Sequence[Outcome]],
        contents: Callable[[Sequence[Content]], Sequence[Content]],
        seen: set[Hashable],
    ) -> Iterator[PowerLoss]:
        """Yields the trees that certain outcomes and contents give, but for those in `seen`."""
        for names, lost in self._names((TOP,), {}, outcomes):
            chosen_names = tuple((directory, frozenset(left.items())) for directory, left in names.items())
            if not self._contents and chosen_names in seen:
                continue
            directories = self._reachable(names)
            files = _files_of(self._state, directories)
            damaged = [inode for inode in files if inode in self._contents]
            for chosen in product(*(contents(self._contents[inode]) for inode in damaged)):
                key = (*chosen_names, *zip(damaged, chosen, strict=True)) if chosen else chosen_names
                if key not in seen:
                    seen.add(key)
                    damage = dict(zip(damaged, chosen, strict=True))
                    yield self._tree(directories, files, lost, damage)

    def _tree(
        self,
        directories: Mapping[int, DirectoryInode],
        files: Mapping[int, FileInode],
        lost: tuple[str, ...],
        damage: Mapping[int, Content],
    ) -> PowerLoss:
        survived = dict(files)
        texts = list(lost)
        for inode, (data, text) in damage.items():
            survived[inode] = replace(files[inode], data=data, survivors=(data,), forsaken=False)
            if text:
                texts.append(f"data of {_path_of(self._state, directories, inode)}: {text}")
        return PowerLoss(_settled(self._state, directories, survived), tuple(texts))

    def _reachable(self, names: Mapping[int, Mapping[str, int]]) -> dict[int, DirectoryInode]:
        found: dict[int, DirectoryInode] = {}
        waiting = [TOP]
        while waiting:
            directory = waiting.pop()
            left = names.get(directory)
            inode = self._state.directories[directory]
            found[directory] = inode if left is None else replace(inode, entries=left, durable=left)
            waiting.extend(self._below[directory] if left is None else self._directories_in(left))
        return found

    def _directories_in(self, names: Mapping[str, int]) -> list[int]:
        return [inode for inode in names.values() if inode in self._state.directories]

    def _names(
        self,
        queue: tuple[int, ...],
        names: Mapping[int, Mapping[str, int]],
        outcomes: Callable[[Unit], Sequence[Outcome]],
    ) -> Iterator[tuple[Mapping[int, Mapping[str, int]], tuple[str, ...]]]:
        """Yields the names of the directories that are reachable and had pending effects."""
        waiting = list(queue)
        while waiting:
            directory = waiting.pop()
            units = self._units.get(directory)
            if units is None:
                waiting.extend(self._below[directory])
                continue
            for combination in product(*map(outcomes, units)):
                left = dict(self._state.directories[directory].durable)
                for outcome in combination:
                    apply_changes(left, outcome.changes)
                lost = tuple(text for outcome in combination for text in outcome.lost)
                further = (*waiting, *self._directories_in(left))
                for found, more in self._names(further, {**names, directory: left}, outcomes):
                    yield found, lost + more
            return
        yield names, ()


def power_losses(state: DiskState, limit: int, rng: random.Random) -> Iterator[PowerLoss]:
    """Yields every tree, or a sample of `limit` where there may be more than that."""
    losses = PowerLosses(state)
    return losses.every() if losses.bound <= limit else losses.sample(rng, limit)


def _reachable_somehow(state: DiskState) -> list[int]:
    """Lists the directories that are there if the right effects survive."""
    targets: dict[int, list[int]] = {}
    for effect in state.effects:
        targets.setdefault(effect.directory, []).extend(inode for _, inode in effect.changes if inode)
    found: dict[int, None] = {}
    waiting = [TOP]
    while waiting:
        directory = waiting.pop()
        if directory not in found:
            found[directory] = None
            below = (*state.directories[directory].durable.values(), *targets.get(directory, ()))
            waiting.extend(inode for inode in below if inode in state.directories)
    return list(found)


def _tied(effects: Sequence[Effect]) -> Iterator[list[Effect]]:
    """Groups the effects on a directory by the names that they share."""
    groups: list[tuple[set[str], list[Effect]]] = []
    for effect in effects:
        names = {name for name, _ in effect.changes}
        touching = [group for group in groups if not names.isdisjoint(group[0])]
        groups = [group for group in groups if group not in touching]
        merged = [earlier for group in touching for earlier in group[1]]
        groups.append((names.union(*(group[0] for group in touching)), [*merged, effect]))
    for _, group in groups:
        yield sorted(group, key=effects.index)


def _outcomes(effects: Sequence[Effect], base: Mapping[str, int]) -> Unit:
    """Returns the distinct outcomes of tied effects, those that lose fewest effects first."""
    touched = sorted({name for effect in effects for name, _ in effect.changes})
    found: dict[tuple[Change, ...], Outcome] = {}
    for lost in _lost_sets(len(effects)):
        names = {name: base[name] for name in touched if name in base}
        for index, effect in enumerate(effects):
            if index not in lost:
                apply_changes(names, effect.changes)
        changes = tuple((name, names.get(name)) for name in touched)
        if changes not in found:
            found[changes] = Outcome(changes, tuple(effects[index].text for index in sorted(lost)))
    return tuple(found.values())


def _lost_sets(size: int) -> Iterator[frozenset[int]]:
    sizes = range(size + 1) if size <= _MAX_TIED_EFFECTS else (0, 1, 2, size - 2, size - 1, size)
    for count in sizes:
        yield from map(frozenset, combinations(range(size), count))


def _files_of(state: DiskState, directories: Mapping[int, DirectoryInode]) -> dict[int, FileInode]:
    return {
        inode: state.files[inode]
        for directory in directories.values()
        for inode in directory.entries.values()
        if inode in state.files
    }


def _path_of(state: DiskState, directories: Mapping[int, DirectoryInode], wanted: int) -> str:
    return next(
        state.path_of(number, name)
        for number, directory in directories.items()
        for name, inode in directory.entries.items()
        if inode == wanted
    )


def _settled(
    state: DiskState, directories: Mapping[int, DirectoryInode], files: dict[int, FileInode]
) -> DiskState:
    settled = DiskState()
    settled.directories = dict(directories)
    settled.files = files
    settled.next_inode = state.next_inode
    settled.next_number = state.next_number
    taken: set[int] = set()
    for inode, file in files.items():
        # A number that was given away again, and now both files are there.
        if file.number in taken:
            files[inode] = replace(file, number=settled.next_number)
            settled.next_number += 1
        taken.add(files[inode].number)
    return settled


def _damage(left: bytes, data: bytes) -> str:
    if left == data:
        return ""
    if not left:
        return "empty"
    if not any(left):
        return f"{len(left)} zero bytes"
    if data.startswith(left):
        return f"cut short to {len(left)} of {len(data)} bytes"
    return "torn between sectors" if len(left) == len(data) else "as before the write"
