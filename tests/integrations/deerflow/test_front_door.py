"""How DeerFlow gets at the classes, and what is said where there is no DeerFlow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.deerflow import double, library
from tests.integrations.deerflow.library import fact, storage_module

STORAGE = "deermem.integrations.deerflow.DeerMemStorage"
MANAGER = "deermem.integrations.deerflow:DeerMemManager"


def without_deerflow(code: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return ran.stdout


def test_without_deerflow_the_import_says_what_to_install() -> None:
    told = without_deerflow(
        "try:\n    import deermem.integrations.deerflow\nexcept ImportError as error:\n    print(error)"
    )
    assert 'pip install "deermem[deerflow]"' in told
    assert "there is no DeerFlow in this environment" in told


def test_importing_the_package_imports_no_deerflow() -> None:
    loaded = without_deerflow("import sys, deermem, deermem.integrations; print('\\n'.join(sys.modules))")
    assert not {"deerflow", "deermem.integrations.deerflow"} & set(loaded.split())


def test_the_storage_is_one_of_deerflows() -> None:
    found = library.front_door.DeerMemStorage
    assert issubclass(found, storage_module.MemoryStorage)
    assert (found.__module__, found.__qualname__) == ("deermem.integrations.deerflow", "DeerMemStorage")


def test_the_manager_is_one_of_deerflows_and_made_once() -> None:
    found = library.front_door.DeerMemManager
    assert issubclass(found, library.module(double.MANAGER).DeerMem)
    assert found is library.front_door.DeerMemManager
    assert (found.__module__, found.__qualname__) == ("deermem.integrations.deerflow", "DeerMemManager")
    assert found.supports_search
    assert set(dir(library.front_door)) == {"DeerMemManager", "DeerMemStorage"}


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="DeerMemQueue"):
        library.front_door.DeerMemQueue  # noqa: B018 - what is looked for


def test_deerflow_resolves_the_storage_by_its_dotted_path(tmp_path: Path) -> None:
    made = storage_module.create_storage(library.config(tmp_path, storage_class=STORAGE))
    assert type(made) is library.front_door.DeerMemStorage
    made.close()


def test_every_method_of_deerflows_storage_is_overridden() -> None:
    theirs = storage_module.MemoryStorage
    names = {name for name in vars(theirs) if not name.startswith("_")}
    found = library.front_door.DeerMemStorage
    assert {name for name in names if getattr(found, name) is getattr(theirs, name)} == set()


def test_the_manager_stores_with_deermem_and_keeps_its_configuration(tmp_path: Path) -> None:
    config = {"storage_path": str(tmp_path), "retrieval_adapter": "fts5", "max_facts": 12}
    manager = library.front_door.DeerMemManager.from_config(config, mode="tool", callbacks=None)
    assert type(manager._storage) is library.front_door.DeerMemStorage
    assert (manager.backend_config, manager.mode) == (config, "tool")
    assert manager._config.max_facts == 12
    assert not (tmp_path / ".retrieval").exists()
    manager.close()


def test_a_manager_that_is_made_by_itself_keeps_its_configuration(tmp_path: Path) -> None:
    config = {"storage_path": str(tmp_path), "retrieval_adapter": "fts5"}
    manager = library.front_door.DeerMemManager(backend_config=config)
    assert manager.backend_config == config
    manager.close()


@pytest.mark.parametrize("config", [None, {}])
def test_the_manager_needs_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Any
) -> None:
    monkeypatch.setenv("DEERMEM_DATA_DIR", str(tmp_path))
    manager = library.front_door.DeerMemManager.from_config(config)
    manager._storage.upsert_fact(fact("fact_1"), user_id="alice", agent_name="writer")
    assert list(tmp_path.rglob("fact_1.md"))
    manager.close()


def test_another_storage_class_beside_the_manager_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = library.front_door.DeerMemManager.from_config(
        {"storage_path": str(tmp_path), "storage_class": "some.other.Storage"}
    )
    assert type(manager._storage) is library.front_door.DeerMemStorage
    assert "some.other.Storage" in caplog.text
    manager.close()
