"""The page of all settings: name, type, default, range and variable, as the code has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from enum import StrEnum
from typing import Any, Final

from deermem import DeerMemConfig, config
from deermem.asgi import limits
from deermem.asgi.limits import LimitSettings
from deermem.gateway import settings as gateway
from deermem.gateway.auth import settings as auth
from deermem.gateway.auth.settings import AuthSettings
from deermem.gateway.settings import GatewaySettings
from tools.site.tables import code, table

_HEADS: Final = ("setting", "type", "default", "range", "variable")
_OPENING: Final = """\
# All settings

As the code has them. What each means is told in [the settings of the memory manager](../configuration.md),
[the gateway](../http.md#settings), [the authentication](../authentication.md#settings) and
[the limits](../authentication.md#limits).
"""


def page() -> str:
    """Returns the page."""
    auth_ranges = {"leeway": (0, auth.MAX_LEEWAY)}
    return "\n\n".join(
        [
            _OPENING,
            "## Memory manager\n\nAt the top of a settings file, and of a host's dictionary.",
            _table("", "DEERMEM_", DeerMemConfig, {name: each[1:] for name, each in config._RANGES.items()}),  # noqa: SLF001 - the ranges that are checked
            "## Gateway\n\nIn the table `[gateway]`.",
            _table("gateway.", gateway.PREFIX, GatewaySettings, gateway._RANGES),  # noqa: SLF001 - the same
            "## Authentication\n\nIn the table `[auth]`; each but `mode` belongs to one mode.",
            _table("auth.", auth.PREFIX, AuthSettings, auth_ranges),
            "## Limits\n\nIn the table `[limits]`.",
            _table("limits.", limits.PREFIX, LimitSettings, limits._RANGES),  # noqa: SLF001 - the same
            "",
        ]
    )


def _table(prefix: str, variables: str, kind: type, ranges: Mapping[str, tuple[float, float]]) -> str:
    return table(_HEADS, [_row(prefix, variables, each, ranges.get(each.name)) for each in fields(kind)])


def _row(prefix: str, variables: str, setting: Field[Any], limits: tuple[float, float] | None) -> list[str]:
    anchor = f"setting-{prefix}{setting.name}"
    span = " to ".join(f"{each:,.10g}" for each in limits) if limits else _choices(setting.default)
    return [
        f'<span id="{anchor}"></span>`{setting.name}`',
        _type(setting),
        code(_told(default_of(setting))),
        span,
        code(f"{variables}{setting.name.upper()}"),
    ]


def default_of(setting: Field[Any]) -> Any:
    """Returns what holds where a setting is not given."""
    return setting.default if setting.default_factory is MISSING else setting.default_factory()


def _type(setting: Field[Any]) -> str:
    written = str(setting.type)
    names = {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "Mode": "text"}
    return names.get(written, "list of texts")


def _choices(default: Any) -> str:
    return ", ".join(code(each.value) for each in type(default)) if isinstance(default, StrEnum) else ""


def _told(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list | tuple):
        return ", ".join(default)
    return f"{default:g}" if isinstance(default, float) else str(default)
