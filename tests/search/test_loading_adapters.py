"""The setting names an adapter by entry point or dotted path; anything else is refused in a sentence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem.errors import InvalidInputError
from deermem.search.loading import ENTRY_POINTS, check_adapter, load_adapter
from deermem.search.port import RetrievalAdapter
from tests.search.adapters import DictAdapter

Install = Callable[..., None]

MODULE = """
from tests.search.adapters import DictAdapter

class Outer:
    class Inner(DictAdapter):
        pass

class NeedsArguments(DictAdapter):
    def __init__(self, url):
        raise AssertionError("unreachable")

class CannotConnect(DictAdapter):
    def __init__(self):
        raise ConnectionError("index.example is down")

def build():
    return DictAdapter()

number = 7
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts modules and entry points, as of several packages, where imports find them."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(package: str, **points: str) -> None:
        metadata = tmp_path / f"{package}-1.dist-info"
        metadata.mkdir()
        text = "\n".join([f"[{ENTRY_POINTS}]", *(f"{name} = {value}" for name, value in points.items())])
        (metadata / "entry_points.txt").write_text(text, "utf-8")
        (metadata / "METADATA").write_text(f"Name: {package}\nVersion: 1\n", "utf-8")

    (tmp_path / "adapters_of_a_host.py").write_text(MODULE, "utf-8")
    (tmp_path / "broken_module_of_a_host.py").write_text("import no_such_module_at_all", "utf-8")
    return write


@pytest.mark.parametrize("name", ["", "  "])
def test_the_empty_name_means_no_adapter(name: str) -> None:
    assert load_adapter(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "adapters_of_a_host:DictAdapter",
        "adapters_of_a_host.DictAdapter",
        " adapters_of_a_host:DictAdapter ",
        "adapters_of_a_host:Outer.Inner",
        "adapters_of_a_host.Outer.Inner",
        "adapters_of_a_host:build",
    ],
)
@pytest.mark.usefixtures("install")
def test_a_dotted_path_names_a_class_or_a_function_that_builds(name: str) -> None:
    assert isinstance(load_adapter(name), DictAdapter)


def test_an_entry_point_names_an_adapter(install: Install) -> None:
    install("one", words="adapters_of_a_host:Outer.Inner")
    assert isinstance(load_adapter("words"), DictAdapter)


def test_an_entry_point_wins_over_a_dotted_path(install: Install) -> None:
    install("one", **{"adapters_of_a_host.number": "adapters_of_a_host:build"})
    assert isinstance(load_adapter("adapters_of_a_host.number"), DictAdapter)


def test_a_name_that_two_packages_register_is_refused(install: Install) -> None:
    install("one", words="adapters_of_a_host:build")
    install("two", words="adapters_of_a_host:Outer.Inner")
    with pytest.raises(InvalidInputError, match="'words' is registered by several packages"):
        load_adapter("words")


def test_a_package_that_is_found_twice_is_no_ambiguity(install: Install) -> None:
    install("one", words="adapters_of_a_host:build")
    install("one_again", words="adapters_of_a_host:build")
    assert isinstance(load_adapter("words"), DictAdapter)


def test_an_unknown_name_is_refused_with_the_names_that_there_are(install: Install) -> None:
    install("one", words="adapters_of_a_host:build", vectors="adapters_of_a_host:build")
    with pytest.raises(InvalidInputError) as caught:
        load_adapter("word")
    assert caught.value.field == "retrieval_adapter"
    assert caught.value.reason == (
        "'word' is neither an installed adapter (there are: vectors, words) nor a dotted path"
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_package:Adapter", "cannot be imported: ModuleNotFoundError"),
        ("no_such_package.Adapter", "cannot be imported: ModuleNotFoundError"),
        ("adapters_of_a_host:Absent", "cannot be imported: AttributeError"),
        ("broken_module_of_a_host:Adapter", "cannot be imported: ModuleNotFoundError.*no_such_module_at_all"),
        ("adapters_of_a_host:", "is no class and no function"),
        ("adapters of a host:X", "cannot be imported: ValueError"),
        ("../adapters_of_a_host:X", "cannot be imported: ValueError"),
        ("adapters_of_a_host:number", "is no class and no function"),
        ("adapters_of_a_host:NeedsArguments", "cannot be built: TypeError"),
        ("adapters_of_a_host:CannotConnect", "cannot be built: ConnectionError: index.example is down"),
        ("builtins:dict", r"is no retrieval adapter: its upsert\(\) is missing"),
    ],
)
@pytest.mark.usefixtures("install")
def test_a_name_that_leads_to_no_adapter_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason) as caught:
        load_adapter(name)
    assert caught.value.field == "retrieval_adapter"
    assert name in caught.value.reason


def test_an_entry_point_that_cannot_be_imported_is_refused(install: Install) -> None:
    install("one", words="broken_module_of_a_host:Adapter")
    with pytest.raises(InvalidInputError, match="'words' cannot be imported: ModuleNotFoundError"):
        load_adapter("words")


@pytest.mark.parametrize("name", [None, 7, b"words", DictAdapter])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInputError, match="must be a string"):
        load_adapter(name)


async def asynchronous(query: str, **options: object) -> list[object]:
    return [query, options]


def without_mode(query: str, *, scopes: object, top_k: int, filters: object) -> list[object]:
    return [query, scopes, top_k, filters]


def with_one_too_many(
    query: str, *, scopes: object, top_k: int, mode: str, filters: object, model: str
) -> list[object]:
    return [query, scopes, top_k, mode, filters, model]


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        (None, "is missing"),
        (7, "is missing"),
        (asynchronous, "is asynchronous"),
        (without_mode, "does not take the arguments of the port .*mode"),
        (with_one_too_many, "does not take the arguments of the port .*model"),
    ],
)
def test_an_adapter_that_the_store_could_not_call_is_refused(search: Any, reason: str) -> None:
    adapter: Any = DictAdapter()
    adapter.search = search
    with pytest.raises(InvalidInputError, match=rf"its search\(\) {reason}"):
        check_adapter(adapter, "mine")


def test_an_adapter_may_take_more_than_the_port_asks_for_if_it_has_defaults() -> None:
    adapter: Any = DictAdapter()
    adapter.search = functools.partial(with_one_too_many, model="small")
    assert check_adapter(adapter, "mine") is adapter


def test_an_adapter_without_base_class_fulfils_the_protocol() -> None:
    assert isinstance(DictAdapter(), RetrievalAdapter)
