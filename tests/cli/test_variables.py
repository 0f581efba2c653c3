"""Variables that are misspelt are told of, and messages about a bad setting name where it comes from."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from deermem.cli.variables import unknown_variables
from tests.cli.conftest import CommandLine

DOCUMENTS = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DEERMEM_MAX_FACT", "DEERMEM_MAX_FACTS"),
        ("DEERMEM_DATA_DRI", "DEERMEM_DATA_DIR"),
        ("DEERMEM_USER", "DEERMEM_USER_ID"),
        ("DEERMEM_UNDO_DAY", "DEERMEM_UNDO_DAYS"),
        ("DEERMEM_GATWAY_PORT", "DEERMEM_GATEWAY_PORT"),
        ("DEERMEM_STORAGE_CLAS", "DEERMEM_STORAGE_CLASS"),
    ],
)
def test_a_misspelt_variable_is_told_of_with_what_is_meant(cli: CommandLine, name: str, meant: str) -> None:
    cli.monkeypatch.setenv(name, "7")
    for command in (["list"], ["add", "x"], ["status"], ["path"], ["init"], ["token", "list"]):
        result = cli.ok(*command)
        assert (
            f"Warning: no setting of DeerMem, and ignored: {name} (did you mean {meant}?)\n" in result.err
        ), command
    for form in ("--json", "--quiet"):
        assert cli.ok("list", form).err == ""


def test_a_variable_of_another_program_is_a_warning_alone(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("DEERMEM_ZZZ_COLOUR", "red")
    assert "ignored: DEERMEM_ZZZ_COLOUR\n" in cli.ok("list").err


def test_every_variable_of_the_documents_and_the_source_is_known() -> None:
    texts = [
        path.read_text("utf-8")
        for folder, ending in (("docs", "*.md"), ("src", "*.py"))
        for path in (DOCUMENTS / folder).rglob(ending)
    ]
    named = {name for text in texts for name in re.findall(r"(?<![A-Z_])DEERMEM_[A-Z_]*[A-Z]\b", text)}
    assert len(named) > 20
    assert unknown_variables(dict.fromkeys(named, "1")) == ""


@pytest.mark.parametrize(
    "name",
    [
        "DEERMEM_SERVICE_HOST", "DEERMEM_SERVICE_PORT", "DEERMEM_SERVICE_PORT_HTTP", "DEERMEM_PORT",
        "DEERMEM_PORT_8431_TCP", "DEERMEM_PORT_8431_TCP_ADDR", "DEERMEM_MEMORY_SERVICE_HOST",
        "DEERMEM_MEMORY_PORT_8431_TCP_PROTO",
    ],
)  # fmt: skip
def test_what_kubernetes_sets_for_a_service_of_that_name_is_no_false_alarm(name: str) -> None:
    assert unknown_variables({name: "tcp://10.0.0.1:8431"}) == ""


def test_an_empty_variable_sets_nothing_and_is_not_told_of() -> None:
    assert unknown_variables({"DEERMEM_MAX_FACT": ""}) == ""


@pytest.mark.skipif(os.name == "nt", reason="the paths in the messages are those of POSIX")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("max_facts: lots\n", "max_facts must be an integer"),
        ("manifest_filename: ..\n", "manifest_filename "),
        ("gateway:\n  prot: 1\n", "gateway.prot is no setting; there is port"),
        ("limits:\n  body_byte: 1\n", "limits.body_byte is no setting; there is body_bytes"),
        ("auth:\n  mode: nobody\n", "auth.mode "),
        ("auth: 3\n", "the setting auth must be a table"),
    ],
)
def test_a_bad_setting_of_a_file_is_told_with_the_file(
    cli: CommandLine, tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    for command in (["serve"], ["mcp", "--transport", "http"]):
        refused = cli(*command, "--config", str(path), "--port", "0")
        assert refused.code == 2
        assert refused.err.startswith(f"Error: {path}: {told}")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("DEERMEM_AUTH_MOD", "token", "DEERMEM_AUTH_MOD is no setting; there is DEERMEM_AUTH_MODE"),
        ("DEERMEM_GATEWAY_PROT", "1", "DEERMEM_GATEWAY_PROT is no setting; there is DEERMEM_GATEWAY_PORT"),
        (
            "DEERMEM_LIMIT_BODY_BYTE",
            "1",
            "DEERMEM_LIMIT_BODY_BYTE is no setting; there is DEERMEM_LIMIT_BODY_BYTES",
        ),
        ("DEERMEM_AUTH_MODE", "proxy", "auth.proxy_secret is missing: exactly one of proxy_secret and "),
    ],
)
def test_a_bad_variable_is_told_by_its_name_beside_a_file_too(
    cli: CommandLine, tmp_path: Path, name: str, value: str, told: str
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("max_facts: 50\n")
    cli.monkeypatch.setenv(name, value)
    refused = cli("serve", "--port", "0")
    assert refused.code == 2
    assert refused.err.startswith(f"Error: {told}")
    assert told in cli("serve", "--config", str(path), "--port", "0").err
