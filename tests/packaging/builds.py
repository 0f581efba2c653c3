"""Builds the wheel and the source archive with the pinned builder, without the network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import repository_files
from tests.packaging.dockerfile import REPOSITORY

# Any moment will do; in a release it is that of the commit.
EPOCH = 1_700_000_000


def source_files() -> list[str]:
    """Returns the names of the files that git keeps, or where there is no git those of the folder."""
    if (REPOSITORY / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--cached"]
        listed = subprocess.run(command, capture_output=True, check=False)
        if listed.returncode == 0:
            names = listed.stdout.decode().split("\0")
            return sorted(name for name in names if name and (REPOSITORY / name).is_file())
    return sorted(path.relative_to(REPOSITORY).as_posix() for path in repository_files())


def copy_source(folder: Path) -> Path:
    """Copies what git keeps, and nothing that lies about beside it."""
    for name in source_files():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, target)
    return folder


def build(source: Path, target: Path, kind: str, umask: int = 0o022, **variables: str) -> Path:
    """Builds one distribution, `sdist` or `wheel`, of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": f"{EPOCH}", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False, umask=umask
    )
    assert done.returncode == 0, done.stderr
    (made,) = target.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def unpacked(sdist: Path, folder: Path) -> Path:
    """Unpacks a source archive; returns its one directory."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


def names_in(distribution: Path) -> Iterator[str]:
    """Yields the names of the files of a distribution, without the directory that a source archive has."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as archive:
            yield from archive.namelist()
    else:
        with tarfile.open(distribution) as archive:
            yield from (each.name.partition("/")[2] for each in archive.getmembers() if each.isfile())
