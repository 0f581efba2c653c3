"""LangGraph's own store tests, with this store in the place of its stores in memory and on SQLite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT
from tests.integrations.langgraph.known_differences import ASYNC_SQLITE, KNOWN_DIFFERENCES, MEMORY, SQLITE

SOURCE = os.environ.get("LANGGRAPH_SRC", "")
PAGE = ROOT / "docs" / "internals" / "langgraph.md"
PASSED = 76
OPTIONS = (
    *("-p", "plugged", "-p", "no:randomly", "-p", "no:cacheprovider"),
    *("-o", "addopts=", "-q", "-rA", "--tb=short"),
)


def outcomes(file: str) -> dict[str, str]:
    """Runs one of their files, and returns how each of its tests went."""
    library, _, path = file.partition("/")
    ran = subprocess.run(
        # -P: the library is the one that is installed, not the one that lies beside the tests.
        [sys.executable, "-P", "-m", "pytest", *OPTIONS, path],
        cwd=Path(SOURCE, "libs", library),
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
            ),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found = re.findall(
        rf"^(PASSED|FAILED|ERROR) {re.escape(path)}(::.+?)(?: - .*)?$", ran.stdout, re.MULTILINE
    )
    return {f"{file}{test}": outcome for outcome, test in found}


def without_parameters(tests: set[str]) -> set[str]:
    return {test.partition("[")[0] for test in tests}


@pytest.mark.skipif(not SOURCE, reason="LANGGRAPH_SRC names no checkout of LangGraph")
@pytest.mark.stress
@pytest.mark.timeout(900)
def test_of_langgraphs_store_tests_exactly_those_that_are_explained_fail() -> None:
    pytest.importorskip(
        "pytest_asyncio", reason="LangGraph's tests need pytest-asyncio", exc_type=ImportError
    )
    pytest.importorskip("pytest_mock", reason="LangGraph's tests need pytest-mock", exc_type=ImportError)
    went = {test: how for file in (MEMORY, SQLITE, ASYNC_SQLITE) for test, how in outcomes(file).items()}
    passed = {test for test, how in went.items() if how == "PASSED"}
    assert without_parameters(went.keys() - passed) == set(KNOWN_DIFFERENCES)
    assert without_parameters(passed) & set(KNOWN_DIFFERENCES) == set()
    assert len(passed) >= PASSED


def test_every_test_that_fails_is_named_and_explained_in_the_document() -> None:
    sections = dict(
        re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
    reasons = {
        name: {reason for reason, text in sections.items() if f"`{name}`" in text}
        for name in (test.rpartition("::")[2] for test in KNOWN_DIFFERENCES)
    }
    assert reasons == {test.rpartition("::")[2]: {reason} for test, reason in KNOWN_DIFFERENCES.items()}
    named = {name for text in sections.values() for name in re.findall(r"`(test_\w+)`", text)}
    assert named == set(reasons)
