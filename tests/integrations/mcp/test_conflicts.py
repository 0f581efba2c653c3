"""What another program does in between comes back as a result that a model can act on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from deermem import DeerMem, MemoryRepository
from deermem.integrations.mcp.tools import tools
from deermem.model.fact import Fact
from deermem.model.identity import Scope
from tests.integrations.mcp.doors import Door, answer, serving
from tests.support.stores import fact_path


def created(other: DeerMem, content: str, confidence: float = 0.5) -> str:
    _, fact_id = other.create_fact(content, confidence=confidence, user_id="alice")
    assert fact_id is not None
    return fact_id


def content_of(other: DeerMem, fact_id: str) -> str | None:
    facts = {fact["id"]: fact["content"] for fact in other.reload_memory(user_id="alice")["facts"]}
    return facts.get(fact_id)


@contextmanager
def small_door(root: Path, max_facts: int) -> Iterator[Door]:
    settings = {"storage_path": str(root), "max_facts": max_facts}
    with DeerMem(settings) as manager, serving(manager) as url:
        yield Door(root, url=url)


def test_an_update_of_what_was_changed_meanwhile_is_a_conflict_with_the_current_text(
    door: Door, other: DeerMem
) -> None:
    fact_id = created(other, "Likes tea")

    async def race(client: Client) -> None:
        seen = (await answer(client, "memory_get", id=fact_id))["fact"]
        other.update_fact(fact_id, content="Likes coffee", user_id="alice")
        refused = await answer(
            client, "memory_update", id=fact_id, content="Likes mate", expected_revision=seen["revision"]
        )
        assert refused["outcome"] == "conflict"
        assert "changed meanwhile" in refused["message"]
        assert (refused["fact"]["content"], refused["fact"]["revision"]) == ("Likes coffee", 2)
        refused = await answer(
            client, "memory_update", id=fact_id, content="Likes mate", expected_text=seen["content"]
        )
        assert (refused["outcome"], refused["fact"]["content"]) == ("conflict", "Likes coffee")
        done = await answer(client, "memory_update", id=fact_id, content="Likes mate", expected_revision=2)
        assert done["outcome"] == "updated"

    door.use(race)
    assert content_of(other, fact_id) == "Likes mate"


def test_a_deletion_of_what_was_changed_meanwhile_is_a_conflict(door: Door, other: DeerMem) -> None:
    fact_id = created(other, "Likes tea")
    other.update_fact(fact_id, content="Likes coffee", user_id="alice")

    async def race(client: Client) -> None:
        refused = await answer(client, "memory_delete", id=fact_id, expected_revision=1)
        assert (refused["outcome"], refused["fact"]["content"]) == ("conflict", "Likes coffee")
        done = await answer(client, "memory_delete", id=fact_id, expected_revision=2)
        assert done["outcome"] == "deleted"
        again = await answer(client, "memory_delete", id=fact_id, expected_revision=2)
        assert again["outcome"] == "not_found"

    door.use(race)
    assert content_of(other, fact_id) is None


def test_the_text_that_is_expected_may_have_white_space_around_it(web: Door, other: DeerMem) -> None:
    fact_id = created(other, "Likes tea")
    done = web.call("memory_update", id=fact_id, confidence=1.0, expected_text=" Likes tea\n")
    assert done["outcome"] == "updated"


def test_a_fact_that_is_made_anew_is_not_taken_for_the_one_that_was_seen(web: Door, other: DeerMem) -> None:
    fact_id = created(other, "Likes tea")
    other.delete_fact(fact_id, user_id="alice")
    refused = web.call("memory_update", id=fact_id, content="Likes mate", expected_revision=1)
    assert refused["outcome"] == "not_found"


def test_an_update_that_changes_nothing_says_so(web: Door, other: DeerMem) -> None:
    fact_id = created(other, "Likes tea")
    told = web.call("memory_update", id=fact_id, content="Likes tea")
    assert (told["outcome"], told["fact"]["revision"]) == ("unchanged", 1)


def test_the_same_text_again_leads_to_the_fact_that_is_there(door: Door, other: DeerMem) -> None:
    fact_id = created(other, "Likes tea")
    told = door.call("memory_add", content=" LIKES TEA ")
    assert (told["outcome"], told["fact"]["id"]) == ("duplicate", fact_id)
    assert len(other.get_memory(user_id="alice")["facts"]) == 1


def test_an_id_that_is_nearly_right_leads_to_those_that_are(web: Door, other: DeerMem) -> None:
    fact_id = created(other, "Likes tea")
    typo = fact_id[:-1] + ("0" if fact_id[-1] != "0" else "1")
    for name, more in (("memory_get", {}), ("memory_delete", {}), ("memory_update", {"content": "x"})):
        told = web.call(name, id=typo, **more)
        assert (told["outcome"], told["near"]) == ("not_found", [fact_id])


def test_a_full_memory_says_what_went_and_what_was_not_stored(root: Path, other: DeerMem) -> None:
    ids = [created(other, f"number {number}" + "!" * 2_000, 0.5 + number / 100) for number in range(10)]
    with small_door(root, 10) as door:
        refused = door.call("memory_add", content="hardly sure", confidence=0.1)
        assert (refused["outcome"], refused["evicted_count"]) == ("evicted", 0)
        assert "was not stored: the memory is full (10 facts)" in refused["message"]
        assert "fact" not in refused
        stored = door.call("memory_add", content="quite sure", confidence=0.9)
        assert (stored["outcome"], stored["evicted_count"]) == ("added", 1)
        assert [fact["id"] for fact in stored["evicted"]] == ids[:1]
        # There is no other place any more where the rest of it could be read.
        assert stored["evicted"][0]["content"] == "number 0" + "!" * 2_000
        for words in ("memory was full (10 facts)", "deleted for good", "`evicted`", "Tell the user"):
            assert words in stored["message"]
    assert len(other.get_memory(user_id="alice")["facts"]) == 10


def test_the_fact_that_fills_the_memory_says_what_the_next_one_will_do(root: Path, other: DeerMem) -> None:
    for number in range(8):
        created(other, f"number {number}")
    with small_door(root, 10) as door:
        assert door.call("memory_add", content="the ninth")["message"] == "Stored."
        told = door.call("memory_add", content="the tenth")
        assert told["message"] == (
            "Stored. The memory is full now (10 facts): the next new one takes the place of the least"
            " certain."
        )


@pytest.mark.parametrize(("confidence", "outcome"), [(0.1, "evicted"), (1.0, "added")])
def test_where_there_is_less_room_than_before_every_fact_that_goes_is_counted(
    root: Path, other: DeerMem, confidence: float, outcome: str
) -> None:
    for number in range(40):
        created(other, f"number {number}", 0.5 + number / 100)
    with small_door(root, 10) as door:
        told = door.call("memory_add", content="new", confidence=confidence)
    left = other.reload_memory(user_id="alice")["facts"]
    assert (told["outcome"], told["evicted_count"]) == (outcome, 40 - len(left) + (outcome == "added"))
    assert f"the {told['evicted_count']} least certain ones were deleted for good" in told["message"]
    assert len(told["evicted"]) == 20
    assert not {fact["id"] for fact in told["evicted"]} & {fact["id"] for fact in left}


def test_the_description_of_adding_tells_what_a_full_memory_does() -> None:
    description = tools(read_only=False)["memory_add"].description
    for words in ("takes the place of the least certain", "deleted for good", "`evicted`", "tell the user"):
        assert words in description


class Interrupted(MemoryRepository):
    """Lets somebody else act once, right after a fact was read."""

    between: Callable[[], object] | None = None

    def get_fact(self, scope: Scope, fact_id: str) -> Fact | None:
        fact = super().get_fact(scope, fact_id)
        act, self.between = self.between, None
        if act is not None:
            act()
        return fact


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("memory_update", {"content": "Likes mate", "expected_revision": 1}),
        ("memory_update", {"content": "Likes mate", "expected_text": "Likes tea"}),
        ("memory_delete", {"expected_revision": 1}),
    ],
)
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_change_between_the_look_and_the_commit_is_not_lost(
    root: Path, other: DeerMem, name: str, more: dict[str, Any], is_deleted: bool
) -> None:
    fact_id = created(other, "Likes tea")
    repository = Interrupted(root)
    with DeerMem(repository=repository) as manager, serving(manager) as url:
        repository.between = (
            (lambda: other.delete_fact(fact_id, user_id="alice"))
            if is_deleted
            else (lambda: other.update_fact(fact_id, content="Likes coffee", user_id="alice"))
        )
        told = Door(root, url=url).call(name, id=fact_id, **more)
    if is_deleted:
        assert told["outcome"] == "not_found"
    else:
        assert (told["outcome"], told["fact"]["content"]) == ("conflict", "Likes coffee")
        assert content_of(other, fact_id) == "Likes coffee"


@pytest.mark.parametrize("name", ["memory_update", "memory_delete"])
def test_an_edit_by_hand_is_a_conflict_that_shows_the_edit(
    root: Path, web: Door, other: DeerMem, name: str
) -> None:
    fact_id = created(other, "Likes tea")

    async def edit(client: Client) -> None:
        await answer(client, "memory_list")  # the server has it cached
        path = fact_path(root, Scope.of("alice"), fact_id)
        path.write_text(path.read_text("utf-8").replace("Likes tea", "Likes mate"), "utf-8")
        change = {"content": "Likes coffee"} if name == "memory_update" else {"expected_revision": 1}
        refused = await answer(client, name, id=fact_id, **change)
        assert (refused["outcome"], refused["fact"]["content"]) == ("conflict", "Likes mate")
        done = await answer(client, name, id=fact_id, **{**change, "expected_revision": 1})
        assert done["outcome"] in ("updated", "deleted")

    web.use(edit)
