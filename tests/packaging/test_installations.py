"""The wheel, installed from the package index on each Python that is there, with each extra alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.packaging.bare import SMOKE, STRICT, Environment
from tests.packaging.builds import unpacked
from tests.packaging.dockerfile import REPOSITORY
from tests.packaging.doors import ACTIONS
from tests.packaging.interpreters import VERSIONS, interpreters

# Resolving and downloading take as long as they take.
pytestmark = [pytest.mark.network, pytest.mark.timeout(900)]

EXTRAS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return interpreters().get(version) or pytest.skip(f"needs Python {version}, which is not here")


def with_pip(folder: Path, python: str, *wanted: str) -> Environment:
    """Makes an environment and installs with its own pip, as somebody does who has nothing else."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    made = Environment(folder)
    quiet = ("--disable-pip-version-check", "--no-input", "--quiet")
    done = made.run(made.python, "-m", "pip", "install", *quiet, *wanted, timeout=600)
    assert done.returncode == 0, done.stderr[-4_000:]
    return made


def with_uv(folder: Path, python: str, wanted: str) -> Environment:
    """Makes an environment and installs with uv, which takes seconds where pip takes half a minute."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", python, str(folder)], check=True)
    made = Environment(folder)
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", str(made.python), wanted], check=True)
    subprocess.run([*uv, "pip", "check", "--quiet", "--python", str(made.python)], check=True)
    return made


def test_every_extra_is_tried() -> None:
    assert sorted(ACTIONS) == sorted(EXTRAS)


def test_the_library_comes_with_at_most_five_packages_and_works(
    python: str, wheel: Path, tmp_path: Path
) -> None:
    environment = with_pip(tmp_path / "environment", python, str(wheel))
    listed = environment.run(environment.python, "-m", "pip", "list", "--format=json")
    names = {each["name"].lower() for each in json.loads(listed.stdout)} - {"pip", "setuptools"}
    assert names == {"deermem", "pyyaml"}
    checked = environment.run(environment.python, "-m", "pip", "check")
    assert checked.returncode == 0, checked.stdout
    done = environment.script(SMOKE, *STRICT)
    assert (done.returncode, done.stdout) == (0, "works\n"), done.stderr


def test_the_source_archive_installs_as_the_wheel_does(python: str, sdist: Path, tmp_path: Path) -> None:
    environment = with_uv(tmp_path / "environment", python, str(sdist))
    done = environment.script(SMOKE, *STRICT)
    assert (done.returncode, done.stdout) == (0, "works\n"), done.stderr


@pytest.mark.parametrize("extra", ACTIONS)
def test_an_extra_alone_opens_its_door(python: str, extra: str, wheel: Path, tmp_path: Path) -> None:
    environment = with_uv(tmp_path / "environment", python, f"deermem[{extra}] @ {wheel.as_uri()}")
    done = environment.script(ACTIONS[extra])
    assert (done.returncode, done.stdout) == (0, "works\n"), done.stderr[-4_000:]


def test_all_extras_go_together(python: str, wheel: Path, tmp_path: Path) -> None:
    all_of_them = ",".join(EXTRAS)
    with_uv(tmp_path / "environment", python, f"deermem[{all_of_them}] @ {wheel.as_uri()}")


def test_the_tests_run_from_the_source_archive(sdist: Path, tmp_path: Path) -> None:
    folders = ("tests/model", "tests/house", "tests/docs", "tests/cli/test_console_script.py")
    top = unpacked(sdist, tmp_path / "unpacked")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *folders]
    run = subprocess.run(command, cwd=top, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-4_000:]
