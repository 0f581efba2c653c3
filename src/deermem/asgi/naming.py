"""Names of settings: what comes from variables, and what is said of a name or a value that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches

from deermem.errors import InvalidInputError


def variables_of(prefix: str, environment: Mapping[str, str] | None) -> dict[str, str]:
    """Returns the variables that set something, by the name of the setting; empty ones count as none."""
    return {
        name.removeprefix(prefix).lower(): name
        for name, text in (environment or {}).items()
        if name.startswith(prefix) and text
    }


def check_variables(prefix: str, variables: Mapping[str, str], known: Iterable[str]) -> None:
    """Makes sure that the settings of variables exist.

    Args:
        prefix: What the variables begin with.
        variables: The variables by the names of the settings.
        known: The names that there are.

    Raises:
        InvalidInputError: One does not; it says which variables are called nearly so.
    """
    names = [*known]
    for name, variable in variables.items():
        if name not in names:
            near = [f"{prefix}{each.upper()}" for each in get_close_matches(name, names)]
            hint = f"; there is {' and '.join(near)}" if near else ""
            raise InvalidInputError(variable, f"is no setting{hint}")


def check_names(table: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Makes sure that settings exist.

    Raises:
        InvalidInputError: One does not; it says which ones are called nearly so.
    """
    names = list(known)
    for name in given:
        if name not in names:
            near = get_close_matches(name, names)
            hint = f"; there is {' and '.join(near)}" if near else ""
            raise InvalidInputError(f"{table}.{name}", f"is no setting{hint}")


@contextmanager
def told_by_variable(table: str, variables: Mapping[str, str]) -> Iterator[None]:
    """Names the variable in what is said to be wrong with a setting that came from one.

    Args:
        table: The table of the settings; empty for those at the top of a file.
        variables: The variables by the names of the settings.
    """
    try:
        yield
    except InvalidInputError as error:
        variable = variables.get(error.field.removeprefix(f"{table}." if table else ""))
        if variable is None:
            raise
        raise InvalidInputError(variable, error.reason) from None
