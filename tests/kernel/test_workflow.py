"""The workflow of CI does what `pyproject.toml` promises on every system, with no rights to spare."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.kernel.requirements import REPOSITORY

SYSTEMS = {
    "Operating System :: POSIX :: Linux": "ubuntu-latest",
    "Operating System :: MacOS": "macos-latest",
    "Operating System :: Microsoft :: Windows": "windows-latest",
}


@pytest.fixture(scope="module")
def workflow() -> Any:
    return yaml.safe_load((REPOSITORY / ".github" / "workflows" / "ci.yml").read_text("utf-8"))


@pytest.fixture(scope="module")
def classifiers() -> list[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    found: list[str] = project["classifiers"]
    return found


def steps(workflow: Any) -> list[tuple[str, dict[str, str]]]:
    return [(name, step) for name, job in workflow["jobs"].items() for step in job["steps"]]


def test_the_whole_suite_runs_on_every_system_and_python_that_is_promised(
    workflow: Any, classifiers: list[str]
) -> None:
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]
    pythons = [each[1] for line in classifiers if (each := re.fullmatch(r".* :: Python :: (3\.\d+)", line))]
    assert matrix["python"] == pythons
    assert sorted(matrix["os"]) == sorted(SYSTEMS[line] for line in classifiers if line in SYSTEMS)
    assert len(matrix["os"]) == len(SYSTEMS)
    assert not workflow["jobs"]["tests"]["strategy"]["fail-fast"]
    commands = [step.get("run", "") for name, step in steps(workflow) if name == "tests"]
    assert "python -m pytest -n auto" in commands
    assert [command for command in commands if "make" in command] == []  # Windows has none


def test_the_workflow_may_only_read_the_repository(workflow: Any) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in workflow["jobs"].items() if "permissions" in job] == []
    assert "secrets." not in str(workflow)


def test_every_action_is_one_of_a_major_version(workflow: Any) -> None:
    used = {step["uses"] for _, step in steps(workflow) if "uses" in step}
    assert used
    assert [action for action in used if not re.fullmatch(r"actions/[a-z-]+@v\d+", action)] == []


def test_every_job_ends_in_time(workflow: Any) -> None:
    assert all(5 <= job["timeout-minutes"] <= 60 for job in workflow["jobs"].values())


def test_the_tests_of_the_kernel_run_as_root_with_the_tools_that_they_need(workflow: Any) -> None:
    commands = " ".join(step.get("run", "") for name, step in steps(workflow) if name == "kernel")
    assert all(tool in commands for tool in ("strace", "xfsprogs", "btrfs-progs"))
    assert re.search(r"sudo .* -m pytest tests/kernel", commands)
