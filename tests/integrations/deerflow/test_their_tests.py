"""DeerFlow's own memory tests, with this storage in the place of its file storage."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT
from tests.integrations.deerflow import library
from tests.integrations.deerflow.known_differences import KNOWN_DIFFERENCES
from tests.integrations.deerflow.library import real_only

PAGE = ROOT / "docs" / "internals" / "deerflow.md"
AT_LEAST = 540


@real_only
@pytest.mark.stress
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["storage", "manager"])
def test_of_deerflows_memory_tests_only_those_that_are_explained_fail(way: str) -> None:
    backend = Path(library.SOURCE, "backend")
    files = sorted(str(file.relative_to(backend)) for file in backend.glob("tests/test_memory_*.py"))
    options = ["-q", "-rfE", "--tb=no", "-p", "no:randomly", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.integrations.deerflow.plugged"),
            *options,
            *files,
        ],
        cwd=backend,
        env={
            **os.environ,
            "DEERMEM_PLUGGED": way,
            "PYTHONPATH": os.pathsep.join([*library.PATHS, str(ROOT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE))
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None, ran.stdout + ran.stderr
    assert int(passed[1]) >= AT_LEAST
    assert failed - set(KNOWN_DIFFERENCES) == set()


def test_every_test_that_fails_is_named_and_explained_in_the_document() -> None:
    page = PAGE.read_text("utf-8")
    sections = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    missing = [
        test
        for test, reason in KNOWN_DIFFERENCES.items()
        if f"`{test.rpartition('::')[2]}`" not in sections.get(reason, "")
    ]
    assert missing == []
    named = {name for text in sections.values() for name in re.findall(r"`(test_\w+)`", text)}
    assert named == {test.rpartition("::")[2] for test in KNOWN_DIFFERENCES}
