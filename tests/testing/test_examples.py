"""Every example is a whole package: built as its author would, its own tests pass on what was built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/pyproject.toml"))
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*", "dist")

pytestmark = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)


def run(command: Sequence[str | Path], directory: Path, *paths: Path) -> str:
    """Runs Python in a directory with these places to import from; returns what it prints."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("DEERMEM_")},
            "PYTHONPATH": os.pathsep.join(map(str, (*paths, ROOT / "src"))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": tempfile.gettempdir(),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(example: Path, place: Path) -> Path:
    """Builds the wheel of a copy of an example; returns where it was unpacked, as an installer does."""
    copy = place / "source"
    shutil.copytree(example, copy, ignore=LEFT_OUT)
    run(["-m", "hatchling", "build", "-t", "wheel", "-d", place / "dist"], copy)
    (wheel,) = (place / "dist").glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


def test_its_tests_pass_on_the_wheel_that_was_built(example: Path, tmp_path: Path) -> None:
    site = built(example, tmp_path)
    shutil.copytree(example / "tests", tmp_path / "elsewhere" / "tests", ignore=LEFT_OUT)
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:langsmith_plugin",  # its import warns, on Python 3.14
        "-W",
        "error",
        "--rootdir",
        ".",
        "--basetemp",
        "../base",
    ]
    assert " passed" in run(["-m", "pytest", *options, "tests"], tmp_path / "elsewhere", site)


def test_its_wheel_is_typed_and_has_nothing_but_the_package(example: Path, tmp_path: Path) -> None:
    site = built(example, tmp_path)
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    package = {name for name in files if ".dist-info/" not in name}
    (name,) = {each.partition("/")[0] for each in package}
    assert f"{name}/py.typed" in package
    assert package == {f"{name}/{path.name}" for path in (example / "src" / name).iterdir() if path.is_file()}


def test_it_says_what_it_needs_and_what_it_is(example: Path) -> None:
    project = tomllib.loads((example / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["dependencies"] == ["deermem"]
    assert project["name"].startswith("deermem-")
    readme = (example / "README.md").read_text("utf-8")
    assert f"pip install ./examples/{example.name}" in readme
    told = {part.strip("`") for part in readme.split() if part.startswith("`") and "/" in part}
    assert [
        name for name in told if name.startswith(("src/", "tests/")) and not (example / name).exists()
    ] == []


@pytest.mark.stress
def test_its_types_are_strict(example: Path, tmp_path: Path) -> None:
    options: list[str | Path] = [
        "--strict",
        "--config-file=",
        "--cache-dir",
        tmp_path / "cache",
        "src",
        "tests",
    ]
    shutil.copytree(example, tmp_path / "copy", ignore=LEFT_OUT)
    run(["-m", "mypy", *options], tmp_path / "copy", tmp_path / "copy" / "src")
