"""Extraction hooks that each break one rule of the contract, under the name of the test that finds it out."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from deermem import ExtractionRequest
from tests.testing.planted import Planted

NOTE = "note: "


class Hook:
    """Keeps every rule: takes what the user says after `note: ` for a fact.

    `patience` is for the contract: on a busy machine only a hook that hangs may come to its end.
    """

    patience = 60.0
    confidence: Any = 0.9

    def __call__(self, request: ExtractionRequest) -> Mapping[str, Any] | None:
        return {"newFacts": [self.fact(text, request) for text in self.texts(request)]}

    def fact(self, text: str, _: ExtractionRequest, /) -> dict[str, Any]:
        return {"content": text, "confidence": self.confidence}

    def texts(self, request: ExtractionRequest) -> list[str]:
        found = [self.text_of(message) for message in request.messages]
        notes = [self.clean(text.removeprefix(NOTE)) for text in found if text.startswith(NOTE)]
        return [*dict.fromkeys(notes)]

    def clean(self, text: str) -> str:
        return text.encode("utf-8", "replace").decode("utf-8")[:500].strip()

    def text_of(self, message: Any) -> str:
        if not isinstance(message, dict) or message.get("role") != "user":
            return ""
        return message["content"] if isinstance(message.get("content"), str) else ""


BROKEN: Planted[type[Hook]] = Planted()
breaks = BROKEN.breaks


@breaks("test_a_manager_takes_it", also=None)
class Asynchronous(Hook):
    async def __call__(self, request: ExtractionRequest) -> Any:  # type: ignore[override]
        return super().__call__(request)


@breaks("test_a_manager_learns_by_it", also=["test_a_conversation_that_was_overtaken_is_not_lost"])
class NeverSure(Hook):
    confidence = 0.5


@breaks("test_its_proposals_can_be_stored_whoever_asks")
class NeedsAThread(Hook):
    def fact(self, text: str, request: ExtractionRequest, /) -> dict[str, Any]:
        return {**super().fact(text, request), "confidence": 0.9 if request.thread_id else float("nan")}


@breaks("test_nothing_is_learned_from_a_greeting")
class AlwaysFindsASummary(Hook):
    def __call__(self, request: ExtractionRequest) -> Mapping[str, Any] | None:
        found = {**(super().__call__(request) or {})}
        return found if found["newFacts"] else {"user": {"topOfMind": "Said hello."}}


@breaks("test_the_same_conversation_again_adds_nothing")
class PutsTheThreadIntoTheText(Hook):
    def fact(self, text: str, request: ExtractionRequest, /) -> dict[str, Any]:
        return super().fact(f"{text} (in {request.thread_id})", request)


@breaks(
    "test_it_keeps_what_is_known",
    also=["test_no_text_orders_it_to_forget", "test_a_long_conversation_pushes_out_nothing_that_is_known"],
)
class ReplacesTheMemory(Hook):
    def __call__(self, request: ExtractionRequest) -> Mapping[str, Any] | None:
        found = {**(super().__call__(request) or {})}
        known = [fact["id"] for fact in request.document["facts"]]
        return {**found, "factsToRemove": known} if len(known) > 10 and found["newFacts"] else found


@breaks("test_it_names_only_facts_that_are_there")
class InventsIds(Hook):
    def __call__(self, request: ExtractionRequest) -> Mapping[str, Any] | None:
        found = {**(super().__call__(request) or {})}
        return {**found, "factsToRemove": ["fact_1"]} if found["newFacts"] else found


@breaks("test_it_leaves_the_messages_alone")
class MarksWhatItRead(Hook):
    def text_of(self, message: Any) -> str:
        text = super().text_of(message)
        if text:
            message["read"] = True
        return text


@breaks("test_it_keeps_users_apart")
class KeepsWhatItHeard(Hook):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def texts(self, request: ExtractionRequest) -> list[str]:
        self.heard += super().texts(request)
        return [*dict.fromkeys(self.heard)]


@breaks("test_messages_of_any_shape_are_no_error")
class ExpectsContent(Hook):
    def text_of(self, message: Any) -> str:
        if isinstance(message, dict) and message.get("role") == "user":
            assert message["content"] is not None
        return super().text_of(message)


@breaks("test_any_text_is_no_error")
class PassesTextsThrough(Hook):
    def clean(self, text: str) -> str:
        return text.strip()


@breaks("test_no_text_orders_it_to_forget")
class ObeysJson(Hook):
    def __call__(self, request: ExtractionRequest) -> Mapping[str, Any] | None:
        for message in request.messages:
            text = self.text_of(message)
            if text.startswith("{"):
                return {"factsToRemove": json.loads(text).get("factsToRemove", [])}
        return super().__call__(request)


@breaks("test_what_a_tool_returned_is_not_the_users_word")
class BelievesTools(Hook):
    def text_of(self, message: Any) -> str:
        tool = isinstance(message, dict) and message.get("role") == "tool"
        return super().text_of({**message, "role": "user"} if tool else message)


@breaks("test_it_works_from_several_threads")
class HasTwoConnections(Hook):
    def __init__(self) -> None:
        self.users: set[int] = set()

    def texts(self, request: ExtractionRequest) -> list[str]:
        self.users.add(threading.get_ident())
        if len(self.users) > 2:
            raise RuntimeError("too many connections")
        return super().texts(request)


@breaks("test_a_conversation_that_was_overtaken_is_not_lost")
class ReadsEachThreadOnce(Hook):
    def __init__(self) -> None:
        self.read: set[str | None] = set()

    def texts(self, request: ExtractionRequest) -> list[str]:
        if request.thread_id in self.read and request.user_id == "alice":
            return []
        self.read.add(request.thread_id)
        return super().texts(request)


@breaks("test_a_long_conversation_comes_to_an_end", also=None)
class Hangs(Hook):
    patience = 0.5
    go_on = threading.Event()

    def texts(self, request: ExtractionRequest) -> list[str]:
        if len(request.messages) > 100:
            self.go_on.wait(60)
        return super().texts(request)


@breaks("test_a_long_conversation_pushes_out_nothing_that_is_known")
class NumbersItsFacts(Hook):
    confidence = 1.0

    def texts(self, request: ExtractionRequest) -> list[str]:
        found = [self.text_of(message) for message in request.messages]
        return [self.clean(f"{n}. {text[5:]}") for n, text in enumerate(found) if text.startswith(NOTE)]
