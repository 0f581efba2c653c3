"""A store of another uid: what is warned of, what is refused, and which command each time mends it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deermem.storage.ownership import foreign_owner, why_unusable
from tests.cli.conftest import CommandLine
from tests.cli.other_uids import run_as

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become others"
)
OWNER, STRANGER = 4_242, 4_243


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that everybody may pass, unlike pytest's own; root's."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@pytest.fixture
def store(place: Path) -> Path:
    """A store of OWNER, with a fact `one`."""
    root = place / "store"
    root.mkdir(mode=0o755)
    os.chown(root, OWNER, OWNER)
    (added,) = run_as(OWNER, root, ["add", "A fact.", "--id", "one"])
    assert added.code == 0
    return root


WRITES = {
    "add": ["add", "More."],
    "update": ["update", "one", "--confidence", "0.9"],
    "adopt": ["adopt", "one"],
    "summaries set": ["summaries", "set", "topOfMind", "Much."],
    "delete": ["delete", "one"],
    "clear": ["clear", "--yes"],
    "undo": ["undo", "--yes"],
}


def test_every_command_that_writes_warns_that_the_owner_cannot_read_what_it_wrote(store: Path) -> None:
    results = run_as(0, store, *WRITES.values(), ["list"], ["undo", "--dry-run"])
    warning = (
        f"Warning: {store} belongs to uid {OWNER}, this process is uid 0, and what one of them writes the "
        f"other cannot read: run as uid {OWNER}, and mend what was written with `chown -R {OWNER} {store}`\n"
    )
    names = [*WRITES, "list", "undo --dry-run"]
    told = dict(zip(names, [warning in each.err for each in results], strict=True))
    assert told == {**dict.fromkeys(WRITES, True), "list": False, "undo --dry-run": False}


def test_with_json_and_quiet_standard_error_stays_empty(store: Path) -> None:
    for result in run_as(0, store, ["add", "a", "--json"], ["add", "b", "--quiet"]):
        assert (result.code, result.err) == (0, "")


def test_the_owner_of_a_store_itself_is_warned_of_nothing(store: Path) -> None:
    assert [each.err for each in run_as(OWNER, store, *WRITES.values())] == [""] * len(WRITES)


LOOKS = {
    "list": ["list"],
    "get": ["get", "one"],
    "search": ["search", "fact"],
    "add": ["add", "More."],
    "export": ["export"],
    "status": ["status"],
    "clear": ["clear", "--yes"],
}


def test_what_root_wrote_is_named_with_owner_uid_and_command(store: Path) -> None:
    run_as(0, store, ["add", "Of root.", "--id", "two"])
    for name, result in zip(LOOKS, run_as(OWNER, store, *LOOKS.values()), strict=True):
        assert result.code == 9, (name, result)
        assert f"belongs to uid 0, this process is uid {OWNER}" in result.err, name
        assert f"as root, `chown -R {OWNER} {store}`" in result.err, name


def test_check_names_owner_uid_and_command_of_what_it_may_not_read(store: Path) -> None:
    run_as(0, store, ["add", "Of root.", "--id", "two"])
    (checked,) = run_as(OWNER, store, ["check"])
    assert checked.code == 1
    mend = f"as root, `chown -R {OWNER} {store}`"
    assert f"belongs to uid 0, this process is uid {OWNER}: {mend}" in checked.out


def test_the_command_that_is_named_mends_it(store: Path) -> None:
    run_as(0, store, ["add", "Of root.", "--id", "two"])
    for path in [store, *store.rglob("*")]:
        os.chown(path, OWNER, -1)
    (listed,) = run_as(OWNER, store, ["list", "--quiet"])
    assert listed.out.split() == ["one", "two"]


@pytest.mark.parametrize("below", ["", "users", "users/default", "users/default/agents/__default__/facts"])
def test_what_may_not_be_entered_is_never_told_as_absent(store: Path, below: str) -> None:
    (store / below).chmod(0)
    os.chown(store / below, 0, 0)
    commands = [
        ["path", "one"],
        ["get", "one"],
        ["list"],
        ["delete", "one"],
        ["update", "one", "--title", "t"],
    ]
    for command, result in zip(commands, run_as(OWNER, store, *commands), strict=True):
        assert result.code == 9, (command, result)
        assert f"belongs to uid 0, this process is uid {OWNER}" in result.err, command
        assert "no fact" not in result.err


@pytest.mark.parametrize("missing", ["store", "home/.deermem"])
def test_a_root_that_cannot_be_made_is_to_be_made_and_given_away_alone(place: Path, missing: str) -> None:
    root = place / missing
    for result in run_as(STRANGER, root, ["add", "x"], ["init"], ["status"], ["serve", "--port", "0"]):
        assert result.code == 9, result
        assert f"as root, `mkdir -p {root} && chown {STRANGER} {root}`" in result.err
        assert f"{STRANGER} {place}`" not in result.err
        assert "chown -R" not in result.err


def test_a_directory_of_something_else_is_never_to_be_given_away(place: Path) -> None:
    (place / "passwd").touch()
    for result in run_as(STRANGER, place, ["add", "x"], ["status"], ["serve", "--port", "0"]):
        assert result.code == 9, result
        assert f"{place} belongs to uid 0, this process is uid {STRANGER}" in result.err
        assert "it holds other things than a store: name a directory of its own" in result.err
        assert "chown" not in result.err


def test_a_root_behind_a_closed_door_is_not_told_as_absent(place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    commands = (["add", "x"], ["list"], ["status"], ["serve", "--port", "0"])
    for result in run_as(STRANGER, place / "closed" / "store", *commands):
        assert result.code == 9, result
        assert f"{place / 'closed'} belongs to uid 0" in result.err
        assert f"uid {STRANGER}, may not enter it: name a directory elsewhere" in result.err
        assert "chown" not in result.err


def test_an_unlistable_directory_is_to_be_given_away_only_if_it_is_a_store(store: Path) -> None:
    store.chmod(0o700)
    (result,) = run_as(STRANGER, store, ["add", "x"])
    assert result.code == 9
    assert f"`chown -R {STRANGER} {store}` if nothing but a store is in it" in result.err


def test_a_store_of_this_process_is_usable(cli: CommandLine) -> None:
    cli.add("x")
    assert (why_unusable(str(cli.root)), foreign_owner(str(cli.root))) == ("", "")
