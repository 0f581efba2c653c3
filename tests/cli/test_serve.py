"""`serve` refuses to start in words of its own."""

from __future__ import annotations

import socket
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
