"""What is not released yet, for the page of changes: the fragments of changelog.d by their kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MARK: Final = "<!-- fragments of changelog.d are gathered below this line -->\n"
_KINDS: Final = ("added", "changed", "fixed", "removed", "security")


def with_unreleased(changelog: str, folder: Path) -> str:
    """Returns the page of changes with those that are not released yet, as the next release will tell them.

    Args:
        changelog: The page.
        folder: Where the fragments are.
    """
    parts = []
    for kind in _KINDS:
        fragments = sorted(folder.glob(f"*.{kind}.md")) + sorted(folder.glob(f"*.{kind}.*.md"))
        told = [" ".join(fragment.read_text("utf-8").split()) for fragment in fragments]
        if told:
            parts += [f"### {kind.capitalize()}", "\n".join(f"- {each}" for each in told)]
    text = "\n\n".join(["## Not released yet", *parts]) if parts else ""
    return changelog.replace(MARK, f"{text}\n\n")
