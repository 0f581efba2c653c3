"""`storage/filesystem/` alone changes the disk.

What goes around that port escapes the simulated disk, and with it every proof about crashes. The rules see
calls by their shape, so a method of the port itself (`directory.unlink(name)`) is not taken for one of
`pathlib` (`path.unlink()`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.source import Module, imported_names, modules

PORT = "storage/filesystem/"

# Module or folder (ending in a slash) -> why it may change the disk without the port.
EXCEPTIONS: dict[str, str] = {
    "cli/demo.py": "the demonstration works in a temporary directory, which is deleted as a whole",
    "testing/places.py": "the contract tests make roots and write files as hosts and people do",
}

OS_CALLS = {
    "chmod",
    "chown",
    "fchmod",
    "fchown",
    "fdatasync",
    "fsync",
    "ftruncate",
    "link",
    "makedirs",
    "mkdir",
    "mkfifo",
    "mknod",
    "open",
    "remove",
    "removedirs",
    "rename",
    "renames",
    "replace",
    "rmdir",
    "symlink",
    "sync",
    "truncate",
    "unlink",
    "utime",
    "write",
}
# What these methods take when they are pathlib's: the port's namesakes take more.
PATH_CALLS_AND_ARGUMENTS = {
    "chmod": {1},
    "hardlink_to": {1},
    "mkdir": {0},
    "rename": {1},
    "replace": {1},
    "rmdir": {0},
    "symlink_to": {1, 2},
    "touch": {0},
    "unlink": {0},
    "write_bytes": {1},
    "write_text": {1, 2, 3, 4},
}
WHOLE_MODULES = {"shutil", "tempfile"}
WRITING = set("wax+")


def opens_for_writing(call: ast.Call) -> bool:
    """Tells whether the built-in `open` or a `path.open` writes; a computed mode counts as writing.

    The port's `directory.open(name)` differs from `path.open("w")` by its argument: a name is no mode.
    """
    named = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    if isinstance(call.func, ast.Name):
        modes = named or call.args[1:2]
    else:
        modes = named or [mode for mode in call.args[:1] if is_mode(mode)]
    return any(not is_mode(mode) or not WRITING.isdisjoint(ast.literal_eval(mode)) for mode in modes)


def is_mode(argument: ast.expr) -> bool:
    return (
        isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
        and re.fullmatch("[rwaxbt+]+", argument.value) is not None
    )


def changes_the_disk(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and opens_for_writing(call)
    if not isinstance(function, ast.Attribute):
        return False
    if isinstance(function.value, ast.Name) and function.value.id == "os":
        return function.attr in OS_CALLS
    if function.attr == "open":
        return opens_for_writing(call)
    if function.attr == "replace" and call.keywords:  # of a dataclass or a datetime
        return False
    return len(call.args) in PATH_CALLS_AND_ARGUMENTS.get(function.attr, ())


def disk_changes(tree: ast.Module) -> Iterator[str]:
    for line, name in imported_names(tree):
        top, _, rest = name.partition(".")
        if top in WHOLE_MODULES or (top == "os" and rest in OS_CALLS):
            yield f"line {line}: imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and changes_the_disk(node):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def excepted(module: Module, exception: str) -> bool:
    return module.name.startswith(exception) if exception.endswith("/") else module.name == exception


def test_only_the_port_changes_the_disk() -> None:
    guarded = [
        module
        for module in modules()
        if not module.name.startswith(PORT)
        and not any(excepted(module, exception) for exception in EXCEPTIONS)
    ]
    found = {module.name: list(disk_changes(module.tree)) for module in guarded}
    assert {name: changes for name, changes in found.items() if changes} == {}


def test_every_exception_is_still_needed() -> None:
    for exception in EXCEPTIONS:
        covered = [module for module in modules() if excepted(module, exception)]
        used = any(any(disk_changes(module.tree)) for module in covered)
        assert used, f"{exception} does not change the disk: take it off the list"


@pytest.mark.parametrize(
    "planted",
    [
        "os.open(name, flags, dir_fd=fd)",
        "os.fsync(fd)",
        "from os import replace",
        "import shutil",
        "from tempfile import mkdtemp",
        "open(path, 'w')",
        "open(path, mode='r+b')",
        "open(path, mode)",
        "path.open('xb')",
        "path.open(mode=mode)",
        "path.write_text(text, encoding='utf-8')",
        "path.unlink(missing_ok=True)",
        "path.mkdir(parents=True)",
        "path.replace(target)",
    ],
)
def test_a_planted_change_of_the_disk_is_found(planted: str) -> None:
    assert len(list(disk_changes(ast.parse(planted)))) == 1


@pytest.mark.parametrize(
    "harmless",
    [
        "open(path, 'rb')",
        "open(path)",
        "path.open(encoding='utf-8')",
        "text.replace('a', 'b')",
        "moment.replace(tzinfo=UTC)",
        "dataclasses.replace(fact, title='x')",
        "directory.open(name)",
        "directory.open('facts')",
        "directory.unlink(name)",
        "directory.rename(source, target)",
        "os.stat(path)",
    ],
)
def test_reading_and_the_methods_of_the_port_are_left_alone(harmless: str) -> None:
    assert list(disk_changes(ast.parse(harmless))) == []
