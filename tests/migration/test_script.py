"""The plan's own call: `python scripts/migrate_memory_markdown.py`, from a checkout, with PyYAML alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import CommandLine
from tests.migration.runs import NOT_TO_BE_MIGRATED, put_users, stamped_tree
from tests.migration.v1 import FACT, document, put
from tests.support.stores import manifest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "migrate_memory_markdown.py"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A directory with PyYAML and nothing else that is not of the standard library."""
    directory = tmp_path / "packages"
    directory.mkdir()
    for name in ("yaml", "_yaml"):
        (directory / name).symlink_to(Path(yaml.__file__).parents[1] / name)
    return directory


def test_without_pyyaml_it_says_so_before_it_looks_at_anybody(tmp_path: Path) -> None:
    put_users(tmp_path / "store", "alice")
    result = subprocess.run(
        [sys.executable, "-S", str(SCRIPT), "--all-users"],
        env={"PATH": os.environ["PATH"], "DEERMEM_DATA_DIR": str(tmp_path / "store")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "Error: the Python module yaml is missing: pip install PyYAML\n"


def run_script(*arguments: str, root: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs the script as it is, in a directory of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEERMEM_")}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env={**environment, "DEERMEM_DATA_DIR": str(root), **changes},
        cwd=root.parent,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(os.name == "nt", reason="links packages into a directory")
def test_it_works_where_neither_the_package_nor_typer_is_installed(tmp_path: Path, packages: Path) -> None:
    put_users(tmp_path / "store", "alice")
    without_site = [sys.executable, "-S"]
    environment = {"PYTHONPATH": str(packages), "PATH": os.environ["PATH"]}
    for module in ("deermem", "typer", "rich"):
        absent = subprocess.run(
            [*without_site, "-c", f"import {module}"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert b"ModuleNotFoundError" in absent.stderr, module
    done = subprocess.run(
        [*without_site, str(SCRIPT), "--all-users", "--storage-path", "store"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "alice: migrated (1.0 -> 2.0)" in done.stdout.splitlines()
    assert manifest(tmp_path / "store")["version"] == "2.0"


@pytest.mark.skipif(os.name == "nt", reason="the plan speaks to a POSIX shell")
def test_the_call_of_the_plan_works_in_the_checkout(tmp_path: Path) -> None:
    root = tmp_path / "store"
    put_users(root, "alice", "bob")
    before = stamped_tree(root)
    command = "PYTHONPATH=. python scripts/migrate_memory_markdown.py --all-users"
    environment = {
        **os.environ,
        "DEERMEM_DATA_DIR": str(root),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    for flag, status in (("--dry-run", "would migrate"), ("", "migrated (1.0 -> 2.0)")):
        done = subprocess.run(
            ["bash", "-c", f"{command} {flag}"],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        lines = done.stdout.splitlines()
        assert lines[0].startswith("Before a migration: stop the old application, and take a snapshot")
        assert f"alice: {status}" in lines
        assert f"bob: {status}" in lines
        assert not flag or stamped_tree(root) == before


@pytest.mark.parametrize("arguments", [["--dry-run"], [], ["--on-invalid", "quarantine"]], ids=str)
def test_it_prints_what_the_command_prints_and_exits_as_it_does(
    tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for root in (tmp_path / "a" / "store", tmp_path / "b" / "store"):
        put_users(root, "alice", "a@b.c")
        put(root, document(FACT, NOT_TO_BE_MIGRATED), user_id="bob")
    by_script = run_script("--all-users", *arguments, root=tmp_path / "a" / "store")
    monkeypatch.setenv("DEERMEM_DATA_DIR", str(tmp_path / "b" / "store"))
    by_command = CommandLine(tmp_path / "b" / "store", monkeypatch)("migrate", "--all-users", *arguments)

    def comparable(text: str) -> list[str]:
        lines = text.replace(str(tmp_path / "a"), str(tmp_path / "b")).splitlines()
        return [line.partition(".quarantine/")[0] for line in lines]

    assert by_script.returncode == by_command.code
    assert comparable(by_script.stdout) == comparable(by_command.out)
    assert by_script.stderr == by_command.err


def test_it_prints_one_document_if_that_is_wanted(tmp_path: Path) -> None:
    put_users(tmp_path / "store", "alice")
    done = run_script("--all-users", "--json", root=tmp_path / "store")
    printed = json.loads(done.stdout)
    assert printed["summary"] == {"migrated": 1, "planned": 0, "current": 0, "failed": 0}
    assert [user["directory"] for user in printed["users"]] == ["users/alice"]


def test_it_rolls_back(tmp_path: Path) -> None:
    root = tmp_path / "store"
    put_users(root, "alice")
    before = root.joinpath("users/alice/memory.json").read_bytes()
    run_script("--user-id", "alice", root=root)
    done = run_script("--rollback", "--user-id", "alice", root=root)
    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "alice: rolled back")
    assert root.joinpath("users/alice/memory.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the users are not named"),
        (["--all-users", "--user-id", "alice"], "--all-users goes with neither"),
        (["--user-id", "alice", "--rollback", "--dry-run"], "--rollback does not go with --dry-run"),
        (["--all-users", "--jobs", "65"], "--jobs must be from 1 to 64"),
        (["--all-users", "--jobs", "many"], "invalid int value"),
        (["--all", "--dry"], "unrecognized arguments"),
    ],
    ids=str,
)
def test_wrong_use_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    put_users(tmp_path / "store", "alice")
    refused = run_script(*arguments, root=tmp_path / "store")
    assert refused.returncode == 2
    assert message in refused.stderr
    assert manifest(tmp_path / "store")["version"] == "1.0"


def test_a_root_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    done = run_script("--all-users", root=tmp_path / "mistyped")
    assert (done.returncode, done.stderr) == (2, f"Error: nothing is stored at {tmp_path / 'mistyped'}\n")
    assert not (tmp_path / "mistyped").exists()


def test_a_root_that_cannot_be_used_is_told_in_one_line_or_one_document(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    refused = run_script("--all-users", root=file)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("Error: ")
    assert refused.stderr.count("\n") == 1
    refused = run_script("--all-users", "--json", root=file)
    assert json.loads(refused.stdout)["error"]["type"] == "InvalidInputError"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupted_run_ends_with_130_and_the_next_goes_on(tmp_path: Path) -> None:
    root = tmp_path / "store"
    users = [f"user{number:03}" for number in range(300)]
    put_users(root, *users)
    command = [sys.executable, str(SCRIPT), "--all-users", "--storage-path", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        while not run.stdout.readline().startswith("user000"):
            pass
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (130, "Error: interrupted\n")
    done = run_script("--all-users", root=root)
    assert done.returncode == 0
    assert {manifest(root, user)["version"] for user in users} == {"2.0"}
