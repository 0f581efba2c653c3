"""The wheel in an environment that has PyYAML alone: the core works, and what is missing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.bare import SMOKE, STRICT, Environment, bare_environment

# What each extra opens: a module, which without its packages tells the extra.
DOORS = {
    "anthropic": "deermem.integrations.anthropic",
    "deerflow": "deermem.integrations.deerflow",
    "langgraph": "deermem.integrations.langgraph",
    "mcp": "deermem.integrations.mcp",
    "testing": "deermem.testing.simulation",
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return bare_environment(tmp_path_factory.mktemp("bare") / "environment", wheel)


def test_the_core_writes_recovers_and_reads_with_every_warning_an_error(bare: Environment) -> None:
    done = bare.script(SMOKE, *STRICT)
    assert (done.returncode, done.stdout) == (0, "works\n"), done.stderr
    assert done.stderr == "completing an interrupted change to revision 2 of alice@example.com\n"


@pytest.mark.parametrize("started", ["script", "module"])
@pytest.mark.parametrize("arguments", [(), ("add", "x"), ("--version",)])
def test_without_the_command_line_the_command_names_the_extra(
    bare: Environment, started: str, arguments: tuple[str, ...]
) -> None:
    command = [bare.scripts / "deermem"] if started == "script" else [bare.python, "-m", "deermem"]
    done = bare.run(*command, *arguments)
    assert done.returncode == 1
    assert done.stderr == 'The command line needs Typer and Rich: pip install "deermem[cli]"\n'
    assert done.stdout == ""


@pytest.mark.parametrize("extra", DOORS)
def test_a_door_without_its_packages_names_the_extra(bare: Environment, extra: str) -> None:
    done = bare.script(f"import {DOORS[extra]}\n")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(("ImportError: ", "ModuleNotFoundError: ")), last
    assert f"deermem[{extra}]" in last
