"""Facts of other origin and summaries are files too; no edit is lost, whoever makes it."""

from __future__ import annotations

import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from deermem import DeerMem, FactDraft, Scope, Source
from deermem.format.strict_json import dump_compact
from deermem.integrations.anthropic import DeerMemMemoryTool
from deermem.integrations.front_matter import entry_field
from deermem.model.fact import ExtraField
from tests.integrations.anthropic.calls import call, listed, text_of
from tests.manager.managers import watched_manager
from tests.support.watched import call_of

ALICE = Scope.of("alice")
TEA = "/memories/facts/fact_1.md"
WORK = "/memories/summaries/work-context.md"


def write(manager: DeerMem, content: str, **fields: Any) -> None:
    draft = FactDraft(content, id="fact_1", **fields)
    manager.run_on_store(lambda repository: repository.upsert_fact(ALICE, draft))


def facts(manager: DeerMem) -> list[dict[str, Any]]:
    found = manager.get_memory(user_id="alice")["facts"]
    assert isinstance(found, list)
    return found


def test_a_fact_of_another_origin_is_a_file_and_an_edit_keeps_its_fields(
    manager: DeerMem, tool: DeerMemMemoryTool
) -> None:
    unknown = ExtraField("mood", '"calm"')
    source = Source("conversation", "thread_1")
    write(manager, "Drinks tea", category="mine", confidence=0.9, source=source, extra=(unknown,))
    assert listed(tool) == ["/memories/facts/", TEA]
    assert text_of(tool, TEA) == "Drinks tea"
    call(tool, "str_replace", TEA, old_str="tea", new_str="coffee\n")
    (fact,) = facts(manager)
    assert (fact["content"], fact["title"], fact["categoryExtension"]) == ("Drinks coffee",) * 2 + ("mine",)
    assert (fact["source"], fact["mood"], fact["confidence"]) == ("thread_1", "calm", 0.9)
    assert text_of(tool, TEA) == "Drinks coffee\n"
    call(tool, "str_replace", TEA, old_str="coffee\n", new_str="tea")
    assert "memoryFile" not in facts(manager)[0]


def test_a_fact_that_is_renamed_keeps_all_but_its_id(manager: DeerMem, tool: DeerMemMemoryTool) -> None:
    write(manager, "Drinks tea", category="preference", confidence=0.9)
    (before,) = facts(manager)
    call(tool, "rename", old_path=TEA, new_path="/memories/drinks.md")
    (after,) = facts(manager)
    assert after["id"] != before["id"]
    for name in ("content", "category", "confidence", "createdAt", "source"):
        assert after[name] == before[name]
    assert (after["title"], text_of(tool, "/memories/drinks.md")) == ("drinks.md", "Drinks tea")
    call(tool, "rename", old_path="/memories/drinks.md", new_path="/memories/facts/again.md")
    assert [fact["id"] for fact in facts(manager)] == ["again"]


def test_a_file_is_a_fact_that_is_found_by_everybody(manager: DeerMem, tool: DeerMemMemoryTool) -> None:
    call(tool, "create", "/memories/user/tea.md", file_text="Drinks green tea.\n")
    (found,) = manager.search("green", user_id="alice")
    assert (found["content"], found["title"]) == ("Drinks green tea.", "user/tea.md")
    manager.update_fact(found["id"], content="Drinks black tea.", user_id="alice")
    assert text_of(tool, "/memories/user/tea.md") == "Drinks black tea.\n"
    manager.delete_fact(found["id"], user_id="alice")
    assert listed(tool) == []


def test_an_empty_file_that_somebody_fills_is_not_empty_any_more(
    manager: DeerMem, tool: DeerMemMemoryTool
) -> None:
    call(tool, "create", "/memories/a", file_text=" \n")
    (fact,) = facts(manager)
    assert fact["content"] == "(empty file)"
    manager.update_fact(fact["id"], content="Filled", user_id="alice")
    assert text_of(tool, "/memories/a") == "Filled"


def test_the_summaries_are_files_that_can_be_edited(manager: DeerMem, tool: DeerMemMemoryTool) -> None:
    manager.run_on_store(
        lambda repository: repository.update_summaries("alice", {"user": {"workContext": " Writes a parser"}})
    )
    assert listed(tool) == ["/memories/summaries/", WORK]
    assert text_of(tool, WORK) == " Writes a parser"
    call(tool, "str_replace", WORK, old_str="parser", new_str="lexer")
    call(tool, "create", "/memories/summaries/recent-months.md", file_text="Moved house.\n")
    document = manager.get_memory(user_id="alice")
    assert document["user"]["workContext"]["summary"] == " Writes a lexer"
    assert document["user"]["workContext"]["updatedAt"]
    assert document["history"]["recentMonths"]["summary"] == "Moved house.\n"
    call(tool, "delete", WORK)
    assert manager.get_memory(user_id="alice")["user"]["workContext"]["summary"] == ""
    assert call(tool, "view", WORK).startswith("The path")


@pytest.mark.parametrize(
    ("command", "parameters", "answer"),
    [
        ("create", {"path": WORK, "file_text": " \n"}, "Error: A summary cannot be empty"),
        ("str_replace", {"path": WORK, "old_str": "A", "new_str": ""}, "Error: A summary cannot be empty"),
        ("create", {"path": "/memories/summaries/x.md", "file_text": "x"}, "Error: Only these files can be"),
        ("rename", {"old_path": WORK, "new_path": "/memories/x"}, "Error: Summaries cannot be renamed"),
        ("delete", {"path": "/memories/summaries"}, "Error: Cannot delete the /memories/summaries directory"),
        ("delete", {"path": "/memories/facts/"}, "Error: Cannot delete the /memories/facts/ directory"),
        (
            "create",
            {"path": "/memories/summaries/top-of-mind.md", "file_text": "x" * 100_001},
            "Error: summaries.user.topOfMind.summary: is larger than 100,000 bytes",
        ),
        (
            "create",
            {"path": "/memories/big", "file_text": "x" * 1_000_001},
            "Error: text: is larger than 1,000,000 bytes",
        ),
        (
            "create",
            {"path": "/memories/s", "file_text": "\ud800"},
            "Error: file_text: contains a lone surrogate",
        ),
    ],
)
def test_what_the_stores_rules_forbid_is_told_and_changes_nothing(
    manager: DeerMem, tool: DeerMemMemoryTool, command: str, parameters: dict[str, Any], answer: str
) -> None:
    if command != "create" or parameters["path"] != WORK:
        call(tool, "create", WORK, file_text="A")
    before = manager.get_memory(user_id="alice")
    assert call(tool, command, **parameters).startswith(answer)
    assert manager.get_memory(user_id="alice") == before


def test_an_insert_after_somebody_elses_change_asks_for_another_view(
    manager: DeerMem, tool: DeerMemMemoryTool
) -> None:
    call(tool, "create", "/memories/a", file_text="one\ntwo\n")
    (fact,) = facts(manager)
    manager.update_fact(fact["id"], content="zero\none\ntwo", user_id="alice")
    assert call(tool, "insert", "/memories/a", insert_line=1, insert_text="x").startswith(
        "Error: /memories/a was changed since it was viewed"
    )
    assert text_of(tool, "/memories/a") == "zero\none\ntwo\n"
    call(tool, "insert", "/memories/a", insert_line=1, insert_text="x")
    assert text_of(tool, "/memories/a") == "zero\nx\none\ntwo\n"


def test_an_edit_is_of_the_text_as_it_is_under_the_lock(tmp_path: Path) -> None:
    """Somebody else's change comes between the reading of a command and its transaction."""
    manager, disk = watched_manager(tmp_path)
    with manager, DeerMem({"storage_path": str(tmp_path)}) as other:
        tool = DeerMemMemoryTool(manager, user_id="alice")
        call(tool, "create", "/memories/a", file_text="one two\n")
        (fact,) = facts(other)
        done: list[Any] = []

        def change(made: Any) -> None:
            if not done and made.path.endswith(".memory.lock"):
                done.append(made)
                other.update_fact(fact["id"], content="one two three", user_id="alice")

        disk.on_call = change
        call(tool, "str_replace", "/memories/a", old_str="one", new_str="1")
        assert done
        assert text_of(tool, "/memories/a") == "1 two three\n"


def test_edits_by_several_tools_at_once_are_all_there(tmp_path: Path) -> None:
    def work(number: int) -> None:
        with DeerMem({"storage_path": str(tmp_path), "file_lock_timeout_seconds": 120}) as manager:
            tool = DeerMemMemoryTool(manager, user_id="alice")
            for turn in range(5):
                answer = call(
                    tool, "str_replace", "/memories/a", old_str="end", new_str=f"{number}.{turn}\nend"
                )
                assert answer.startswith("The memory file has been edited")

    with DeerMem({"storage_path": str(tmp_path)}) as manager:
        tool = DeerMemMemoryTool(manager, user_id="alice")
        call(tool, "create", "/memories/a", file_text="end\n")
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = (text_of(tool, "/memories/a") or "").split("\n")
    assert sorted(lines[:-2]) == sorted(f"{number}.{turn}" for number in range(4) for turn in range(5))


def test_of_several_that_create_or_move_to_one_path_one_does(tmp_path: Path) -> None:
    answers: list[str] = []

    def work(number: int) -> None:
        settings = {"storage_path": str(tmp_path), "file_lock_timeout_seconds": 120}
        with DeerMem(settings) as manager:
            tool = DeerMemMemoryTool(manager, user_id="alice")
            call(tool, "create", f"/memories/own/{number}", file_text=f"{number}")
            answers.append(call(tool, "create", "/memories/a", file_text=f"{number}"))
            answers.append(call(tool, "rename", old_path=f"/memories/own/{number}", new_path="/memories/b"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answer.startswith("File created") for answer in answers) == 1
    assert sum(answer.startswith("Successfully renamed") for answer in answers) == 1
    with DeerMem({"storage_path": str(tmp_path)}) as manager:
        assert len(facts(manager)) == 5


def test_an_edit_by_hand_is_kept_and_edited_further(tool: DeerMemMemoryTool, tmp_path: Path) -> None:
    call(tool, "create", "/memories/a", file_text="one\n")
    (document,) = tmp_path.rglob("file-*.md")
    document.write_text(document.read_text("utf-8").replace("\none\n", "\none, by hand\n"), "utf-8")
    call(tool, "str_replace", "/memories/a", old_str="one", new_str="1")
    assert text_of(tool, "/memories/a") == "1, by hand\n"


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "b"},
        "text",
        "{'path':3}",
        "{'path':'b'}",
        "{'path':'\\ud800'}",
        "{'path':'../x'}",
        "{'after':[]}",
    ],
)
def test_an_entry_that_is_not_this_facts_counts_for_nothing(
    manager: DeerMem, tool: DeerMemMemoryTool, entry: object
) -> None:
    write(manager, "Drinks tea", extra=(ExtraField("memoryFile", dump_compact(entry)),))
    assert listed(tool) == ["/memories/facts/", TEA]
    assert text_of(tool, TEA) == "Drinks tea"


@pytest.mark.parametrize("path", ["../x", "a//b", "a\\b", "/", "a/", "summaries/x"])
def test_a_fact_that_pretends_to_have_a_path_that_no_file_can_have_is_shown_below_facts(
    manager: DeerMem, tool: DeerMemMemoryTool, path: str
) -> None:
    fact_id = f"file-{sha256(path.encode()).hexdigest()}"
    entry = entry_field("memoryFile", {"path": path})
    draft = FactDraft("Made up", id=fact_id, extra=(entry,))
    manager.run_on_store(lambda repository: repository.upsert_fact(ALICE, draft))
    shown = f"/memories/facts/{fact_id}.md"
    assert listed(tool) == ["/memories/facts/", shown]
    assert text_of(tool, shown) == "Made up"
    assert call(tool, "delete", shown) == f"Successfully deleted {shown}"


def test_a_fact_that_pretends_to_have_the_path_of_another_file_does_not_take_its_place(
    manager: DeerMem, tool: DeerMemMemoryTool
) -> None:
    call(tool, "create", "/memories/real", file_text="real")
    fact_id = f"file-{sha256(b'forged').hexdigest()}"
    draft = FactDraft("forged", id=fact_id, extra=(entry_field("memoryFile", {"path": "real"}),))
    manager.run_on_store(lambda repository: repository.upsert_fact(ALICE, draft))
    assert listed(tool) == ["/memories/facts/", f"/memories/facts/{fact_id}.md", "/memories/real"]
    assert text_of(tool, "/memories/real") == "real"


def test_what_the_disk_refuses_is_told_without_a_path(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    with manager:
        tool = DeerMemMemoryTool(manager, user_id="alice")
        call(tool, "create", "/memories/a", file_text="one\n")
        disk.fail(call_of("create"), 28)
        answer = call(tool, "str_replace", "/memories/a", old_str="one", new_str="1")
        assert answer == "Error: The disk failed, and the change was not saved. View the memory."
        disk.heal()
        assert text_of(tool, "/memories/a") == "one\n"


def test_a_busy_memory_says_so(tmp_path: Path) -> None:
    manager, _ = watched_manager(tmp_path, file_lock_timeout_seconds=1)
    with manager, DeerMem({"storage_path": str(tmp_path)}) as other:
        tool = DeerMemMemoryTool(manager, user_id="alice")
        call(tool, "create", "/memories/a", file_text="one\n")
        engine = other.repository.engine
        with engine.maintenance(ALICE.user):
            answer = call(tool, "create", "/memories/b", file_text="two\n")
        assert answer == "Error: The memory is busy. Try again."
