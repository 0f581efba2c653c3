"""Conversations that the host's hook makes facts of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, ExtractionRequest, MemoryManagerClosed, MemoryRepository, Scope
from deermem.manager import extraction
from tests.manager.managers import contents, fact_of, manager_at, summary
from tests.support.stores import bucket_path, draft, store_with, tree

PATIENCE = 60.0
SAID = ["I like tea"]
ALICE = Scope.of("alice")


def proposes(proposal: Any) -> Callable[[ExtractionRequest], Any]:
    return lambda _: proposal


def after(root: Path, proposal: Any, **settings: Any) -> dict[str, Any]:
    """Returns alice's document after the hook proposed something."""
    manager = manager_at(root, proposes(proposal), **settings)
    manager.add("thread_1", SAID, user_id="alice")
    assert manager.shutdown_flush(PATIENCE)
    return manager.get_memory(user_id="alice")


def test_without_a_hook_add_is_not_implemented(tmp_path: Path) -> None:
    manager = manager_at(tmp_path)
    for add in (manager.add, manager.add_nowait):
        with pytest.raises(NotImplementedError, match="extraction_hook"):
            add("t", SAID, user_id="alice")


def test_the_hook_is_given_the_conversation_and_the_memory_as_it_is(tmp_path: Path) -> None:
    store_with(tmp_path, "x", scope=Scope.of("alice", "coder"))
    requests: list[ExtractionRequest] = []
    manager = manager_at(tmp_path, requests.append)
    manager.add("thread_1", SAID, user_id="alice", agent_name="Coder", trace_id="trace_1")
    assert manager.shutdown_flush(PATIENCE)
    (request,) = requests
    assert request == ExtractionRequest(
        "thread_1",
        tuple(SAID),
        manager.get_memory(user_id="alice", agent_name="coder"),
        "alice",
        "coder",
        "trace_1",
    )


def test_add_returns_before_the_hook_does(tmp_path: Path) -> None:
    returned = threading.Event()
    outcome: list[bool] = []

    def hook(_: ExtractionRequest) -> None:
        outcome.append(returned.wait(PATIENCE))

    manager = manager_at(tmp_path, hook)
    manager.add("t", SAID, user_id="alice")
    returned.set()
    assert manager.shutdown_flush(PATIENCE)
    assert outcome == [True]


def test_what_is_proposed_is_one_commit(tmp_path: Path) -> None:
    store_with(tmp_path, "x", "y", "z")
    document = after(
        tmp_path,
        {
            "user": {"topOfMind": {"summary": "tea"}},
            "newFacts": [{"content": "Likes tea", "category": "preference", "confidence": 0.9}],
            "factsToUpdate": [{"id": "x", "content": "changed", "topics": ["t"]}],
            "factsToRemove": ["y"],
        },
    )
    assert document["revision"] == 4
    assert contents(document) == ["Likes tea", "changed", "text of z"]
    assert fact_of(document, "x")["topics"] == ["t"]
    assert summary(document, "user", "topOfMind") == "tea"


def test_a_new_fact_comes_from_the_conversation_and_has_an_id_of_its_own(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    proposed = {
        "id": "x",
        "content": "c",
        "confidence": 1,
        "source": "manual",
        "createdAt": "2020-01-01T00:00:00Z",
    }
    document = after(tmp_path, {"newFacts": [proposed]})
    (fact,) = [each for each in document["facts"] if each["content"] == "c"]
    assert fact["source"] == "thread_1"
    assert fact["id"] != "x"
    assert fact["createdAt"] == document["lastUpdated"]


def test_a_thread_with_the_name_of_a_plain_source_is_a_conversation_all_the_same(tmp_path: Path) -> None:
    manager = manager_at(tmp_path, proposes({"newFacts": [{"content": "c", "confidence": 1}]}))
    manager.add("manual", SAID, user_id="alice")
    assert manager.shutdown_flush(PATIENCE)
    (fact,) = manager.repository.snapshot(ALICE).facts
    assert (fact.source.type, fact.source.thread_id) == ("conversation", "manual")


def test_only_new_facts_of_an_extraction_need_the_threshold(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    document = after(
        tmp_path,
        {
            "newFacts": [
                {"content": "below", "confidence": 0.79},
                {"content": "at", "confidence": 0.8},
                {"content": "unsaid"},
            ],
            "factsToUpdate": [{"id": "x", "confidence": 0.1}],
        },
        fact_confidence_threshold=0.8,
    )
    assert contents(document) == ["at", "text of x"]
    assert fact_of(document, "x")["confidence"] == 0.1


def test_a_new_fact_with_a_text_that_is_there_is_left_out(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    new = [{"content": text, "confidence": 1} for text in ("Text of X ", "tea", "TEA")]
    assert contents(after(tmp_path, {"newFacts": new})) == ["tea", "text of x"]


def test_a_text_may_come_back_that_the_same_proposal_removes(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    document = after(
        tmp_path, {"factsToRemove": ["x"], "newFacts": [{"content": "text of x", "confidence": 1}]}
    )
    assert [fact["id"] == "x" for fact in document["facts"]] == [False]


def test_ids_that_are_not_there_are_passed_over(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    document = after(
        tmp_path,
        {"factsToRemove": ["a"], "factsToUpdate": [{"id": "b", "content": "c"}, {"id": "x", "content": "d"}]},
    )
    assert contents(document) == ["d"]


def test_new_facts_are_counted_against_the_cap(tmp_path: Path) -> None:
    store_with(tmp_path, *(f"f{number}" for number in range(9)))
    new = [{"content": f"new {number}", "confidence": 0.8 + number / 100} for number in range(3)]
    document = after(
        tmp_path, {"newFacts": new, "factsToUpdate": [{"id": "f0", "confidence": 0.1}]}, max_facts=10
    )
    assert len(document["facts"]) == 10
    assert {"f0", "f8"}.isdisjoint(fact["id"] for fact in document["facts"])
    assert {"new 0", "new 1", "new 2"} <= set(contents(document))


@pytest.mark.parametrize("proposal", [None, {}, {"newFacts": []}, {"user": {}, "factsToRemove": ["a"]}])
def test_a_proposal_that_comes_to_nothing_commits_nothing(tmp_path: Path, proposal: Any) -> None:
    store_with(tmp_path, "x")
    before = tree(tmp_path)
    after(tmp_path, proposal)
    assert tree(tmp_path) == before


BAD = [
    ["x"],
    {"facts": []},
    {"newFacts": [{"content": "good", "confidence": 1}, {"content": ""}]},
    {"newFacts": {"content": "x"}},
    {"newFacts": [{"content": "x", "confidence": float("nan")}]},
    {"factsToUpdate": [{"content": "x"}]},
    {"factsToUpdate": [{"id": "x", "content": " "}]},
    {"factsToUpdate": [{"id": "x"}, {"id": "x"}]},
    {"factsToUpdate": ["x"]},
    {"factsToRemove": "x"},
    {"factsToRemove": [5]},
    {"user": {"mood": {"summary": "x"}}},
    {"history": ["x"]},
]


@pytest.mark.parametrize("proposal", BAD, ids=[str(number) for number in range(len(BAD))])
def test_a_proposal_that_breaks_a_rule_changes_nothing_and_is_logged(
    tmp_path: Path, proposal: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store_with(tmp_path, "x")
    before = tree(tmp_path)
    after(tmp_path, proposal)
    assert tree(tmp_path) == before
    assert "nothing was extracted" in caplog.text
    assert "good" not in caplog.text


def test_what_a_hook_raises_is_logged_by_its_type_and_the_next_conversation_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(request: ExtractionRequest) -> Mapping[str, Any]:
        if request.thread_id == "bad":
            raise ZeroDivisionError("a secret")
        return {"newFacts": [{"content": "c", "confidence": 1}]}

    manager = manager_at(tmp_path, hook)
    manager.add("bad", SAID, user_id="alice")
    manager.add("good", SAID, user_id="alice")
    assert manager.shutdown_flush(PATIENCE)
    assert contents(manager.get_memory(user_id="alice")) == ["c"]
    assert "ZeroDivisionError" in caplog.text
    assert "secret" not in caplog.text


class Gate:
    """Is a hook that stands still until it is told what to propose."""

    def __init__(self, proposal: Any) -> None:
        self.proposal = proposal
        self.reached = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.requests: list[ExtractionRequest] = []

    def __call__(self, request: ExtractionRequest) -> Any:
        self.requests.append(request)
        self.reached.release()
        assert self.go_on.acquire(timeout=PATIENCE)
        return self.proposal

    def wait(self) -> None:
        assert self.reached.acquire(timeout=PATIENCE)


NEW = {"newFacts": [{"content": "extracted", "confidence": 1}]}


def test_a_hook_that_was_overtaken_is_called_again_with_the_new_memory(tmp_path: Path) -> None:
    gate = Gate(NEW)
    manager = manager_at(tmp_path, gate)
    manager.add("t", SAID, user_id="alice")
    gate.wait()
    manager.create_fact("meanwhile", user_id="alice")
    gate.go_on.release(2)
    assert manager.shutdown_flush(PATIENCE)
    assert [contents(request.document) for request in gate.requests] == [[], ["meanwhile"]]
    assert contents(manager.get_memory(user_id="alice")) == ["extracted", "meanwhile"]


def test_a_hook_that_is_overtaken_three_times_gives_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(NEW)
    manager = manager_at(tmp_path, gate)
    manager.add("t", SAID, user_id="alice")
    for number in range(3):
        gate.wait()
        manager.create_fact(f"meanwhile {number}", user_id="alice")
        gate.go_on.release()
    assert manager.shutdown_flush(PATIENCE)
    assert len(gate.requests) == 3
    assert "extracted" not in contents(manager.get_memory(user_id="alice"))
    assert "revision" in caplog.text


@pytest.mark.parametrize("agent_name", [None, "coder"])
@pytest.mark.parametrize("clear", ["the agent", "everything", "by another process"])
def test_a_clear_while_the_hook_works_wins(tmp_path: Path, agent_name: str | None, clear: str) -> None:
    store_with(tmp_path, "x", scope=Scope.of("alice", agent_name))
    gate = Gate({**NEW, "user": {"topOfMind": "extracted"}})
    manager = manager_at(tmp_path, gate)
    manager.add("t", SAID, user_id="alice", agent_name=agent_name)
    gate.wait()
    if clear == "the agent":
        manager.repository.clear(Scope.of("alice", agent_name))
    else:
        other = manager if clear == "everything" else manager_at(tmp_path)
        other.clear_memory(user_id="alice")
    gate.go_on.release(3)
    assert manager.shutdown_flush(PATIENCE)
    document = manager.get_memory(user_id="alice", agent_name=agent_name)
    assert (contents(document), summary(document, "user", "topOfMind")) == ([], "")
    assert len(gate.requests) == 1


def test_the_deletion_of_an_agent_while_the_hook_works_wins(tmp_path: Path) -> None:
    coder = Scope.of("alice", "coder")
    store_with(tmp_path, "x", scope=coder)
    agent = bucket_path(tmp_path) / "agents" / "coder"
    (agent / "config.yaml").write_text("model: x\n", "utf-8")
    gate = Gate(NEW)
    manager = manager_at(tmp_path, gate)
    manager.add("t", SAID, user_id="alice", agent_name="coder")
    gate.wait()
    manager.run_on_store(lambda store: store.delete_agent(coder))
    gate.go_on.release(3)
    assert manager.shutdown_flush(PATIENCE)
    assert not agent.exists()


def test_a_clear_wins_over_a_conversation_that_waited_for_its_turn(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    gate = Gate(NEW)
    manager = manager_at(tmp_path, gate)
    manager.add("first", SAID, user_id="alice")
    gate.wait()
    manager.add("second", SAID, user_id="alice")
    manager.clear_memory(user_id="alice")
    gate.go_on.release(9)
    assert manager.shutdown_flush(PATIENCE)
    assert contents(manager.get_memory(user_id="alice")) == []
    assert [request.thread_id for request in gate.requests] == ["first"]


def test_a_clear_of_another_agent_does_not_win(tmp_path: Path) -> None:
    store_with(tmp_path, "x", scope=Scope.of("alice", "coder"))
    gate = Gate(NEW)
    manager = manager_at(tmp_path, gate)
    manager.add("t", SAID, user_id="alice")
    gate.wait()
    manager.clear_memory(user_id="alice", agent_name="coder")
    gate.go_on.release(2)
    assert manager.shutdown_flush(PATIENCE)
    assert contents(manager.get_memory(user_id="alice")) == ["extracted"]


def test_a_conversation_after_a_clear_is_extracted(tmp_path: Path) -> None:
    store_with(tmp_path, "x")
    manager = manager_at(tmp_path, proposes(NEW))
    manager.clear_memory(user_id="alice")
    manager.add("t", SAID, user_id="alice")
    assert manager.shutdown_flush(PATIENCE)
    assert contents(manager.get_memory(user_id="alice")) == ["extracted"]


def test_conversations_of_one_user_come_one_after_another_and_urgent_ones_first(tmp_path: Path) -> None:
    gate = Gate(None)
    manager = manager_at(tmp_path, gate)
    manager.add("1", SAID, user_id="alice")
    gate.wait()
    manager.add("3", SAID, user_id="alice")
    manager.add("4", SAID, user_id="alice", agent_name="coder")
    manager.add_nowait("2", SAID, user_id="alice")
    gate.go_on.release(9)
    assert manager.shutdown_flush(PATIENCE)
    assert [request.thread_id for request in gate.requests] == ["1", "2", "3", "4"]


def test_a_hook_that_stands_still_for_one_user_does_not_keep_others_waiting(tmp_path: Path) -> None:
    gate = Gate(NEW)
    manager = manager_at(tmp_path, lambda request: gate(request) if request.user_id == "alice" else NEW)
    for number in range(8):
        manager.add(f"{number}", SAID, user_id="alice")
    gate.wait()
    manager.add("t", SAID, user_id="bob")
    while not manager.get_memory(user_id="bob")["facts"]:
        pass  # the time-out of the test is the limit
    gate.go_on.release(99)
    assert manager.shutdown_flush(PATIENCE)


def test_too_many_conversations_are_given_up_with_a_warning_unless_urgent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "MAX_WAITING", 1)
    gate = Gate(None)
    manager = manager_at(tmp_path, gate)
    manager.add("1", SAID, user_id="alice")
    gate.wait()
    manager.add("2", SAID, user_id="alice")
    manager.add("lost", SAID, user_id="alice")
    assert "gave up a conversation" in caplog.text
    manager.add_nowait("urgent", SAID, user_id="alice")
    gate.go_on.release(9)
    assert manager.shutdown_flush(PATIENCE)
    assert [request.thread_id for request in gate.requests] == ["1", "urgent", "2"]


def test_no_messages_are_no_conversation(tmp_path: Path) -> None:
    requests: list[ExtractionRequest] = []
    manager = manager_at(tmp_path, requests.append)
    manager.add("t", [], user_id="alice")
    assert manager.shutdown_flush(PATIENCE)
    assert requests == []


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((5, SAID), "thread_id"),
        (("\ud800", SAID), "thread_id"),
        (("t", "text"), "messages"),
        (("t", 5), "messages"),
    ],
)
def test_a_bad_conversation_names_what_is_wrong(tmp_path: Path, arguments: Any, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        manager_at(tmp_path, proposes(None)).add(*arguments, user_id="alice")


def test_a_hook_may_use_the_manager_that_calls_it(tmp_path: Path) -> None:
    managers: list[DeerMem] = []

    def hook(_: ExtractionRequest) -> None:
        managers[0].create_fact("from inside", user_id="alice")
        assert managers[0].shutdown_flush(PATIENCE)

    managers.append(manager_at(tmp_path, hook))
    managers[0].add("t", SAID, user_id="alice")
    assert managers[0].shutdown_flush(PATIENCE)
    assert contents(managers[0].get_memory(user_id="alice")) == ["from inside"]


@pytest.mark.parametrize("hook", ["text", 5])
def test_what_cannot_be_called_is_no_hook(tmp_path: Path, hook: Any) -> None:
    with pytest.raises(ValueError, match="extraction_hook"):
        manager_at(tmp_path, hook)


def test_an_asynchronous_hook_is_refused(tmp_path: Path) -> None:
    async def hook(_: ExtractionRequest) -> None: ...

    with pytest.raises(ValueError, match="asynchronous"):
        manager_at(tmp_path, hook)  # type: ignore[arg-type]  # the type checker sees it too


def test_what_waits_at_the_end_is_given_up_and_what_works_writes_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(NEW)
    manager = manager_at(tmp_path, gate)
    manager.add("1", SAID, user_id="alice")
    gate.wait()
    manager.add("2", SAID, user_id="alice")
    assert manager.shutdown_flush(0.01) is False
    manager.close()
    assert "gave up 1 conversations" in caplog.text
    gate.go_on.release(9)
    assert manager.shutdown_flush(PATIENCE) is True
    assert MemoryRepository(tmp_path).snapshot(ALICE).facts == ()
    with pytest.raises(MemoryManagerClosed):
        manager.add("3", SAID, user_id="alice")


def test_the_revision_of_the_last_clear_is_known(tmp_path: Path) -> None:
    store = store_with(tmp_path, "x")
    store.upsert_fact(Scope.of("alice", "coder"), draft("y"))
    assert store.cleared_at(ALICE) == 0
    store.clear(ALICE)
    assert (store.cleared_at(ALICE), store.cleared_at(Scope.of("alice", "coder"))) == (3, 0)
    store.clear_all("alice")
    assert store.cleared_at(Scope.of("alice", "coder")) == 4
    assert MemoryRepository(tmp_path).cleared_at(ALICE) == 4
    assert store.cleared_at(Scope.of("bob")) == 0
