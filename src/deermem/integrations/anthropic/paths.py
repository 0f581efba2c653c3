"""Which fact or summary a path below `/memories` means; nothing of a path ever names a file on the disk.

| path | is |
| --- | --- |
| `/memories/facts/{id}.md` | the fact with this id, whatever made it |
| `/memories/summaries/work-context.md` and five others | a summary of the user, shared by all agents |
| any other file | the fact `file-` and the SHA-256 of the path, which keeps the path as data |

Directories are what the paths of files have in common: there are no empty ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

from anthropic.lib.tools import ToolError

from deermem.format.layout import is_windows_device
from deermem.integrations.anthropic.answers import refusal
from deermem.model.identity import FactId, is_fact_id
from deermem.model.summaries import SectionKey

ROOT: Final = "/memories"
FACTS: Final = "facts"
SUMMARIES: Final = "summaries"
RESERVED: Final = (FACTS, SUMMARIES)
SUFFIX: Final = ".md"
MAX_PATH_BYTES: Final = 1_000
MAX_PARTS: Final = 32

SUMMARY_FILES: Final[Mapping[str, SectionKey]] = MappingProxyType(
    {
        "work-context.md": ("user", "workContext"),
        "personal-context.md": ("user", "personalContext"),
        "top-of-mind.md": ("user", "topOfMind"),
        "recent-months.md": ("history", "recentMonths"),
        "earlier-context.md": ("history", "earlierContext"),
        "long-term-background.md": ("history", "longTermBackground"),
    }
)
SUMMARY_NAMES: Final = {section: name for name, section in SUMMARY_FILES.items()}

_HASHED = re.compile(r"file-[0-9a-f]{64}")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029\ud800-\udfff]")

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryPath:
    """Is a checked path: its parts below `/memories`, and as the model wrote it."""

    parts: Parts
    shown: str

    @property
    def in_summaries(self) -> bool:
        """Whether it lies below `/memories/summaries`."""
        return self.parts[:1] == (SUMMARIES,)

    @property
    def in_facts(self) -> bool:
        """Whether it lies below `/memories/facts`."""
        return self.parts[:1] == (FACTS,)

    @property
    def is_fixed(self) -> bool:
        """Whether it is a directory that can be neither deleted nor renamed."""
        return not self.parts or (len(self.parts) == 1 and self.parts[0] in RESERVED)


def parse_path(path: object) -> MemoryPath:
    """Checks a path.

    Raises:
        ToolError: It does not stay below `/memories`, or no file can have it.
    """
    if not isinstance(path, str) or not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise refusal(f"Error: Path must start with {ROOT}, got: {str(path)[:200]!r}")
    below = path[len(ROOT) + 1 :].removesuffix("/")
    parts = tuple(below.split("/")) if below else ()
    # First, because what is longer could take hours to decode.
    if len(below.encode(errors="replace")) > MAX_PATH_BYTES or len(parts) > MAX_PARTS:
        raise refusal(
            f"Error: Path {path[:200]!r} is longer than {MAX_PATH_BYTES} bytes or {MAX_PARTS} names"
        )
    if any(_escapes(part) for part in parts):
        raise refusal(f"Error: Path {path[:200]!r} would escape {ROOT} directory")
    if _FORBIDDEN.search(below) or any(not part.strip() for part in parts):
        raise refusal(f"Error: Path {path[:200]!r} has an empty name, a backslash or a control character")
    return MemoryPath(parts, path)


def _escapes(part: str) -> bool:
    """Tells whether a name means a way up, also after as many rounds of URL decoding as it has."""
    while True:
        if part.strip() in (".", "..") or (re.search(r"(^|[/\\])\s*\.\.\s*([/\\]|$)", part)):
            return True
        decoded = unquote(part)
        if decoded == part:
            return False
        if re.search(r"[/\\\x00]", decoded):
            return True
        part = decoded


def fact_id_of(parts: Parts) -> FactId | None:
    """Returns the id of the fact that a file is; `None` if no file can lie there."""
    if parts[:1] == (FACTS,):
        stem = parts[1].removesuffix(SUFFIX) if len(parts) == 2 and parts[1].endswith(SUFFIX) else ""
        return FactId(stem) if is_fact_id(stem) else None
    if not parts or parts[0] == SUMMARIES:
        return None
    return FactId(f"file-{sha256('/'.join(parts).encode()).hexdigest()}")


def is_hashed(fact_id: str) -> bool:
    """Tells whether an id is of the form that files outside `/memories/facts` have."""
    return _HASHED.fullmatch(fact_id) is not None


def may_be_made(fact_id: FactId) -> bool:
    """Tells whether a new file may be `/memories/facts/{id}.md`: on every disk it needs its own name."""
    return fact_id == fact_id.lower() and not is_windows_device(fact_id) and not is_hashed(fact_id)


def fact_parts(fact_id: FactId, kept: str | None) -> Parts:
    """Returns where a fact is shown; `kept` is the path that it says it has."""
    if kept is not None and is_hashed(fact_id):
        try:
            parts = parse_path(f"{ROOT}/{kept}").parts
        except ToolError:
            parts = ()  # the file was made up
        if fact_id_of(parts) == fact_id:
            return parts
    return FACTS, f"{fact_id}{SUFFIX}"


def summary_of(parts: Parts) -> SectionKey | None:
    """Returns the summary that a file is; `None` if it is none."""
    return SUMMARY_FILES.get(parts[1]) if len(parts) == 2 and parts[0] == SUMMARIES else None
