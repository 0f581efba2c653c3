"""The table of errors: what each leaves a command with, and what the gateway answers."""

from __future__ import annotations

import inspect
from typing import Any, Final

from deermem.cli.exits import exit_code_of
from deermem.errors import DeerMemError, InvalidInputError
from deermem.gateway.errors import Operation, refusal_of
from tools.site.api import error_classes, path_of
from tools.site.tables import link, table

_SAMPLES: Final[dict[str, Any]] = {"str": "x", "int": 1, "float": 1.0}


def error_table() -> str:
    """Returns the table."""
    rows = [
        [link(each.__name__, path_of(each)), str(int(exit_code_of(each))), ", ".join(statuses_of(each))]
        for each in error_classes()
    ]
    return table(("error", "exit code", "HTTP status"), rows)


def statuses_of(kind: type[DeerMemError]) -> list[str]:
    """Returns the status codes that an error may be answered with."""
    samples = [_sample(kind)]
    if kind is InvalidInputError:
        samples += InvalidInputError("content", "must not be empty"), InvalidInputError("confidence", "x")
    return sorted({str(refusal_of(each, Operation.GET_MEMORY, "DeerMem").status) for each in samples})


def _sample(kind: type[DeerMemError]) -> DeerMemError:
    if not inspect.isfunction(kind.__init__):
        return kind()
    _, *parameters = inspect.signature(kind.__init__).parameters.values()
    needed = [
        _SAMPLES.get(str(each.annotation).partition(" ")[0], "x")
        for each in parameters
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    return kind(*needed)
