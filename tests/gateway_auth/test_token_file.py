from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from deermem.errors import InvalidInputError, LockTimeout
from deermem.gateway.auth import AuthSettings, Mode, Role, make_authenticator, token_file
from deermem.gateway.auth.token_file import TokenFile
from deermem.storage.filesystem import LocalFileSystem
from tests.support.systems import needs_modes

NOW = "2026-01-31T12:00:00Z"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the tokens will be: in a folder that is not there yet."""
    return tmp_path / "new" / "tokens.json"


def create(path: Path, user: str = "alice") -> str:
    return TokenFile(str(path)).create(user, Role.USER, NOW)[0]


def start(path: Path) -> None:
    make_authenticator(AuthSettings(mode=Mode.TOKEN, token_file=str(path)))


@needs_modes
def test_a_new_file_is_its_owners_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        create(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@needs_modes
def test_a_changed_file_is_its_owners_alone_again(path: Path) -> None:
    create(path)
    path.chmod(0o640)
    create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_file_has_neither_tokens_nor_their_secrets(path: Path) -> None:
    token = create(path)
    text = path.read_text("utf-8")
    assert token not in text
    assert token.rpartition("_")[2] not in text


def test_tokens_are_256_random_bits_behind_a_prefix_that_scanners_can_find(path: Path) -> None:
    made = [create(path) for _ in range(50)]
    assert all(token.startswith("deermem_") and len(token.rpartition("_")[2]) == 64 for token in made)
    assert len({token.rpartition("_")[2] for token in made}) == len(made)


def test_the_list_is_never_changed_in_place(path: Path) -> None:
    create(path)
    with path.open("rb") as old:
        before = old.read()
        create(path)
        old.seek(0)
        assert old.read() == before


@pytest.mark.parametrize("step", ["create", "rename"])
def test_a_change_that_the_disk_refuses_leaves_the_list_as_it_was(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(path)
    before = path.read_bytes()
    kind = type(LocalFileSystem(path.parent).open_root())

    def fail(*_: object) -> None:
        raise OSError(28, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(kind, step, fail)
        with pytest.raises(OSError, match="no space left"):
            create(path)
    assert path.read_bytes() == before
    create(path)
    assert sorted(each.name for each in path.parent.iterdir()) == ["tokens.json", "tokens.json.lock"]


def test_a_change_is_synced_before_it_is_reported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(path)
    kind = type(LocalFileSystem(path.parent).open_root())
    steps: list[str] = []

    def noted(name: str) -> Callable[..., object]:
        original = getattr(kind, name)

        def call(*arguments: object) -> object:
            steps.append(name)
            result: object = original(*arguments)
            return result

        return call

    for name in ("create", "rename", "sync"):
        monkeypatch.setattr(kind, name, noted(name))
    create(path)
    assert steps == ["create", "rename", "sync"]  # `create` syncs the bytes itself


def test_an_unknown_id_is_not_revoked_and_nothing_is_written(path: Path) -> None:
    create(path)
    before = path.stat()
    assert TokenFile(str(path)).revoke(["0123456789abcdef"]) == ()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_who_waits_too_long_for_the_list_is_told_so(path: Path) -> None:
    create(path)
    with LocalFileSystem(path.parent).open_root() as folder:
        lock = folder.lock_file("tokens.json.lock")
        assert lock.acquire(1)
        try:
            with pytest.raises(LockTimeout):
                TokenFile(str(path), patience=0.01).revoke(["x"])
        finally:
            lock.close()


@pytest.mark.parametrize("note", ["two\nlines", "a" * 201, "\x1b[2J"])
def test_a_note_that_a_terminal_might_obey_is_refused(path: Path, note: str) -> None:
    with pytest.raises(InvalidInputError, match="note"):
        TokenFile(str(path)).create("alice", Role.USER, NOW, note)


@pytest.mark.parametrize("user", ["", "a" * 201, "a\ud800"])
def test_no_token_is_made_for_somebody_who_can_have_no_memory(path: Path, user: str) -> None:
    with pytest.raises(InvalidInputError):
        create(path, user)
    assert not path.exists()


def test_a_list_that_is_too_large_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(path)
    before = path.read_bytes()
    monkeypatch.setattr(token_file, "MAX_BYTES", len(before) + 100)
    with pytest.raises(InvalidInputError, match="larger"):
        create(path)
    assert path.read_bytes() == before


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere.json"))
    path.symlink_to("elsewhere.json")


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


UNSAFE = MappingProxyType[str, Callable[[Path], object]](
    {
        "a link": linked,
        "a folder": replaced_by_a_folder,
        "writable by its group": lambda path: path.chmod(0o620),
        "writable by everybody": lambda path: path.chmod(0o602),
        "in a folder that its group may write to": lambda path: path.parent.chmod(0o770),
        "in a folder that everybody may write to": lambda path: path.parent.chmod(0o707),
        "cut": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    }
)


@needs_modes
@pytest.mark.parametrize("kind", UNSAFE)
def test_a_gateway_does_not_start_with_a_file_that_others_may_have_written(path: Path, kind: str) -> None:
    create(path)
    start(path)
    UNSAFE[kind](path)
    with pytest.raises(InvalidInputError, match=r"tokens\.json"):
        start(path)
    with pytest.raises(InvalidInputError, match=r"tokens\.json"):
        create(path)


@needs_modes
def test_a_file_that_others_can_read_is_warned_of(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create(path)
    start(path)
    assert caplog.records == []
    path.chmod(0o640)
    start(path)
    assert "can be read by others" in caplog.text


def test_a_folder_that_everybody_may_add_to_but_not_remove_from_is_fine(path: Path) -> None:
    create(path)
    path.parent.chmod(0o1777)
    start(path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_in_a_folder_that_everybody_may_add_to_is_refused(path: Path) -> None:
    create(path)
    os.chown(path, 65_534, 65_534)
    start(path)
    path.parent.chmod(0o1777)
    with pytest.raises(InvalidInputError, match="belongs to uid 65534"):
        start(path)


def test_a_folder_that_is_a_file_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InvalidInputError):
        start(tmp_path / "file" / "tokens.json")
