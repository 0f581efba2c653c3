from __future__ import annotations

from pathlib import Path

import pytest

from deermem.gateway.auth import AuthSettings, Mode, Role, make_authenticator
from tests.cli.conftest import CommandLine, cli
from tests.gateway_auth.calls import bearer, caller, refusal

__all__ = ["cli"]


def test_a_token_is_made_listed_and_taken_back_under_a_running_gateway(cli: CommandLine) -> None:
    path = str(cli.root / ".gateway-tokens.json")
    cli.root.mkdir()
    gateway = make_authenticator(AuthSettings(mode=Mode.TOKEN, token_file=path))
    made = cli.ok(
        "token", "create", "--user-id", "bob@x.com", "--role", "service", "--note", "ci", "--json"
    ).json
    found = caller(gateway, bearer(made["token"]))
    assert (found.subject, found.role) == ("bob@x.com", Role.SERVICE)
    listed = cli.ok("token", "list", "--json").json["tokens"]
    assert listed == [{name: value for name, value in made.items() if name != "token"}]
    assert cli.ok("token", "revoke", made["id"], "--quiet").lines == [made["id"]]
    assert refusal(gateway, bearer(made["token"])).status == 401
    assert cli.ok("token", "list", "--json").json == {"tokens": []}


def test_a_script_gets_the_token_alone(cli: CommandLine) -> None:
    result = cli.ok("token", "create", "--quiet")
    assert result.out.startswith("deermem_")
    assert (len(result.lines), result.err) == (1, "")


def test_a_person_is_told_that_the_token_is_not_shown_again(cli: CommandLine) -> None:
    result = cli.ok("token", "create", "--user-id", "alice")
    assert "alice" in result.err
    assert result.lines[0] not in result.err


def test_a_list_in_a_pipe_has_one_token_a_line(cli: CommandLine) -> None:
    cli.ok("token", "create", "--user-id", "a\x1bb", "--role", "administrator")
    token_id, role, created, user, note = cli.ok("token", "list").out.rstrip("\n").split("\t")
    assert (len(token_id), role, created[-1], user, note) == (16, "administrator", "Z", "a\\x1bb", "")


def test_an_unknown_id_fails_and_the_others_are_taken_back(cli: CommandLine) -> None:
    made = cli.ok("token", "create", "--json").json
    result = cli("token", "revoke", "0123456789abcdef", made["id"], "--json")
    assert result.code == 3
    assert [entry["id"] for entry in result.json["revoked"]] == [made["id"]]
    assert [problem["type"] for problem in result.json["problems"]] == ["TokenNotFound"]
    assert cli.ok("token", "list", "--quiet").out == ""


def test_the_file_may_be_named_by_an_option_or_the_environment(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = cli.root.with_name("one.json"), cli.root.with_name("other.json")
    monkeypatch.setenv("DEERMEM_AUTH_TOKEN_FILE", str(one))
    cli.ok("token", "create")
    cli.ok("token", "create", "--token-file", str(other))
    assert one.exists()
    assert other.exists()
    assert not cli.root.exists()


def test_a_token_is_made_where_the_gateway_with_the_same_settings_looks(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "gateway.toml"
    settings.write_text(f'storage_path = "{tmp_path / "of the file"}"\n', "utf-8")
    monkeypatch.delenv("DEERMEM_DATA_DIR", raising=False)
    cli.ok("token", "create", "--config", str(settings))
    assert (tmp_path / "of the file" / ".gateway-tokens.json").exists()
    monkeypatch.setenv("DEERMEM_STORAGE_PATH", str(tmp_path / "of the variable"))
    cli.ok("token", "create", "--config", str(settings))
    cli.ok("token", "create")
    assert len(cli.ok("token", "list", "--config", str(settings), "--quiet").lines) == 2
    assert (tmp_path / "of the variable" / ".gateway-tokens.json").exists()
    settings.write_text(f'[auth]\ntoken_file = "{tmp_path / "named.json"}"\n', "utf-8")
    made = cli.ok("token", "create", "--config", str(settings), "--json").json
    assert (tmp_path / "named.json").exists()
    assert cli.ok("token", "revoke", made["id"], "--config", str(settings), "-q").lines == [made["id"]]
    settings.write_text("[auth]\ntoken_file = 1\n", "utf-8")
    assert cli("token", "list", "--config", str(settings)).code == 2


def test_who_may_not_have_a_token_is_not_told_to_use_what_is_refused(cli: CommandLine) -> None:
    refused = cli("token", "create", "--user-id", "")
    assert "the user id must be a non-empty string" in refused.err
    assert "--no-user" not in refused.err


@pytest.mark.parametrize(
    "arguments",
    [["--role", "root"], ["--no-user"], ["--user-id", ""], ["--user-id", "a" * 201], ["--note", "a\nb"]],
)
def test_a_token_that_cannot_be_is_refused(cli: CommandLine, arguments: list[str]) -> None:
    assert cli("token", "create", *arguments).code == 2
    assert not cli.root.exists()


def test_a_file_that_is_no_list_of_tokens_is_told_of_and_kept(cli: CommandLine) -> None:
    cli.ok("token", "create")
    path = cli.root / ".gateway-tokens.json"
    path.write_text("{}", "utf-8")
    for arguments in (["create"], ["list"], ["revoke", "x"]):
        result = cli("token", *arguments)
        assert result.code == 2
        assert str(path) in result.err
    assert path.read_text("utf-8") == "{}"
