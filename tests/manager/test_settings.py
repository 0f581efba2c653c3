"""The settings of a memory manager: from a dictionary, the environment and a file."""

from __future__ import annotations

import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, DeerMemConfig, InvalidInputError, MemoryRepository
from deermem.config import read_settings_file
from tests.manager.managers import manager_at

DEFAULTS = {
    "storage_path": "",
    "storage_class": "",
    "strict_user_scope": False,
    "manifest_filename": "memory.json",
    "file_lock_timeout_seconds": 10,
    "retrieval_adapter": "",
    "max_facts": 100,
    "fact_confidence_threshold": 0.7,
    "max_injection_tokens": 2000,
    "guaranteed_categories": ["correction"],
    "guaranteed_token_budget": 500,
    "undo_days": 7,
}


def values(config: DeerMemConfig) -> dict[str, Any]:
    return {each.name: getattr(config, each.name) for each in fields(config)}


def test_the_defaults_are_those_of_the_contract() -> None:
    assert values(DeerMemConfig()) == DEFAULTS


@pytest.mark.parametrize("backend_config", [None, {}, dict.fromkeys(DEFAULTS)])
def test_nothing_and_none_mean_the_default(backend_config: dict[str, Any] | None) -> None:
    assert values(DeerMemConfig.from_backend_config(backend_config)) == DEFAULTS


def test_every_setting_can_be_set(tmp_path: Path) -> None:
    given = {
        "storage_path": str(tmp_path),
        "storage_class": "a.B",
        "strict_user_scope": True,
        "manifest_filename": "other.json",
        "file_lock_timeout_seconds": 2.5,
        "retrieval_adapter": "x.Y",
        "max_facts": 10,
        "fact_confidence_threshold": 0,
        "max_injection_tokens": 8000,
        "guaranteed_categories": ["goal", "constraint"],
        "guaranteed_token_budget": 0,
        "undo_days": 0,
    }
    assert values(DeerMemConfig.from_backend_config(given)) == given


def test_one_warning_names_all_that_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    given = {"max_facts": 50, "fact_format": "json", "journal_enabled": False, "max_fact": 3}
    config = DeerMemConfig.from_backend_config(given)
    assert values(config) == {**DEFAULTS, "max_facts": 50}
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().endswith("fact_format, journal_enabled, max_fact")


def test_known_settings_give_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    DeerMemConfig.from_backend_config(DEFAULTS)
    assert caplog.records == []


WRONG: list[tuple[str, Any]] = [
    ("storage_path", 5),
    ("storage_path", b"x"),
    ("storage_class", 5),
    ("retrieval_adapter", ["x"]),
    ("strict_user_scope", "yes"),
    ("strict_user_scope", 1),
    ("manifest_filename", "memory.yaml"),
    ("manifest_filename", "../memory.json"),
    ("manifest_filename", 5),
    ("file_lock_timeout_seconds", 0.9),
    ("file_lock_timeout_seconds", 121),
    ("file_lock_timeout_seconds", float("nan")),
    ("file_lock_timeout_seconds", True),
    ("max_facts", 9),
    ("max_facts", 100_001),
    ("max_facts", 50.5),
    ("max_facts", "50"),
    ("max_facts", True),
    ("fact_confidence_threshold", -0.1),
    ("fact_confidence_threshold", 1.1),
    ("max_injection_tokens", 99),
    ("max_injection_tokens", 8001),
    ("guaranteed_token_budget", -1),
    ("undo_days", -1),
    ("undo_days", 3_651),
    ("undo_days", 1.5),
    ("guaranteed_categories", "correction"),
    ("guaranteed_categories", [5]),
    ("guaranteed_categories", [" "]),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_a_setting_that_breaks_its_rule_is_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"^{name}: "):
        DeerMem({name: value})


def test_what_is_no_dictionary_is_refused() -> None:
    with pytest.raises(ValueError, match="backend_config"):
        DeerMem([("max_facts", 50)])  # type: ignore[arg-type]  # the type checker sees it too


@pytest.mark.parametrize("mode", ["other", None, ""])
def test_a_mode_that_is_none_is_refused(tmp_path: Path, mode: Any) -> None:
    with pytest.raises(ValueError, match="mode"):
        manager_at(tmp_path, mode=mode)


def test_a_storage_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_text("{}", "utf-8")
    for build in (DeerMemConfig, lambda storage_path: DeerMem({"storage_path": storage_path})):
        with pytest.raises(InvalidInputError, match="storage_path"):
            build(storage_path=str(path))


def test_a_path_object_is_a_storage_path(tmp_path: Path) -> None:
    assert DeerMem({"storage_path": tmp_path}).repository.storage_root == str(tmp_path.resolve())


def test_without_a_storage_path_the_environment_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEERMEM_DATA_DIR", str(tmp_path / "data"))
    assert DeerMem().repository.storage_root == str((tmp_path / "data").resolve())
    assert DeerMem({"storage_path": str(tmp_path)}).repository.storage_root == str(tmp_path.resolve())


def test_without_anything_the_storage_root_is_in_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEERMEM_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert DeerMem().repository.storage_root == str((tmp_path / ".deermem").resolve())


def test_the_settings_reach_the_store(tmp_path: Path) -> None:
    manager = manager_at(tmp_path, manifest_filename="other.json", strict_user_scope=True)
    manager.create_fact("x", user_id="alice")
    assert (tmp_path / "users" / "alice" / "other.json").is_file()
    with pytest.raises(ValueError, match="user_id"):
        manager.get_memory()


class OwnRepository(MemoryRepository):
    """Is a repository of somebody's own."""


def test_a_storage_class_takes_the_place_of_the_repository(tmp_path: Path) -> None:
    manager = manager_at(tmp_path, storage_class=f"{__name__}.OwnRepository")
    assert type(manager.repository).__name__ == "OwnRepository"


@pytest.mark.parametrize(
    "name", ["no.such.module", "json.no_such_name", "json.loads", "pathlib.Path", "not a name"]
)
def test_a_storage_class_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="storage_class"):
        manager_at(tmp_path, storage_class=name)


@pytest.mark.parametrize("name", ["no.such.Adapter", "pathlib.Path"])
def test_a_retrieval_adapter_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="retrieval_adapter"):
        manager_at(tmp_path, retrieval_adapter=name)


ENVIRONMENT = {
    "DEERMEM_STORAGE_PATH": "store",
    "DEERMEM_STRICT_USER_SCOPE": "True",
    "DEERMEM_MANIFEST_FILENAME": "other.json",
    "DEERMEM_FILE_LOCK_TIMEOUT_SECONDS": "2.5",
    "DEERMEM_MAX_FACTS": "50",
    "DEERMEM_FACT_CONFIDENCE_THRESHOLD": "0.9",
    "DEERMEM_GUARANTEED_CATEGORIES": "goal, constraint,",
    "DEERMEM_RETRIEVAL_ADAPTER": "",
    "OTHER_MAX_FACTS": "60",
}


def test_every_setting_can_come_from_the_environment() -> None:
    config = DeerMemConfig.load(environment=ENVIRONMENT)
    assert values(config) == {
        **DEFAULTS,
        "storage_path": "store",
        "strict_user_scope": True,
        "manifest_filename": "other.json",
        "file_lock_timeout_seconds": 2.5,
        "max_facts": 50,
        "fact_confidence_threshold": 0.9,
        "guaranteed_categories": ["goal", "constraint"],
    }


def test_settings_of_the_environment_that_do_not_exist_are_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    DeerMemConfig.load(environment={"DEERMEM_FACT_FORMAT": "json", "DEERMEM_JOURNAL_ENABLED": "0"})
    assert [record.getMessage().endswith("fact_format, journal_enabled") for record in caplog.records] == [
        True
    ]


def test_variables_of_others_are_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    environment = {"DEERMEM_USER_ID": "x", "DEERMEM_TOKEN_FILE": "x"}
    assert values(DeerMemConfig.load(environment=environment)) == DEFAULTS
    assert caplog.records == []


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("DEERMEM_MAX_FACTS", "many"),
        ("DEERMEM_STRICT_USER_SCOPE", "perhaps"),
        ("DEERMEM_LOCK_TIMEOUT", "0"),
        ("DEERMEM_FACT_CONFIDENCE_THRESHOLD", "0,5"),
    ],
)
def test_a_variable_that_is_not_what_it_should_be_is_named(variable: str, text: str) -> None:
    with pytest.raises(InvalidInputError, match=variable):
        DeerMemConfig.load(environment={variable: text})


TOML = """
storage_path = "store"
max_facts = 50
guaranteed_categories = ["goal"]

[gateway]
port = 1
"""
YAML = """
storage_path: store
max_facts: 50
guaranteed_categories: [goal]
gateway:
  port: 1
"""
FILES = {"settings.toml": TOML, "settings.yaml": YAML, "settings.yml": YAML}


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_the_same_in_each_format(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / name
    path.write_text(FILES[name], "utf-8")
    config = DeerMemConfig.load(str(path), {})
    expected = {"storage_path": "store", "max_facts": 50, "guaranteed_categories": ["goal"]}
    assert values(config) == {**DEFAULTS, **expected}
    assert read_settings_file(str(path))["gateway"] == {"port": 1}
    assert caplog.records == []


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("max_facts = 50\nmax_injection_tokens = 300\n", "utf-8")
    config = DeerMemConfig.load(str(path), {"DEERMEM_MAX_FACTS": "60"})
    assert (config.max_facts, config.max_injection_tokens) == (60, 300)


def test_an_unknown_setting_of_a_file_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("max_fact = 50\njournal_enabled = true\n", "utf-8")
    assert values(DeerMemConfig.load(str(path), {})) == DEFAULTS
    assert [record.getMessage().endswith("journal_enabled, max_fact") for record in caplog.records] == [True]


BROKEN = {
    "a.toml": b"max_facts = ",
    "b.yaml": b"max_facts: [",
    "c.yaml": b"- a list",
    "d.json": b"{}",
    "e.toml": b"\xff",
    "f.yaml": b"[" * 50_000,
    "g.yaml": b"5: x",
    "h.toml": b"#" * 1_000_001,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name])
    with pytest.raises(InvalidInputError, match=name):
        DeerMemConfig.load(str(path), {})


@pytest.mark.parametrize(("name", "language"), [("a.toml", "TOML"), ("b.yaml", "YAML")])
def test_a_file_that_breaks_its_language_is_told_in_one_line(
    tmp_path: Path, name: str, language: str
) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name])
    with pytest.raises(InvalidInputError) as refused:
        DeerMemConfig.load(str(path), {})
    assert refused.value.reason.startswith(f"is not {language}: ")
    assert len(refused.value.reason.splitlines()) == 1


def test_an_empty_file_sets_nothing_and_a_missing_one_is_an_error_of_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("# nothing\n", "utf-8")
    assert values(DeerMemConfig.load(str(path), {})) == DEFAULTS
    with pytest.raises(FileNotFoundError):
        DeerMemConfig.load(str(tmp_path / "absent.yaml"), {})
