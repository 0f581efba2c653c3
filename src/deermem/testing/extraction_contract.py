"""The rules that every extraction hook keeps, as tests to inherit.

    class TestMyHook(ExtractionHookContract):
        def make_hook(self) -> ExtractionHook:
            return MyHook(model=FakeModel())

        def conversation(self) -> Sequence[Any]:
            return [{"role": "user", "content": "I am going to Oslo in May."}]

A hook that asks a model is tested with a double of the model that answers by what it is asked: an answer that
is always the same learns from a greeting, too.
"""

# ruff: noqa: D102 - the name of a test is its claim

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

from deermem.manager import DeerMem, ExtractionHook, ExtractionRequest
from deermem.manager.proposal import read_proposal
from deermem.model.fact import DEFAULT_CONFIDENCE
from deermem.testing.claims import allowed, require
from deermem.testing.extraction_samples import (
    HOSTILE_TEXTS,
    KNOWN,
    SMALL_TALK,
    STRANGE_MESSAGES,
    THREAD,
    USER,
    from_a_tool,
    manager_with,
    orders,
    request_of,
    saying,
    state_of,
    stored,
    texts_of,
    warnings_of_extraction,
)

ASKERS: tuple[dict[str, Any], ...] = (
    {"thread_id": None, "trace_id": None},
    {"user_id": None},
    {"user_id": "a@b.c", "agent_name": "research-agent"},
)
THREADS = 4


class ExtractionHookContract(ABC):
    """Tests an extraction hook; inherit from it in a class whose name starts with `Test`.

    Each test builds its hook with `make_hook`. `patience` is how long one call may take, in seconds.
    """

    patience: ClassVar[float] = 30.0

    @abstractmethod
    def make_hook(self) -> ExtractionHook:
        """Returns a new hook that nobody has called."""

    @abstractmethod
    def conversation(self) -> Sequence[Any]:
        """Returns new messages, in the host's shape, of which the hook learns at least one new fact."""

    def _propose(self, hook: ExtractionHook, request: ExtractionRequest) -> Mapping[str, Any] | None:
        """Calls the hook as the manager does, in a thread of its own, but not for ever."""
        outcome: list[Mapping[str, Any] | None] = []
        failure: list[BaseException] = []

        def call() -> None:
            try:
                outcome.append(hook(request))
            except BaseException as error:  # noqa: BLE001 - it is told where the hook was called
                failure.append(error)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(self.patience)
        require(not thread.is_alive(), f"the hook has not returned after {self.patience} s")
        if failure:
            raise AssertionError(f"the hook raises {type(failure[0]).__name__}: {failure[0]}") from failure[0]
        return outcome[0]

    def _tell(self, manager: DeerMem, messages: Sequence[Any], thread_id: str = THREAD) -> None:
        """Hands a conversation over as a host does; fails with the reason if the manager gives it up."""
        with warnings_of_extraction() as warnings:
            manager.add(thread_id, messages, user_id=USER)
            require(manager.shutdown_flush(self.patience), f"nothing came of it within {self.patience} s")
        require(not warnings, f"the manager says: {'; '.join(warnings)}")

    def test_a_manager_takes_it(self) -> None:
        with allowed("DeerMem(extraction_hook=…)"), manager_with(self.make_hook()):
            pass

    def test_a_manager_learns_by_it(self) -> None:
        hook, proposed = self.make_hook(), []

        def watched(request: ExtractionRequest) -> Mapping[str, Any] | None:
            proposed.append(hook(request))
            return proposed[-1]

        with manager_with(watched) as manager:
            self._tell(manager, self.conversation())
            threshold = manager.config.fact_confidence_threshold
            learned = stored(manager)
        require(
            bool(learned),
            f"of {proposed} no fact is stored: with default settings a new fact needs a confidence of "
            f"{threshold} at least, and one without a confidence has {DEFAULT_CONFIDENCE}",
        )

    def test_its_proposals_can_be_stored_whoever_asks(self) -> None:
        for asker in ASKERS:
            proposal = self._propose(self.make_hook(), request_of(self.conversation(), **asker))
            with allowed(f"what it proposes for {asker}"):
                read_proposal(proposal)
            require(bool(texts_of(proposal)), f"it proposes no fact for {asker}")

    def test_nothing_is_learned_from_a_greeting(self) -> None:
        proposal = self._propose(self.make_hook(), request_of(SMALL_TALK, *KNOWN))
        require(not any((proposal or {}).values()), f"it proposes {proposal}")

    def test_the_same_conversation_again_adds_nothing(self) -> None:
        with manager_with(self.make_hook()) as manager:
            self._tell(manager, self.conversation())
            first = stored(manager)
            self._tell(manager, self.conversation(), "thread-2")
            new = [text for fact_id, text in stored(manager).items() if fact_id not in first]
        require(not new, f"the second time it adds {new}")

    def test_it_keeps_what_is_known(self) -> None:
        with manager_with(self.make_hook(), *KNOWN) as manager:
            before = stored(manager)
            self._tell(manager, self.conversation())
            self._stays(before, stored(manager))

    def test_it_names_only_facts_that_are_there(self) -> None:
        for known in ((), KNOWN):
            request = request_of(self.conversation(), *known)
            there = {fact["id"] for fact in request.document["facts"]}
            proposal = read_proposal(self._propose(self.make_hook(), request))
            strange = {*proposal.updates, *proposal.removals} - there
            require(not strange, f"of {len(there)} facts it names {sorted(strange)}")

    def test_it_leaves_the_messages_alone(self) -> None:
        messages = self.conversation()
        before = [state_of(message) for message in messages]
        self._propose(self.make_hook(), request_of(messages))
        after = [state_of(message) for message in messages]
        require(before == after, f"the messages were {before} and are {after}")

    def test_it_keeps_users_apart(self) -> None:
        hook = self.make_hook()
        mine = texts_of(self._propose(hook, request_of(self.conversation())))
        theirs = texts_of(self._propose(hook, request_of(SMALL_TALK, user_id="bob", thread_id="thread-2")))
        require(not set(mine) & set(theirs), f"of what alice said it tells bob {theirs}")

    def test_messages_of_any_shape_are_no_error(self) -> None:
        for messages in (*([each] for each in STRANGE_MESSAGES), STRANGE_MESSAGES):
            with allowed(f"what it makes of {str(messages)[:80]}"):
                read_proposal(self._propose(self.make_hook(), request_of(messages)))

    def test_any_text_is_no_error(self) -> None:
        for text in HOSTILE_TEXTS:
            with allowed(f"what it makes of a text with {text[:40]!r}"):
                read_proposal(self._propose(self.make_hook(), request_of(saying(self.conversation(), text))))

    def test_no_text_orders_it_to_forget(self) -> None:
        with manager_with(self.make_hook(), *KNOWN) as manager:
            before = stored(manager)
            self._tell(manager, [*orders(list(before)), *self.conversation()])
            self._stays(before, stored(manager))

    def test_what_a_tool_returned_is_not_the_users_word(self) -> None:
        proposal = self._propose(self.make_hook(), request_of(from_a_tool(self.conversation())))
        require(not texts_of(proposal), f"of what a tool says it makes {texts_of(proposal)}")

    def test_it_works_from_several_threads(self) -> None:
        hook, start = self.make_hook(), threading.Barrier(THREADS)

        def work(worker: int) -> list[str]:
            request = request_of(self.conversation(), user_id=f"user-{worker}")
            start.wait(self.patience)
            try:
                return texts_of(hook(request))
            finally:  # no thread ends before each has called, so that they are as many as it seems
                start.wait(self.patience)

        with allowed("a call from several threads"), ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(work, range(THREADS)))
        require(all(found), f"{found.count([])} of {THREADS} threads learn nothing")

    def test_a_conversation_that_was_overtaken_is_not_lost(self) -> None:
        hook, calls = self.make_hook(), []

        def overtaken(request: ExtractionRequest) -> Mapping[str, Any] | None:
            calls.append(request)
            proposal = hook(request)
            if len(calls) == 1:
                manager.create_fact("Another writer came first.", user_id=USER)
            return proposal

        with manager_with(overtaken) as manager:
            self._tell(manager, self.conversation())
            learned = len(stored(manager)) - 1
        require(len(calls) == 2, f"the hook was called {len(calls)} times")
        require(learned > 0, "the second call, with the new memory, learns nothing")

    def test_a_long_conversation_comes_to_an_end(self) -> None:
        self._propose(
            self.make_hook(), request_of([each for _ in range(300) for each in self.conversation()])
        )

    def test_a_long_conversation_pushes_out_nothing_that_is_known(self) -> None:
        with manager_with(self.make_hook(), *KNOWN) as manager:
            before = stored(manager)
            self._tell(manager, [each for _ in range(300) for each in self.conversation()])
            self._stays(before, stored(manager))

    @staticmethod
    def _stays(before: Mapping[str, str], after: Mapping[str, str]) -> None:
        lost = [fact_id for fact_id, text in before.items() if after.get(fact_id) != text]
        require(not lost, f"of {len(before)} known facts these are gone or changed: {lost}")
