"""Variables of the environment that begin like ours and are none: most often a misspelt setting."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

_PREFIX: Final = "DEERMEM_"
_ALWAYS: Final = frozenset(["DEERMEM_DATA_DIR", "DEERMEM_USER_ID"])
# Kubernetes describes a service that is called `deermem` to every container with such variables.
_OF_KUBERNETES: Final = re.compile(
    r"DEERMEM_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP)(?:_\w+)?))"
    r"|DEERMEM_PORT"
)


def unknown_variables(environment: Mapping[str, str]) -> str:
    """Says which variables set nothing, and what they may be misspelt from; empty if there are none."""
    unknown = sorted(
        name
        for name, text in environment.items()
        if text and name.startswith(_PREFIX) and name not in _ALWAYS
    )
    if not unknown:
        return ""
    known = known_variables()
    # What has the prefix of a family is looked at where the family counts: `serve` refuses it.
    told = [
        f"{name}{_meant(name, known)}"
        for name in unknown
        if name not in known and not name.startswith(families()) and not _OF_KUBERNETES.fullmatch(name)
    ]
    if not told:
        return ""
    return f"no setting of DeerMem, and ignored: {', '.join(told)}"


def known_variables() -> set[str]:
    """Returns every variable that DeerMem knows whatever is installed."""
    from dataclasses import fields

    from deermem import config
    from deermem.cli.options import STORAGE_CLASS

    edge = {config.DATA_DIR, config.USER_ID, config.LOCK_TIMEOUT, config.UNDO_DAYS, config.MANIFEST_FILENAME}
    names = [*(each.name for each in fields(config.DeerMemConfig)), *config.FIXED]
    return {*edge, STORAGE_CLASS, *(f"{_PREFIX}{name.upper()}" for name in names)}


def families() -> tuple[str, ...]:
    """Returns the prefixes of the variables that `serve` and `mcp` read, each with a table of its own."""
    return ("DEERMEM_GATEWAY_", "DEERMEM_AUTH_", "DEERMEM_LIMIT_", "DEERMEM_LIMITS_")


def _meant(name: str, known: set[str]) -> str:
    near = get_close_matches(name, [*sorted(known), *_of_families()], n=1, cutoff=0.75)
    return f" (did you mean {near[0]}?)" if near else ""


def _of_families() -> list[str]:
    """Returns the variables of the families, as far as what reads them is installed."""
    from dataclasses import fields

    try:
        from deermem.asgi.limits import LimitSettings
        from deermem.gateway.auth.settings import AuthSettings
        from deermem.gateway.settings import GatewaySettings
    except ModuleNotFoundError:
        return []
    tables = (
        ("DEERMEM_GATEWAY_", fields(GatewaySettings)),
        ("DEERMEM_AUTH_", fields(AuthSettings)),
        ("DEERMEM_LIMIT_", fields(LimitSettings)),
    )
    return [f"{prefix}{each.name.upper()}" for prefix, table in tables for each in table]


def unknown_here() -> str:
    """Says the same of the environment of this process."""
    return unknown_variables(os.environ)
