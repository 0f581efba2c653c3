"""The reference of the Python interface: which name is on which page; mkdocstrings reads the docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import deermem
from deermem import errors
from tools.site.tables import heading, link

PACKAGE: Final = Path(deermem.__file__).parent
FOLDER: Final = "reference/code"

# The pages of public names by the package that they live in: title, and what the page opens with.
_PAGES: Final = {
    "repository": (
        "API: the repository",
        "The store itself. [The library](../library.md) shows it at work.",
    ),
    "manager": (
        "API: the memory manager",
        "The boundary for hosts. [The memory manager](../manager.md) tells what each operation promises.",
    ),
    "model": (
        "API: values and changes",
        "What facts, summaries and changes are made of. None of it touches a disk.",
    ),
    "storage": (
        "API: what a storage sees",
        "What `before_commit` is handed. [Write a storage](../../how-to/write-a-storage.md) tells of it.",
    ),
    "search": (
        "API: search",
        "What a search returns, and the port that a search index implements.",
    ),
    "config": (
        "API: settings",
        "[The settings](../configuration.md) tells what each means, [All settings](settings.md) its range.",
    ),
    "errors": (
        "API: errors",
        "Everything that is raised on purpose. [Errors](../errors.md) tells what to do about each.",
    ),
}
# The classes that hold what a package makes at run time.
_BEHIND: Final = {"deermem.integrations.deerflow": ["deermem.integrations.deerflow.storage.StorageMethods"]}
_TESTING: Final = "What authors of storages, adapters and hooks test with."
_CONTRACTS: Final = "Test classes to subclass: what a part of your own must do to fit."


def public_names() -> Mapping[str, list[str]]:
    """Returns the names that `deermem` exports, by the package that they live in."""
    found: dict[str, list[str]] = {}
    for name in deermem.__all__:
        home = deermem._HOMES[name]  # noqa: SLF001 - our own table of where names live
        found.setdefault(home.split(".")[1], []).append(name)
    return found


def pages() -> Mapping[str, str]:
    """Returns the pages of the interface by their places."""
    made = {
        f"{FOLDER}/{package}.md": _public_page(package, names) for package, names in public_names().items()
    }
    contracts = [each for each in modules("testing") if each.endswith("_contract")]
    tools = [each for each in modules("testing") if each not in contracts and "simulation." not in each]
    made[f"{FOLDER}/contracts.md"] = _contracts_page(contracts)
    made[f"{FOLDER}/testing.md"] = _page("API: samples and simulated disk", _TESTING, tools)
    made[f"{FOLDER}/integrations.md"] = _integrations_page()
    return made


def _contracts_page(contracts: list[str]) -> str:
    parts = ["# API: contract tests", _CONTRACTS]
    for contract in contracts:
        file = PACKAGE.parent / f"{contract.replace('.', '/')}.py"
        rules = [f"- {rule}" for rule in _rules_in(ast.parse(file.read_text("utf-8")))]
        parts += [f"::: {contract}", "**Its rules:**", "\n".join(rules)] if rules else [f"::: {contract}"]
    return "\n\n".join([*parts, ""])


def _rules_in(tree: ast.Module) -> Iterator[str]:
    """Yields what the tests of a module claim, which is what they are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name.removeprefix("test_").replace("_", " ")


def _integrations_page() -> str:
    parts = ["# API: integrations", "The front doors, each an extra that is imported only where it is used."]
    for package, (written, made) in exported("integrations").items():
        options = f"    options:\n      show_root_full_path: true\n      members: [{', '.join(written)}]\n"
        parts.append(f"::: {package}\n{options}")
        for name in made:
            parts.append(heading(3, f"`{name}`", f"{package}.{name}"))
            parts.append("Made when it is asked for; the text of the package tells what it is.")
        parts += [f"::: {path}\n    options:\n      heading_level: 3\n" for path in _BEHIND.get(package, ())]
    return "\n\n".join([*parts, ""])


def _public_page(package: str, names: list[str]) -> str:
    title, opening = _PAGES[package]
    more = {
        "search": modules("search/port.py"),
        "errors": [f"deermem.errors.{each}" for each in _hidden_errors()],
    }
    if package == "errors":
        opening += f"\n\n{_tree(errors.DeerMemError, 0)}"
    paths = [*(f"deermem.{name}" for name in names), *more.get(package, [])]
    return _page(title, f"{opening}\n\nImported from `deermem`.", paths)


def _page(title: str, opening: str, paths: list[str]) -> str:
    return "\n".join([f"# {title}", "", opening, "", *(f"::: {path}\n" for path in paths)])


def _hidden_errors() -> list[str]:
    """Returns the errors that are not exported, because a base of theirs is what callers catch."""
    return sorted(each.__name__ for each in error_classes() if each.__name__ not in deermem.__all__)


def error_classes() -> list[type[errors.DeerMemError]]:
    """Returns every class of errors, the base first."""
    return list(_below(errors.DeerMemError))


def _below(kind: type[errors.DeerMemError]) -> Iterator[type[errors.DeerMemError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from _below(each)


def path_of(kind: type[errors.DeerMemError]) -> str:
    """Returns the name under which the reference has an error."""
    return f"deermem.{'' if kind.__name__ in deermem.__all__ else 'errors.'}{kind.__name__}"


def _tree(kind: type[errors.DeerMemError], depth: int) -> str:
    foreign = [each.__name__ for each in kind.__bases__ if not issubclass(each, errors.DeerMemError)]
    also = f", also a `{foreign[0]}`" if foreign and depth else ""
    below = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__]
    line = f"{'    ' * depth}- {link(kind.__name__, path_of(kind))}{also}"
    return "\n".join([line, *(_tree(each, depth + 1) for each in below)])


def modules(below: str) -> list[str]:
    """Returns the modules of a folder, or of one file, by their dotted names."""
    start = PACKAGE / below
    files = [start] if start.is_file() else sorted(start.rglob("*.py"))
    names = [file.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".") for file in files]
    return [name for name in names if not name.endswith(("__init__", "__main__"))]


def exported(below: str) -> Mapping[str, tuple[list[str], list[str]]]:
    """Returns what the packages of a folder export, without importing them.

    Returns:
        By package, the names of its `__all__` that its text defines or imports, and those that it makes when
        they are asked for.
    """
    found = {}
    for init in sorted((PACKAGE / below).glob("*/__init__.py")):
        package = init.parent.relative_to(PACKAGE.parent).as_posix().replace("/", ".")
        tree = ast.parse(init.read_text("utf-8"))
        names, written = _all_of(tree), set(_written(tree))
        found[package] = (
            [name for name in names if name in written],
            [name for name in names if name not in written],
        )
    return found


def _written(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def _all_of(tree: ast.Module) -> list[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return sorted(ast.literal_eval(value))
            case _:
                pass
    return []
