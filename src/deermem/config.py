"""Settings, and the environment that the edges take them from.

The store itself never looks at the environment: who builds a `MemoryRepository` passes everything.

| variable | means | without it |
| --- | --- | --- |
| `DEERMEM_DATA_DIR` | the storage root | `~/.deermem` |
| `DEERMEM_USER_ID` | the user | `default` |
| `DEERMEM_LOCK_TIMEOUT` | how long a writer waits for its turn, 1 to 120 seconds | 10 |
| `DEERMEM_UNDO_DAYS` | how many days what a clear, an import, a restore or a trim replaced is kept | 7 |
| `DEERMEM_MANIFEST_FILENAME` | the name of the summary file | `memory.json` |
| `DEERMEM_MAX_FACTS` and so on | the setting of `DeerMemConfig` with that name | its default |

An empty variable counts as none.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from deermem.errors import InvalidInputError
from deermem.format.layout import DEFAULT_MANIFEST, check_manifest_name

DATA_DIR: Final = "DEERMEM_DATA_DIR"
USER_ID: Final = "DEERMEM_USER_ID"
LOCK_TIMEOUT: Final = "DEERMEM_LOCK_TIMEOUT"
UNDO_DAYS: Final = "DEERMEM_UNDO_DAYS"
MANIFEST_FILENAME: Final = "DEERMEM_MANIFEST_FILENAME"

DEFAULT_USER: Final = "default"
DEFAULT_ROOT_NAME: Final = ".deermem"
DEFAULT_TIMEOUT: Final = 10.0
MAX_TIMEOUT: Final = 120.0
DEFAULT_UNDO_DAYS: Final = 7
MAX_UNDO_DAYS: Final = 3_650

MAX_SETTINGS_BYTES: Final = 1_000_000

_RANGES: Final[Mapping[str, tuple[type[int | float], float, float]]] = {
    "file_lock_timeout_seconds": (float, 1, MAX_TIMEOUT),
    "max_facts": (int, 10, 100_000),
    "fact_confidence_threshold": (float, 0, 1),
    "max_injection_tokens": (int, 100, 8_000),
    "guaranteed_token_budget": (int, 0, 8_000),
    "undo_days": (int, 0, MAX_UNDO_DAYS),
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """Is what the environment says to a command line or a server.

    `home` is `None` where the system knows no home directory, as for an unlisted user of a container.
    """

    data_dir: str | None
    home: str | None
    user_id: str = DEFAULT_USER
    lock_timeout: float = DEFAULT_TIMEOUT
    undo_days: int = DEFAULT_UNDO_DAYS
    manifest_filename: str = DEFAULT_MANIFEST

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
        undo_days=_parse_undo_days(environment.get(UNDO_DAYS)),
        manifest_filename=environment.get(MANIFEST_FILENAME) or DEFAULT_MANIFEST,
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


def _parse_undo_days(text: str | None) -> int:
    if not text:
        return DEFAULT_UNDO_DAYS
    days = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not 0 <= days <= MAX_UNDO_DAYS:
        raise InvalidInputError(UNDO_DAYS, f"must be a number of days from 0 to {MAX_UNDO_DAYS:,}")
    return days


@dataclass(frozen=True, slots=True, kw_only=True)
class DeerMemConfig:
    """Holds the settings of a memory manager, checked; `None` means the default (contract section 6).

    An empty `storage_path` is that of the environment, else `~/.deermem`. `storage_class` is the dotted
    path of a subclass of `MemoryRepository`, empty for that class itself.

    Raises:
        InvalidInputError: Names the setting that breaks its rule.
    """

    storage_path: str = ""
    storage_class: str = ""
    strict_user_scope: bool = False
    manifest_filename: str = DEFAULT_MANIFEST
    file_lock_timeout_seconds: float = 10
    retrieval_adapter: str = ""
    max_facts: int = 100
    fact_confidence_threshold: float = 0.7
    max_injection_tokens: int = 2000
    guaranteed_categories: list[str] = field(default_factory=lambda: ["correction"])
    guaranteed_token_budget: int = 500
    undo_days: int = DEFAULT_UNDO_DAYS

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) is None:
                object.__setattr__(self, each.name, getattr(_DEFAULTS, each.name))
        if isinstance(self.storage_path, os.PathLike):
            object.__setattr__(self, "storage_path", os.fspath(self.storage_path))
        for name in ("storage_path", "storage_class", "retrieval_adapter"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInputError(name, "must be a string")
        if os.path.lexists(self.storage_path) and not os.path.isdir(self.storage_path):
            raise InvalidInputError("storage_path", f"{self.storage_path} is not a directory")
        if not isinstance(self.strict_user_scope, bool):
            raise InvalidInputError("strict_user_scope", "must be true or false")
        check_manifest_name(self.manifest_filename)
        for name, (kind, low, high) in _RANGES.items():
            _check_number(name, getattr(self, name), kind, low, high)
        object.__setattr__(self, "guaranteed_categories", _texts(self.guaranteed_categories))

    @classmethod
    def from_backend_config(cls, backend_config: Mapping[str, Any] | None) -> Self:
        """Takes what is known from a host's dictionary; one warning names all that is ignored.

        Raises:
            InvalidInputError: Names the setting that breaks its rule.
        """
        if backend_config is None:
            return cls()
        if not isinstance(backend_config, Mapping):
            raise InvalidInputError("backend_config", "must be a mapping of names to values")
        known = {each.name for each in fields(cls)}
        ignored = sorted(str(key) for key in backend_config if key not in known)
        if ignored:
            _log.warning("ignored settings that DeerMem does not have: %s", ", ".join(ignored))
        return cls(**{name: value for name, value in backend_config.items() if name in known})

    @classmethod
    def load(cls, path: str | None = None, environment: Mapping[str, str] | None = None) -> Self:
        """Reads a settings file, if one is named, and the environment, which wins.

        Raises:
            InvalidInputError: Names the file, the variable or the setting that breaks its rule.
            OSError: The file cannot be read.
        """
        from_file = {} if path is None else read_settings_file(path)
        own = {key: value for key, value in from_file.items() if not isinstance(value, Mapping)}
        variables = os.environ if environment is None else environment
        return cls.from_backend_config({**own, **parse_variables(variables)})

    def storage_root(self) -> str:
        """Returns the storage root: the one that is set, else that of the environment.

        Raises:
            InvalidInputError: It is in a home directory, and none is known.
        """
        return read_environment().storage_path(self.storage_path or None)


# Settings that this release does not have, which a host may still set (plan section 11).
FIXED: Final = ("fact_format", "journal_enabled")


def read_settings_file(path: str) -> dict[str, Any]:
    """Returns what a TOML or YAML file says, by its ending.

    Settings of `DeerMemConfig` stand at its top; tables in it are those of others, such as a server.

    Raises:
        InvalidInputError: The file is not what its ending says, or not a table.
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(MAX_SETTINGS_BYTES + 1)
    if len(data) > MAX_SETTINGS_BYTES:
        raise InvalidInputError(path, f"is larger than {MAX_SETTINGS_BYTES:,} bytes")
    language, parse = _language(path)
    try:
        document = parse(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(path, f"is not {language}: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise InvalidInputError(path, "must be a table of names and values")
    return document


def _language(path: str) -> tuple[str, Callable[[str], Any]]:
    """Returns what a file is written in, by its ending, and what reads that."""
    if path.endswith(".toml"):
        import tomllib

        return "TOML", tomllib.loads
    if path.endswith((".yaml", ".yml")):
        return "YAML", _parse_yaml
    raise InvalidInputError(path, "must end in .toml, .yaml or .yml")


def _parse_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def parse_variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the settings that variables of an environment set, `DEERMEM_MAX_FACTS` and the like.

    Raises:
        InvalidInputError: Names the variable that is no number, or neither true nor false.
    """
    found: dict[str, Any] = {}
    if environment.get(LOCK_TIMEOUT):
        found["file_lock_timeout_seconds"] = _parse_timeout(environment[LOCK_TIMEOUT])
    defaults = {each.name: getattr(_DEFAULTS, each.name) for each in fields(DeerMemConfig)}
    for name, default in {**defaults, **dict.fromkeys(FIXED, "")}.items():
        variable = f"DEERMEM_{name.upper()}"
        if environment.get(variable):
            found[name] = _parse_variable(variable, environment[variable], default)
    return found


def _parse_variable(variable: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text.lower() not in _BOOLEANS:
            raise InvalidInputError(variable, f"must be one of {', '.join(_BOOLEANS)}")
        return _BOOLEANS[text.lower()]
    if isinstance(default, int | float):
        try:
            return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
        except ValueError:
            raise InvalidInputError(variable, "must be a number") from None
    if isinstance(default, list):
        return [item.strip() for item in text.split(",") if item.strip()]
    return text


_BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _check_number(name: str, value: Any, kind: type[int | float], low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | kind):
        raise InvalidInputError(name, "must be an integer" if kind is int else "must be a number")
    if not low <= value <= high:
        raise InvalidInputError(name, f"must be from {low:,.10g} to {high:,.10g}")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InvalidInputError("guaranteed_categories", "must be a list of strings")
    texts = list(value)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidInputError("guaranteed_categories", "must be a list of strings")
    return [text.strip() for text in texts]


_DEFAULTS: Final = DeerMemConfig()
