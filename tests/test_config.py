"""What the edges take from the environment."""

from __future__ import annotations

import pytest

from deermem.config import parse_environment, read_environment
from deermem.errors import InvalidInputError


def test_without_variables_there_are_defaults() -> None:
    settings = parse_environment({}, "/home")
    assert (settings.user_id, settings.lock_timeout, settings.storage_path()) == (
        "default",
        10.0,
        "/home/.deermem",
    )


def test_an_empty_variable_counts_as_none() -> None:
    empty = dict.fromkeys(("DEERMEM_DATA_DIR", "DEERMEM_USER_ID", "DEERMEM_LOCK_TIMEOUT"), "")
    assert parse_environment(empty, "/home") == parse_environment({}, "/home")


def test_what_is_given_wins_over_the_environment_and_that_over_the_default() -> None:
    settings = parse_environment({"DEERMEM_DATA_DIR": "/data", "DEERMEM_USER_ID": "bob"}, "/home")
    assert settings.storage_path() == "/data"
    assert settings.storage_path("/given") == "/given"
    assert settings.user_id == "bob"


@pytest.mark.parametrize(
    ("path", "expected"), [("~", "/home"), ("~/x", "/home/x"), ("~other/x", "~other/x"), ("./~", "./~")]
)
def test_a_tilde_stands_for_the_home_directory_where_no_shell_replaced_it(path: str, expected: str) -> None:
    assert parse_environment({"DEERMEM_DATA_DIR": path}, "/home").storage_path() == expected
    assert parse_environment({}, "/home").storage_path(path) == expected


@pytest.mark.parametrize("given", [None, "~/x"])
def test_a_home_directory_that_is_needed_and_unknown_is_an_error(given: str | None) -> None:
    with pytest.raises(InvalidInputError, match="no home directory is known"):
        parse_environment({}, None).storage_path(given)
    assert parse_environment({}, None).storage_path("/data") == "/data"


def test_an_empty_path_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="storage_path: must not be empty"):
        parse_environment({}, "/home").storage_path("")


@pytest.mark.parametrize("seconds", ["0", "0.9", "121", "-5", "nan", "inf", "soon", "1 s"])
def test_a_lock_timeout_out_of_range_is_an_error(seconds: str) -> None:
    with pytest.raises(InvalidInputError, match="DEERMEM_LOCK_TIMEOUT"):
        parse_environment({"DEERMEM_LOCK_TIMEOUT": seconds}, "/home")


@pytest.mark.parametrize(("text", "seconds"), [("1", 1.0), ("2.5", 2.5), ("120", 120.0)])
def test_a_lock_timeout_is_a_number_of_seconds(text: str, seconds: float) -> None:
    assert parse_environment({"DEERMEM_LOCK_TIMEOUT": text}, None).lock_timeout == seconds


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEERMEM_USER_ID", "from the environment")
    monkeypatch.setenv("HOME", "/somewhere")
    monkeypatch.delenv("DEERMEM_DATA_DIR", raising=False)
    settings = read_environment()
    assert settings.user_id == "from the environment"


def test_an_empty_home_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    assert read_environment().home is None
