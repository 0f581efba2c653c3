"""`add`, `get`, `update`, `adopt` and `delete`."""

from __future__ import annotations

from tests.cli.conftest import CommandLine


def test_an_added_fact_is_shown_with_everything_that_was_given(cli: CommandLine) -> None:
    added = cli.ok(
        "add", "Uses Python 3.12.", "--id", "fact_1", "--title", "Runtime", "--category", "constraint",
        "--topic", "python", "--topic", "run time", "--confidence", "0.95", "--source", "thread_9",
        "--agent", "Coder", "--user-id", "a@b.c", "--json",
    )  # fmt: skip
    fact = cli.ok("get", "fact_1", "--agent", "coder", "--user-id", "a@b.c", "--json").json
    assert added.json == {"revision": 1, "changed": True, "fact": fact}
    assert fact.pop("createdAt") == fact.pop("updatedAt")
    assert fact == {
        "id": "fact_1",
        "title": "Runtime",
        "content": "Uses Python 3.12.",
        "category": "constraint",
        "topics": ["python", "run time"],
        "confidence": 0.95,
        "source": "thread_9",
        "schemaVersion": 2,
        "status": "active",
        "scope": {"userId": "a@b.c", "agentName": "coder"},
        "revision": 1,
        "consolidatedFrom": [],
    }


def test_a_fact_that_a_person_adds_has_the_source_manual(cli: CommandLine) -> None:
    assert cli.ok("get", cli.add("x"), "--json").json["source"] == "manual"


def test_add_prints_the_id_alone_when_it_is_quiet(cli: CommandLine) -> None:
    fact_id = cli.ok("add", "x", "-q").out
    assert cli.ok("list", "-q").out == fact_id


def test_content_comes_from_standard_input_as_it_is(cli: CommandLine) -> None:
    content = "first\r\n---\n\ttab, \u2028, 😀 and \u200fعربي\u200e\n# no heading"
    fact_id = cli.ok("add", "-", "-q", stdin=content).out.strip()
    assert cli.ok("get", fact_id, "--json").json["content"] == content
    assert cli.ok("get", fact_id, "-q").out == f"{content}\n"


def test_a_byte_order_mark_before_standard_input_is_no_content(cli: CommandLine) -> None:
    fact_id = cli.ok("add", "-", "-q", stdin=b"\xef\xbb\xbfx").out.strip()
    assert cli.ok("get", fact_id, "-q").out == "x\n"


def test_content_that_looks_like_an_option_comes_after_two_dashes(cli: CommandLine) -> None:
    assert cli.ok("get", cli.add("--json"), "-q").out == "--json\n"


def test_the_same_text_is_not_stored_twice(cli: CommandLine) -> None:
    first = cli.add("Likes tea.")
    again = cli("add", "  LIKES TEA.  ")
    assert again.code == 4
    assert first in again.err


def test_update_changes_what_is_given_and_nothing_else(cli: CommandLine) -> None:
    fact_id = cli.add("Likes tea.", "--topic", "drinks", "--category", "preference")
    before = cli.ok("get", fact_id, "--json").json
    updated = cli.ok("update", fact_id, "--content", "-", "--json", stdin="Likes coffee.").json
    after = cli.ok("get", fact_id, "--json").json
    assert updated == {"revision": 2, "changed": True, "fact": after}
    changed = {key for key in after if after[key] != before[key]}
    assert changed == {"content", "title", "revision", "updatedAt"}


def test_update_removes_all_topics(cli: CommandLine) -> None:
    fact_id = cli.add("x", "--topic", "a")
    cli.ok("update", fact_id, "--no-topics")
    assert cli.ok("get", fact_id, "--json").json["topics"] == []


def test_an_update_that_changes_nothing_says_so_and_makes_no_revision(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    before = cli.tree()
    result = cli.ok("update", fact_id, "--confidence", "0.5")
    assert result.out == f"Nothing to change in {fact_id} (revision 1)\n"
    assert cli.tree() == before


def test_an_update_at_another_revision_is_refused(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    cli.ok("update", fact_id, "--title", "y", "--expected-revision", "1")
    before = cli.tree()
    assert cli("update", fact_id, "--title", "z", "--expected-revision", "1").code == 4
    assert cli.tree() == before


def test_an_edit_by_hand_becomes_a_commit_when_it_is_adopted(cli: CommandLine) -> None:
    fact_id = cli.add("Likes tea.")
    file = cli.file_of(fact_id)
    file.write_text(file.read_text("utf-8").replace("tea", "coffee"), "utf-8")
    adopted = cli.ok("adopt", fact_id, "--json").json
    assert (adopted["fact"]["content"], adopted["fact"]["revision"]) == ("Likes coffee.", 2)
    assert "revision: 2" in file.read_text("utf-8")


def test_several_facts_are_deleted_in_one_transaction(cli: CommandLine) -> None:
    one, two, three = cli.add("1"), cli.add("2"), cli.add("3")
    deleted = cli.ok("delete", one, three, "--json").json
    assert deleted == {"revision": 4, "deleted": [one, three]}
    assert cli.ok("list", "-q").lines == [two]


def test_nothing_is_deleted_if_one_of_the_facts_is_not_there(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    assert cli("delete", fact_id, "fact_absent").code == 3
    assert cli.ok("list", "-q").lines == [fact_id]


def test_a_delete_at_another_revision_is_refused(cli: CommandLine) -> None:
    fact_id = cli.add("x")
    assert cli("delete", fact_id, "--expected-revision", "2").code == 4
    cli.ok("delete", fact_id, "--expected-revision", "1")
    assert cli("get", fact_id).code == 3


def test_get_shows_the_text_and_then_what_is_known(cli: CommandLine) -> None:
    fact_id = cli.add("Likes tea.\nGreen, mostly.", "--category", "mood", "--topic", "drinks")
    shown = cli.ok("get", fact_id).lines
    assert shown[:5] == ["Likes tea.", "", "Likes tea.", "Green, mostly.", ""]
    assert f"id            {fact_id}" in shown
    assert "category      mood" in shown
    assert "topics        drinks" in shown


def test_agents_and_users_do_not_see_each_others_facts(cli: CommandLine) -> None:
    fact_id = cli.add("x", "--agent", "coder")
    for elsewhere in ([], ["--agent", "other"], ["--agent", "coder", "--user-id", "bob"], ["--no-user"]):
        assert cli("get", fact_id, *elsewhere).code == 3


def test_the_memory_without_a_user_lies_in_the_root(cli: CommandLine) -> None:
    fact_id = cli.add("x", "--no-user")
    assert cli.file_of(fact_id, "--no-user").is_relative_to(cli.root / "agents")
    assert "userId" not in cli.ok("get", fact_id, "--no-user", "--json").json["scope"]


def test_the_user_comes_from_the_environment_unless_one_is_given(cli: CommandLine) -> None:
    cli.monkeypatch.setenv("DEERMEM_USER_ID", "bob")
    cli.add("x")
    assert len(cli.ok("list", "-q", "--user-id", "bob").lines) == 1
    assert cli.ok("list", "-q", "--user-id", "default").lines == []
