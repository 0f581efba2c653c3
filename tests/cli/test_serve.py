"""`serve` refuses to start in words of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

pytest.importorskip("uvicorn")


def test_a_settings_file_that_is_not_there_is_wrong_usage(cli: CommandLine, tmp_path: Path) -> None:
    absent = str(tmp_path / "nope.toml")
    refused = cli("serve", "--config", absent)
    assert refused.code == 2
    assert refused.err == f"Error: the settings file {absent} cannot be read: No such file or directory\n"


def test_a_port_that_is_taken_is_told_without_the_storage_root(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = cli("serve", "--port", str(port))
    assert refused.code == 1
    assert refused.err.startswith(f"Error: cannot listen on 127.0.0.1:{port}: ")
    assert "--port" in refused.err
    assert str(cli.root) not in refused.err


def test_a_file_of_tokens_elsewhere_is_told_without_the_storage_root(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens").mkdir()
    refused = cli("token", "list", "--token-file", "tokens")
    assert refused.code != 0
    assert str(tmp_path / "tokens") in refused.err
    assert str(cli.root) not in refused.err


@pytest.fixture
def taken_port() -> Iterator[str]:
    """Gives a port at which a gateway that would start ends instead, with exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield str(taken.getsockname()[1])


def test_a_variable_decides_the_mode_for_the_user_too(
    cli: CommandLine, tmp_path: Path, taken_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[auth]\nmode = "none"\n', "utf-8")
    monkeypatch.setenv("DEERMEM_AUTH_MODE", "token")
    monkeypatch.setenv("DEERMEM_USER_ID", "bob")
    assert cli("serve", "--config", str(path), "--port", taken_port).code == 1


def test_a_table_that_does_not_exist_is_wrong_usage(
    cli: CommandLine, tmp_path: Path, taken_port: str
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[authentication]\nmode = "token"\n', "utf-8")
    refused = cli("serve", "--config", str(path), "--port", taken_port)
    assert refused.code == 2
    assert "[authentication] is no table of settings; there are gateway, auth, limits" in refused.err


def test_a_gateway_without_tokens_says_how_to_make_one(
    cli: CommandLine, taken_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEERMEM_AUTH_MODE", "token")
    hint = f"`deermem token create --token-file {cli.root}/.gateway-tokens.json` makes one"
    assert hint in cli("serve", "--port", taken_port).err
    assert cli("token", "create", "--user-id", "alice").code == 0
    assert "token create" not in cli("serve", "--port", taken_port).err


@pytest.mark.parametrize("name", ["DEERMEM_MAX_FACTS", "DEERMEM_GATEWAY_THREADS", "DEERMEM_LIMIT_BURST"])
def test_a_variable_out_of_range_is_told_by_its_name(
    cli: CommandLine, taken_port: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "0")
    refused = cli("serve", "--port", taken_port)
    assert refused.code == 2
    assert f"Error: {name} must be" in refused.err


def may_not(monkeypatch: pytest.MonkeyPatch, path: Path, right: int) -> None:
    """Lets the system refuse one right to a directory: a process of root may do everything."""
    monkeypatch.setattr(os, "access", lambda name, mode: not (str(name) == str(path) and mode & right))


@pytest.mark.skipif(os.name == "nt", reason="uids are of POSIX")
@pytest.mark.parametrize("below", ["", "users"])
def test_a_store_of_another_uid_keeps_the_gateway_from_starting(
    cli: CommandLine, taken_port: str, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    cli.add("x")
    path = cli.root / below
    process = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: process + 1)
    may_not(monkeypatch, path, os.W_OK)
    refused = cli("serve", "--port", taken_port)
    owner = f"{path} belongs to uid {process}, this process is uid {process + 1} and cannot write there"
    assert refused.code == 9
    assert refused.err.startswith(f"Error: {owner}: ")
    assert f"`chown -R {process + 1} {path}`\n" in refused.err
    assert refused.err.count("\n") == 1
    assert cli("serve", "--port", taken_port, "--read-only").code == 1  # it came to the port


def test_a_mode_that_shuts_the_owner_out_is_told_with_the_command(
    cli: CommandLine, taken_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.add("x")
    may_not(monkeypatch, cli.root, os.R_OK)
    refused = cli("serve", "--port", taken_port, "--read-only")
    assert (refused.code, "`chmod u+rwx " in refused.err) == (9, True)


def test_a_root_that_cannot_be_made_names_the_directory_above_it(
    cli: CommandLine, taken_port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_not(monkeypatch, cli.root.parent, os.W_OK)
    refused = cli("serve", "--port", taken_port)
    assert (refused.code, str(cli.root.parent) in refused.err) == (9, True)


def test_a_user_whose_directory_is_denied_is_logged_and_keeps_nobody_else_out(
    cli: CommandLine, taken_port: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cli.add("x", "--user-id", "alice")
    cli.add("x", "--user-id", "bob")
    may_not(monkeypatch, cli.root / "users" / "alice", os.W_OK)
    started = cli("serve", "--port", taken_port)
    assert started.code == 1  # it came to the port
    (told,) = [each.getMessage() for each in caplog.records if "start_check" in each.name]
    assert told == (
        f"directories of users that cannot be used: 1, the first of them: {cli.root / 'users' / 'alice'}"
    )
