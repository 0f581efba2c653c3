"""Settings, and the environment that the edges take them from.

The library itself never looks at the environment: who builds a `MemoryRepository` passes everything.

| variable | means | without it |
| --- | --- | --- |
| `DEERMEM_DATA_DIR` | the storage root | `~/.deermem` |
| `DEERMEM_USER_ID` | the user | `default` |
| `DEERMEM_LOCK_TIMEOUT` | how long a writer waits for its turn, 1 to 120 seconds | 10 |

An empty variable counts as none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from deermem.errors import InvalidInputError

DATA_DIR: Final = "DEERMEM_DATA_DIR"
USER_ID: Final = "DEERMEM_USER_ID"
LOCK_TIMEOUT: Final = "DEERMEM_LOCK_TIMEOUT"

DEFAULT_USER: Final = "default"
DEFAULT_ROOT_NAME: Final = ".deermem"
DEFAULT_TIMEOUT: Final = 10.0
MAX_TIMEOUT: Final = 120.0


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """Is what the environment says to a command line or a server.

    `home` is `None` where the system knows no home directory, as for an unlisted user of a container.
    """

    data_dir: str | None
    home: str | None
    user_id: str = DEFAULT_USER
    lock_timeout: float = DEFAULT_TIMEOUT

    def storage_path(self, given: str | None = None) -> str:
        """Returns the storage root: the one given, else that of the environment, else `~/.deermem`.

        A leading `~` stands for the home directory, also where no shell has replaced it.

        Raises:
            InvalidInputError: The path is empty, or the home directory is needed and unknown.
        """
        path = self.data_dir if given is None else given
        if path is None:
            path = f"~/{DEFAULT_ROOT_NAME}"
        if not path:
            raise InvalidInputError("storage_path", "must not be empty")
        if path != "~" and not path.startswith(("~/", f"~{os.sep}")):
            return path
        if self.home is None:
            raise InvalidInputError("storage_path", "is not given, and no home directory is known")
        return self.home + path[1:]


def parse_environment(environment: Mapping[str, str], home: str | None) -> EdgeSettings:
    """Reads the settings from the variables of an environment.

    Raises:
        InvalidInputError: Names the variable that breaks its rule.
    """
    return EdgeSettings(
        data_dir=environment.get(DATA_DIR) or None,
        home=home or None,
        user_id=environment.get(USER_ID) or DEFAULT_USER,
        lock_timeout=_parse_timeout(environment.get(LOCK_TIMEOUT)),
    )


def read_environment() -> EdgeSettings:
    """Reads the settings from the environment of this process.

    Raises:
        InvalidInputError: Names the variable that breaks its rule.
    """
    home = os.path.expanduser("~")
    known = home != "~" and os.environ.get("HOME") != ""
    return parse_environment(os.environ, home if known else None)


def _parse_timeout(text: str | None) -> float:
    if not text:
        return DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= MAX_TIMEOUT:
        raise InvalidInputError(LOCK_TIMEOUT, f"must be a number of seconds from 1 to {MAX_TIMEOUT:.0f}")
    return seconds
