"""The text that a model is given of a memory: a pure function of summaries and facts (contract section 6).

    User Context:
    - Work: …

    History:
    - Recent: …

    Facts:
    - [correction | 0.95] … (avoid: …)
    - [preference | 0.90] …

Every entry is one line, whatever line breaks its text has, so none can pass for another. Tokens are
estimated: a CJK character is half a token and any other a quarter, so costs are counted in quarters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from deermem.model.fact import Fact
from deermem.model.summaries import SectionKey, Summaries

CORRECTION: Final = "correction"

_BLOCKS: Final[tuple[tuple[str, tuple[tuple[str, SectionKey], ...]], ...]] = (
    (
        "User Context:",
        (
            ("Work", ("user", "workContext")),
            ("Personal", ("user", "personalContext")),
            ("Current Focus", ("user", "topOfMind")),
        ),
    ),
    (
        "History:",
        (
            ("Recent", ("history", "recentMonths")),
            ("Earlier", ("history", "earlierContext")),
            ("Background", ("history", "longTermBackground")),
        ),
    ),
)
_FACTS: Final = "Facts:"
_SEPARATOR: Final = "\n\n"
_CUT: Final = "…"
_SHORTEST_CUT: Final = 80

# Han, kana, Hangul and the wide forms beside them.
_CJK: Final = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """Limits a context, in tokens.

    `guaranteed_categories` are those whose facts come first and have a budget of their own. Together
    with them the text may be longer than `max_tokens`, by no more than `guaranteed_tokens`.
    """

    max_tokens: int
    guaranteed_categories: frozenset[str]
    guaranteed_tokens: int


def estimate_tokens(text: str) -> float:
    """Returns about how many tokens a model takes for a text; nothing is looked up anywhere."""
    return _cost(text) / 4


def context_text(summaries: Summaries, facts: Iterable[Fact], budget: ContextBudget) -> str:
    """Returns the text; empty when nothing is known.

    Facts come with the highest confidence first, equals in the order of their ids. A group of facts
    ends at the first that its budget has no room for. Summaries that are too long are cut short.
    """
    ranked = sorted(facts, key=lambda fact: (-fact.confidence, fact.id))
    guaranteed = [fact for fact in ranked if _is_of(fact, budget.guaranteed_categories)]
    regular = [fact for fact in ranked if not _is_of(fact, budget.guaranteed_categories)]
    room = 4 * budget.max_tokens
    header_cost = _cost(f"{_SEPARATOR}{_FACTS}") if ranked else 0
    blocks = _summary_blocks(summaries, room - header_cost)
    first, first_cost = _fitting_lines(guaranteed, 4 * budget.guaranteed_tokens)
    room -= _cost(_SEPARATOR.join(blocks)) + header_cost + first_cost
    second, _ = _fitting_lines(regular, room)
    if first or second:
        blocks.append("\n".join((_FACTS, *first, *second)))
    return _SEPARATOR.join(blocks)


def _is_of(fact: Fact, categories: Collection[str]) -> bool:
    return fact.category in categories or fact.category_extension in categories


def _cost(text: str) -> int:
    """Returns the estimate in quarters of a token."""
    return len(text) if text.isascii() else len(text) + sum(map(len, _CJK.findall(text)))


def _summary_blocks(summaries: Summaries, room: int) -> list[str]:
    """Returns the blocks of summaries; the entry that there is no room for is cut, and is the last."""
    blocks: list[str] = []
    for header, entries in _BLOCKS:
        lines: list[str] = []
        for label, key in entries:
            summary = _one_line(summaries[key].summary)
            if not summary:
                continue
            line = f"- {label}: {summary}"
            before = "\n" if lines else f"{_SEPARATOR if blocks else ''}{header}\n"
            left = room - _cost(before)
            line, complete = (line, True) if _cost(line) <= left else (_cut(line, left), False)
            if line:
                lines.append(line)
            if not complete:
                return [*blocks, "\n".join((header, *lines))] if lines else blocks
            room = left - _cost(line)
        if lines:
            blocks.append("\n".join((header, *lines)))
    return blocks


def _cut(line: str, room: int) -> str:
    """Returns the start of a line and a sign that more follows; empty where little of it would be left."""
    if room < _SHORTEST_CUT:
        return ""
    length = min(room - 1, len(line))
    while _cost(line[:length]) > room - 1:
        length -= max(1, (_cost(line[:length]) - room + 1) // 2)
    # Half an escaped character would show as letters.
    return re.sub(r"&[a-z]*$", "", line[:length]).rstrip() + _CUT


def _fitting_lines(facts: Iterable[Fact], room: int) -> tuple[list[str], int]:
    lines: list[str] = []
    used = 0
    for fact in facts:
        line = _fact_line(fact)
        cost = 1 + _cost(line)
        if used + cost > room:
            break
        lines.append(line)
        used += cost
    return lines, used


def _fact_line(fact: Fact) -> str:
    category = _one_line(fact.category_extension or fact.category)
    line = f"- [{category} | {fact.confidence:.2f}] {_one_line(fact.content)}"
    if fact.category == CORRECTION and fact.source_error is not None:
        line += f" (avoid: {_one_line(fact.source_error)})"
    return line


def _one_line(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(escaped.splitlines()).strip()
