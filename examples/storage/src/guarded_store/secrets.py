"""Finds what looks like a secret in a text. Pure; knows nothing of memories."""

from __future__ import annotations

import re
from typing import Final

# A token begins where a run of its characters does: so each run is looked at once, however long it is.
_KINDS: Final = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"),
    "an access key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60})"),
    "a token of Slack": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10}"),
    "an API key": re.compile(r"\bsk-[\w-]{20}"),
    "a signed token": re.compile(r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10}"),
}


def kind_of_secret(text: str) -> str | None:
    """Says what kind of secret a text holds; `None` if it looks harmless."""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), None)
