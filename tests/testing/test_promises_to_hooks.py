"""What the manager promises: whatever a hook does, no memory is damaged and nobody else waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, ExtractionRequest, InvalidInputError, MemoryRepository, Scope
from deermem.testing.extraction_samples import KNOWN, SMALL_TALK, manager_with, stored

PATIENCE = 60.0
GOOD = {"newFacts": [{"content": "learned", "confidence": 1}]}
# Ends only when the process does: the manager's threads do not keep it alive.
HANGING = """
import sys, threading
from deermem import DeerMem

reached = threading.Event()

def hook(request):
    reached.set()
    threading.Event().wait()

manager = DeerMem({"storage_path": sys.argv[1]}, extraction_hook=hook)
manager.create_fact("kept", user_id="alice")
manager.add("t", ["x"], user_id="alice")
reached.wait()
if sys.argv[2] == "close":
    manager.close()
"""


@pytest.mark.parametrize("fault", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_whatever_a_hook_raises_the_next_conversation_goes_on(
    fault: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def hook(request: ExtractionRequest) -> Mapping[str, Any]:
        if request.thread_id == "bad":
            raise fault("a secret")
        return GOOD

    with manager_with(hook) as manager:
        for n in range(6):  # more than there are threads
            manager.add("bad", SMALL_TALK, user_id=f"user-{n}")
        manager.add("bad", SMALL_TALK, user_id="alice")
        manager.add("good", SMALL_TALK, user_id="alice")
        assert manager.shutdown_flush(PATIENCE)
        assert [*stored(manager).values()] == ["learned"]
    assert fault.__name__ in caplog.text
    assert "secret" not in caplog.text


class Evasive(Mapping[str, Any]):
    """Says that it has a key, and raises when somebody looks."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(["newFacts"])

    def __len__(self) -> int:
        return 1


BAD = (
    Evasive(),
    {"newFacts": iter([{"content": "x", "confidence": 1}])},
    {"newFacts": [{"content": "x", "confidence": float("nan")}]},
    {"newFacts": [{"content": "x", "confidence": float("inf")}]},
    {"newFacts": [{"content": "x", "confidence": True}]},
    {"newFacts": [{"content": "\ud800", "confidence": 1}]},
    {"newFacts": [{"content": "x" * 1_000_001, "confidence": 1}]},
    {"factsToRemove": ["known_0"], "factsToUpdate": [{"id": "known_1", "confidence": float("nan")}]},
    "newFacts",
    object(),
)


@pytest.mark.parametrize("proposal", BAD, ids=range(len(BAD)))
def test_a_proposal_that_cannot_be_stored_changes_nothing(proposal: Any) -> None:
    with manager_with(lambda _: proposal, *KNOWN) as manager:
        before = manager.get_memory(user_id="alice")
        manager.add("t", SMALL_TALK, user_id="alice")
        assert manager.shutdown_flush(PATIENCE)
        assert manager.get_memory(user_id="alice") == before


def test_a_thousand_new_facts_are_one_commit_that_keeps_the_cap() -> None:
    new = [{"content": f"new fact {n}", "confidence": 0.7 + n / 10_000} for n in range(1_000)]
    with manager_with(lambda _: {"newFacts": new}, *KNOWN) as manager:
        before = manager.get_memory(user_id="alice")["revision"]
        manager.add("t", SMALL_TALK, user_id="alice")
        assert manager.shutdown_flush(PATIENCE)
        assert manager.get_memory(user_id="alice")["revision"] == before + 1
        assert sorted(stored(manager).values()) == sorted(f"new fact {n}" for n in range(900, 1_000))


def test_what_a_hook_does_to_its_document_changes_no_memory() -> None:
    def hook(request: ExtractionRequest) -> None:
        request.document["facts"].clear()
        request.document["user"]["topOfMind"]["summary"] = "changed"

    with manager_with(hook, *KNOWN) as manager:
        before = manager.get_memory(user_id="alice")
        manager.add("t", SMALL_TALK, user_id="alice")
        assert manager.shutdown_flush(PATIENCE)
        assert manager.get_memory(user_id="alice") == before


def test_an_object_that_is_called_asynchronously_is_refused(tmp_path: Path) -> None:
    class Asynchronous:
        async def __call__(self, request: ExtractionRequest) -> None: ...

    hook: Any = Asynchronous()
    with pytest.raises(InvalidInputError, match="not asynchronous"):
        DeerMem({"storage_path": str(tmp_path)}, extraction_hook=hook)


@pytest.mark.parametrize("end", ["close", "exit"])
def test_a_hook_that_hangs_does_not_keep_the_process_alive(tmp_path: Path, end: str) -> None:
    command = [sys.executable, "-c", HANGING, str(tmp_path), end]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (fact,) = MemoryRepository(tmp_path).snapshot(Scope.of("alice")).facts
    assert fact.content == "kept"
