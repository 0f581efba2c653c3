"""The example package works: its own tests pass, and the settings find it by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deermem.model.fact import FactDraft
from deermem.repository import MemoryRepository
from deermem.search.loading import ENTRY_POINTS, load_adapter
from deermem.testing.retrieval_samples import HERE

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "retrieval_adapter"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the example importable, with the entry points that its pyproject.toml declares."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"][ENTRY_POINTS]
    metadata = tmp_path / "site" / "deermem_word_index-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    lines = [f"[{ENTRY_POINTS}]", *(f"{name} = {value}" for name, value in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    (metadata / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(EXAMPLE / "src")


def test_the_tests_of_the_example_pass_as_its_author_would_run_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        command,
        cwd=EXAMPLE,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.usefixtures("installed")
def test_the_example_is_found_by_the_name_of_its_entry_point() -> None:
    assert type(load_adapter("word-index")).__name__ == "WordIndex"


@pytest.mark.usefixtures("installed")
def test_a_repository_searches_with_the_example(tmp_path: Path) -> None:
    with MemoryRepository(tmp_path / "root", retrieval_adapter="word-index") as repository:
        repository.upsert_fact(HERE, FactDraft("Drinks green tea in the morning."))
        (hit,) = repository.search_facts("morning tea", [HERE])
    assert (hit.match_type, hit.score) == ("words", 1.0)
