"""An extraction hook for DeerMem that remembers what users ask to remember, and asks no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from deermem import ExtractionRequest
from remember_that.messages import said_by_user

__all__ = ["RememberThat", "requests_in"]

MAX_STATEMENT: Final = 400
MAX_STATEMENTS: Final = 10

# Sentences first: a pattern for whole texts would look at a run of blanks again from each of them.
_END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_REQUEST = re.compile(
    r"\s{0,9}(?:[^,]{1,40},\s)?(?:please,?\s)?"
    r"(?:remember|note|keep in mind|don't forget)(?:\sthat\s|\s?:\s)"
    r"(?P<statement>\S.{2,})",
    re.IGNORECASE,
)
_CATEGORIES: Final = {
    "preference": re.compile(
        r"\bI(?:'d)? (?:rather |really )?(?:like|prefer|love|hate|dislike|avoid)\b", re.IGNORECASE
    ),
    "goal": re.compile(r"\b(?:I want to|I plan to|my goal|by next)\b", re.IGNORECASE),
    "identity": re.compile(r"\b(?:I am|I'm|my name|call me)\b", re.IGNORECASE),
    "constraint": re.compile(r"\b(?:never|always|must|may not|allergic)\b", re.IGNORECASE),
}

FindStatements = Callable[[Sequence[str]], Sequence[str]]


def requests_in(texts: Sequence[str]) -> list[str]:
    """Returns what these texts ask to remember, in the user's own words."""
    sentences = [sentence for text in texts for sentence in _END_OF_SENTENCE.split(text)]
    found = [_REQUEST.match(sentence) for sentence in sentences]
    return [match["statement"].rstrip(".!? ") for match in found if match]


class RememberThat:
    """Makes a fact of each sentence after "remember that …", "please note: …" and the like.

    It keeps no state: the same conversation always gives the same proposal, so it may be called again
    when another writer came first, and from several threads.

    Args:
        find: Returns the statements in what a user said. A model call goes here: whatever it
            answers is cut, counted and compared below, so no answer can flood or empty the memory.
        confidence: Of the new facts; below the setting `fact_confidence_threshold` they are left out.
    """

    def __init__(self, find: FindStatements = requests_in, *, confidence: float = 0.9) -> None:
        self._find = find
        self._confidence = confidence

    def __call__(self, request: ExtractionRequest) -> Mapping[str, Any] | None:
        """Proposes the statements that the memory does not have yet."""
        statements = self._find(said_by_user(request.messages))
        known = {fact["content"].casefold() for fact in request.document["facts"]}
        new: dict[str, dict[str, Any]] = {}
        for statement in statements:
            text = " ".join(statement.split())[:MAX_STATEMENT].strip()
            if text and text.casefold() not in known and len(new) < MAX_STATEMENTS:
                new.setdefault(text.casefold(), self._fact(text))
        return {"newFacts": [*new.values()]} if new else None

    def _fact(self, text: str) -> dict[str, Any]:
        category = next((name for name, pattern in _CATEGORIES.items() if pattern.search(text)), "context")
        return {"content": text, "category": category, "confidence": self._confidence}
