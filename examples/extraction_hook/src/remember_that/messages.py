"""Reads what a user said from messages of several shapes. Pure; knows nothing of memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

_USERS: Final = ("user", "human")


def said_by_user(messages: Iterable[Any]) -> list[str]:
    """Returns the texts that the user wrote, and none of those that a model or a tool did.

    A message is a mapping with `role` and `content`, or an object with `type` (or `role`) and `content`. The
    content is a text or a list of parts. What has another shape said nothing.
    """
    return [
        _clean(text)
        for message in messages
        if _speaker(message) in _USERS
        for text in _texts(message)
        if text
    ]


def _speaker(message: Any) -> Any:
    if isinstance(message, Mapping):
        return message.get("role") or message.get("type")
    return getattr(message, "role", None) or getattr(message, "type", None)


def _texts(message: Any) -> list[str]:
    content = message.get("content") if isinstance(message, Mapping) else getattr(message, "content", None)
    parts = content if isinstance(content, list | tuple) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return [text for text in texts if isinstance(text, str)]


def _clean(text: str) -> str:
    """Returns a text that UTF-8 can hold: half an emoji must not cost the rest of the conversation."""
    return text.encode("utf-8", "replace").decode("utf-8")
