"""The hook keeps every rule of an extraction hook, and takes for a fact what it says it does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from remember_that import MAX_STATEMENTS, RememberThat, requests_in

from deermem import DeerMem, ExtractionHook
from deermem.testing.extraction_contract import ExtractionHookContract
from deermem.testing.extraction_samples import Message, request_of, texts_of


class TestRememberThat(ExtractionHookContract):
    """Inherits one test for each rule."""

    def make_hook(self) -> ExtractionHook:
        """Builds a hook."""
        return RememberThat()

    def conversation(self) -> Sequence[Any]:
        """Returns what a user might say."""
        return [
            {"role": "user", "content": "Please remember that I prefer tea. What is the time?"},
            {"role": "assistant", "content": "Noted. It is noon."},
        ]


class TestWithMessageObjects(TestRememberThat):
    """Runs them all with messages as libraries for agents have them."""

    def conversation(self) -> Sequence[Any]:
        """Returns objects, of which one has its text in parts."""
        parts = [{"type": "text", "text": "Remember that I prefer tea."}, {"type": "image_url"}]
        return [Message("Hello."), Message(parts), Message("Noted.", "ai")]


class TestWithAModel(TestRememberThat):
    """Runs them all with a double of a model in place of the patterns."""

    def make_hook(self) -> ExtractionHook:
        """Builds a hook that asks the double."""
        return RememberThat(lambda texts: [text[:60] for text in texts if "remember" in text.lower()])


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("Remember that I prefer tea.", ["I prefer tea"]),
        ("please note: my sister is Ada", ["my sister is Ada"]),
        ("Thanks! Don't forget that I am in Oslo.", ["I am in Oslo"]),
        ("Keep in mind that I never eat nuts! Bye.", ["I never eat nuts"]),
        ("Remember that A is B. Remember that C is D.", ["A is B", "C is D"]),
        ("Remember that the project uses Python 3.12.", ["the project uses Python 3.12"]),
        ("Before I go, please remember that A is B.", ["A is B"]),
        ("Do you remember the tea?", []),
        ("I remember that day.", []),
        ("Remember that", []),
    ],
)
def test_a_request_is_known_by_its_words(text: str, statements: list[str]) -> None:
    assert requests_in([text]) == statements


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("I prefer tea", "preference"),
        ("I want to run a marathon", "goal"),
        ("I'm a nurse", "identity"),
        ("the build must pass", "constraint"),
        ("the office is in Oslo", "context"),
    ],
)
def test_a_fact_gets_the_category_that_its_words_tell(text: str, category: str) -> None:
    request = request_of([{"role": "user", "content": f"Remember that {text}."}])
    proposal = RememberThat()(request)
    assert proposal is not None
    assert [fact["category"] for fact in proposal["newFacts"]] == [category]


def test_a_model_that_answers_far_too_much_is_cut_short() -> None:
    hook = RememberThat(lambda _: [f"statement {n} {'x' * 5_000}" for n in range(1_000)])
    texts = texts_of(hook(request_of([{"role": "user", "content": "hello"}])))
    assert len(texts) == MAX_STATEMENTS
    assert max(map(len, texts)) <= 400


def test_a_manager_remembers(tmp_path: Path) -> None:
    with DeerMem({"storage_path": str(tmp_path)}, extraction_hook=RememberThat()) as manager:
        manager.add("t1", [{"role": "user", "content": "Remember that I prefer tea."}], user_id="alice")
        assert manager.shutdown_flush(30)
        assert "- [preference | 0.90] I prefer tea" in manager.get_context("alice")
