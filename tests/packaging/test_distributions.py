"""What is published: its contents, its metadata, and that two builds are the same bytes."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from trove_classifiers import classifiers

from tests.packaging.builds import build, copy_source, names_in, source_files, unpacked
from tests.packaging.dockerfile import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
VERSION = PROJECT["version"]
INFO = f"deermem-{VERSION}.dist-info"
# The kinds of files that the package consists of; anything else in it is a mistake until it is named here.
SHIPPED = (".py", "py.typed", "memories.json")


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"{INFO}/METADATA"))


def test_two_builds_of_other_times_places_and_masks_are_the_same_bytes(
    sdist: Path, wheel: Path, tmp_path: Path
) -> None:
    again = copy_source(tmp_path / "elsewhere")
    for path in again.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700 if path.is_dir() else 0o600)
    for first, kind in ((sdist, "sdist"), (wheel, "wheel")):
        second = build(again, tmp_path / kind, kind, umask=0o077, TZ="Asia/Tokyo", LC_ALL="C")
        assert (second.name, second.read_bytes() == first.read_bytes()) == (first.name, True)


def test_another_epoch_is_seen_in_the_bytes(source: Path, wheel: Path, tmp_path: Path) -> None:
    later = build(source, tmp_path, "wheel", SOURCE_DATE_EPOCH="1800000000")
    assert later.read_bytes() != wheel.read_bytes()


def test_the_source_archive_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    made = build(unpacked(sdist, tmp_path / "unpacked"), tmp_path / "made", "wheel")
    assert made.read_bytes() == wheel.read_bytes()


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    package = [name.removeprefix("src/") for name in source_files() if name.startswith("src/deermem/")]
    about = [f"{INFO}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")]
    assert sorted(names_in(wheel)) == sorted([*package, *about, f"{INFO}/licenses/LICENSE"])
    assert {"deermem/py.typed", "deermem/cli/sample/memories.json"} < set(names_in(wheel))


def test_every_file_of_the_package_is_code_or_is_shipped_on_purpose() -> None:
    package = [name for name in source_files() if name.startswith("src/")]
    assert [name for name in package if not name.endswith(SHIPPED) and "/cli/shells/" not in name] == []


def test_the_source_archive_has_what_git_keeps(sdist: Path) -> None:
    assert sorted(names_in(sdist)) == sorted({*source_files(), "PKG-INFO"})


def test_the_index_would_take_both(sdist: Path, wheel: Path) -> None:
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", str(sdist), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout


def test_the_core_needs_one_package_which_needs_none(wheel: Path) -> None:
    needed = [Requirement(text) for text in metadata_of(wheel).get_all("Requires-Dist", [])]
    core = [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    assert core == ["pyyaml"]
    assert requires("pyyaml") in (None, [])


def test_the_metadata_says_what_the_project_says_and_names_no_page(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert (metadata["Name"], metadata["Version"]) == ("deermem", VERSION)
    assert (metadata["License-Expression"], metadata["License-File"]) == ("MIT", "LICENSE")
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_all("Project-URL") is None
    assert metadata["Home-page"] is None
    assert sorted(metadata.get_all("Provides-Extra", [])) == sorted(PROJECT["optional-dependencies"])


def test_every_classifier_exists_and_no_license_is_told_twice() -> None:
    told = PROJECT["classifiers"]
    assert [each for each in told if each not in classifiers] == []
    assert [each for each in told if each.startswith("License ::")] == []


def test_the_version_has_one_source() -> None:
    code = [REPOSITORY / name for name in source_files() if name.startswith("src/")]
    assert [path.name for path in code if f'"{VERSION}"' in path.read_text("utf-8")] == []
    assert "dynamic" not in PROJECT
