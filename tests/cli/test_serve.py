"""`serve` refuses to start in words of its own."""

from __future__ import annotations

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
