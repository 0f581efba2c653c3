"""Every route does what contract section 7 says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deermem import DeerMem
from tests.gateway.servers import (
    EMPTY_SECTION,
    Client,
    Running,
    body_of,
    contents,
    fact_in,
    invalid,
    manager_at,
    refused,
    running,
)
from tests.support.stores import edit

EVICTED = "Fact was not stored because the configured memory.max_facts capacity policy evicted it"
MISSING = "Memory fact 'fact_missing' not found."


def test_an_unknown_user_has_an_empty_document_and_a_read_writes_nothing(client: Client) -> None:
    document = client.document()
    assert (document["version"], document["revision"], document["facts"]) == ("2.0", 0, [])
    assert document["user"]["workContext"] == EMPTY_SECTION
    assert not client.bucket.exists()


def test_a_created_fact_is_in_the_document_that_comes_back_and_in_the_next_one(client: Client) -> None:
    answer = client.post(
        "/api/memory/facts", json={"content": " likes tea ", "category": "preference", "confidence": 0.9}
    )
    fact = fact_in(body_of(answer), "likes tea")
    assert (fact["category"], fact["confidence"], fact["source"]) == ("preference", 0.9, "manual")
    assert client.document() == answer.json()


def test_a_fact_without_category_and_confidence_gets_the_usual_ones(client: Client) -> None:
    answer = client.post("/api/memory/facts", json={"content": "x", "category": None})
    fact = fact_in(body_of(answer), "x")
    assert (fact["category"], fact["confidence"]) == ("context", 0.5)


def test_the_same_text_in_another_case_is_a_duplicate(client: Client) -> None:
    client.create("Likes Tea")
    answer = client.post("/api/memory/facts", json={"content": "  likes tea "})
    refused(answer, 409, "A fact with the same content already exists.")


def test_a_fact_that_the_cap_evicts_at_once_is_refused(tmp_path: Path) -> None:
    with running(manager_at(tmp_path, max_facts=10)) as gateway, gateway.client() as client:
        for number in range(10):
            client.create(f"fact {number}", confidence=0.9)
        answer = client.post("/api/memory/facts", json={"content": "too weak", "confidence": 0.1})
        refused(answer, 409, EVICTED)
        assert len(client.document()["facts"]) == 10


def test_blank_content_is_refused_by_the_manager_and_empty_content_by_the_model(client: Client) -> None:
    blank = client.post("/api/memory/facts", json={"content": " \t\n"})
    refused(blank, 400, "Memory fact content cannot be empty.")
    invalid(client.post("/api/memory/facts", json={"content": ""}), "body", "content")


@pytest.mark.parametrize("confidence", ["-0.1", "1.1", "true", '"0.5"', "1e999", "[]"])
def test_a_confidence_out_of_range_or_of_another_type_is_invalid(client: Client, confidence: str) -> None:
    answer = client.post(
        "/api/memory/facts",
        content=f'{{"content": "x", "confidence": {confidence}}}',
        headers={"Content-Type": "application/json"},
    )
    invalid(answer, "body", "confidence")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_an_invalid_answer_survives_numbers_that_json_does_not_have(client: Client, number: str) -> None:
    for path in ("/api/memory/facts", "/api/memory/import", "/api/memory/facts/batch"):
        answer = client.post(
            path,
            content=f'{{"content": "x", "confidence": {number}, "facts": [{{"z": {number}}}]}}',
            headers={"Content-Type": "application/json"},
        )
        assert body_of(answer, 422)["detail"][0]["type"] == "json_invalid"


def test_a_change_leaves_what_it_does_not_name(client: Client) -> None:
    fact_id = client.create("old", category="goal", confidence=0.7)
    answer = client.patch(f"/api/memory/facts/{fact_id}", json={"content": "new", "confidence": None})
    fact = fact_in(body_of(answer), "new")
    assert (fact["id"], fact["category"], fact["confidence"], fact["revision"]) == (fact_id, "goal", 0.7, 2)


def test_a_change_of_nothing_changes_nothing(client: Client) -> None:
    fact_id = client.create("as it is")
    before = client.document()
    assert body_of(client.patch(f"/api/memory/facts/{fact_id}", json={})) == before


def test_a_change_to_blank_content_is_refused(client: Client) -> None:
    fact_id = client.create("text")
    answer = client.patch(f"/api/memory/facts/{fact_id}", json={"content": "  "})
    refused(answer, 400, "Memory fact content cannot be empty.")


def test_a_deleted_fact_is_gone(client: Client) -> None:
    fact_id = client.create("short-lived")
    assert body_of(client.delete(f"/api/memory/facts/{fact_id}"))["facts"] == []
    refused(client.get(f"/api/memory/facts/{fact_id}"), 404, f"Memory fact '{fact_id}' not found.")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_a_fact_that_is_not_there_is_not_found(client: Client, method: str) -> None:
    json = {"content": "x"} if method == "PATCH" else None
    refused(client.request(method, "/api/memory/facts/fact_missing", json=json), 404, MISSING)


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_what_cannot_be_an_id_is_not_found(client: Client, method: str) -> None:
    json = {"content": "x"} if method == "PATCH" else None
    answer = client.request(method, "/api/memory/facts/no.such%0Aid", json=json)
    refused(answer, 404, "Memory fact 'no.such\nid' not found.")


def test_clear_deletes_the_facts_of_all_agents_and_the_summaries(client: Client) -> None:
    client.create("of the default agent")
    client.post("/api/memory/facts", params={"agent": "coder"}, json={"content": "of the coder"})
    client.patch("/api/memory/summaries", json={"user": {"workContext": {"summary": "works"}}})
    document = body_of(client.delete("/api/memory"))
    assert document["facts"] == client.document("coder")["facts"] == []
    assert document["user"]["workContext"]["summary"] == ""


def test_clear_with_an_agent_deletes_the_facts_of_that_agent_alone(client: Client) -> None:
    client.create("of the default agent")
    client.post("/api/memory/facts", params={"agent": "coder"}, json={"content": "of the coder"})
    client.patch("/api/memory/summaries", json={"user": {"workContext": {"summary": "works"}}})
    assert body_of(client.delete("/api/memory", params={"agent": "CODER"}))["facts"] == []
    document = client.document()
    assert contents(document) == ["of the default agent"]
    assert document["user"]["workContext"]["summary"] == "works"


def test_import_replaces_what_is_there(client: Client) -> None:
    client.create("before")
    document = {"facts": [{"content": "after"}], "history": {"recentMonths": {"summary": "quiet"}}}
    answer = body_of(client.post("/api/memory/import", json=document))
    assert contents(answer) == ["after"]
    assert answer["history"]["recentMonths"]["summary"] == "quiet"


def test_what_was_exported_can_be_imported_elsewhere(client: Client, tmp_path: Path) -> None:
    client.create("a fact", category="goal", confidence=0.25)
    client.patch("/api/memory/summaries", json={"history": {"earlierContext": {"summary": "long ago"}}})
    exported = body_of(client.get("/api/memory/export"))
    assert exported == client.document()
    with running(manager_at(tmp_path / "elsewhere")) as other, other.client() as there:
        imported = body_of(there.post("/api/memory/import", json=exported))
    for key in ("user", "history"):
        assert imported[key] == exported[key]
    (fact,), (original,) = imported["facts"], exported["facts"]
    for key in ("id", "content", "category", "confidence", "createdAt", "source"):
        assert fact[key] == original[key]


def test_an_export_keeps_a_title_that_somebody_gave(client: Client) -> None:
    client.post("/api/memory/import", json={"facts": [{"id": "f1", "content": "text", "title": "Heading"}]})
    exported = body_of(client.get("/api/memory/export"))
    assert fact_in(exported, "text")["title"] == "Heading"
    client.delete("/api/memory")
    assert fact_in(body_of(client.post("/api/memory/import", json=exported)), "text")["title"] == "Heading"


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"facts": [{"content": ""}]}, ["body", "facts[0]", "content"]),
        ({"facts": [{"content": "x", "confidence": 2}]}, ["body", "facts[0]", "confidence"]),
        ({"facts": "none"}, ["body", "facts"]),
        ({"user": []}, ["body", "user"]),
        ({"version": "9"}, ["body", "version"]),
        ([], ["body"]),
        ({}, ["body"]),
        ({"facts": None}, ["body"]),
        ({"data": {"facts": [{"content": "x"}]}}, ["body"]),
        ({"content": "a fact, and no document"}, ["body"]),
    ],
)
def test_an_import_that_breaks_a_rule_is_invalid_and_changes_nothing(
    client: Client, document: object, place: list[str]
) -> None:
    client.create("kept")
    invalid(client.post("/api/memory/import", json=document), *place)
    assert contents(client.document()) == ["kept"]


@pytest.mark.parametrize(
    "part", [{"version": "2.0"}, {"user": {}}, {"history": {}}, {"facts": [{"content": "after"}]}]
)
def test_each_part_of_a_document_alone_is_one(client: Client, part: dict[str, object]) -> None:
    client.create("before")
    document = body_of(client.post("/api/memory/import", json=part))
    assert contents(document) == (["after"] if "facts" in part else [])


def test_an_import_leaves_out_what_a_document_has_no_place_for(client: Client) -> None:
    document = {
        "facts": [],
        "owner": "x",
        "user": {"topOfMind": {"summary": "tea", "mood": "good"}, "shoeSize": {"summary": "43"}},
    }
    answer = body_of(client.post("/api/memory/import", json=document))
    assert "owner" not in answer
    assert "shoeSize" not in answer["user"]
    assert (answer["user"]["topOfMind"]["summary"], answer["user"]["topOfMind"]["mood"]) == ("tea", "good")


@pytest.mark.parametrize("key", ["topics", "title", "confidnce", "agent", "id"])
def test_a_key_that_facts_are_not_given_with_is_invalid_and_nothing_is_stored(
    client: Client, key: str
) -> None:
    fact_id = client.create("there")
    bad = {"content": "x", key: None}
    invalid(client.post("/api/memory/facts", json=bad), "body", key)
    invalid(client.patch(f"/api/memory/facts/{fact_id}", json=bad), "body", key)
    batch = {"facts": [{"content": "first"}, bad]}
    invalid(client.post("/api/memory/facts/batch", json=batch), "body", "facts", 1, key)
    assert contents(client.document()) == ["there"]


def test_a_batch_takes_no_other_key_than_its_list(client: Client) -> None:
    batch = {"facts": [{"content": "x"}], "agent": "coder"}
    invalid(client.post("/api/memory/facts/batch", json=batch), "body", "agent")
    answer = client.post("/api/memory/facts/batch-delete", json={"ids": ["x"], "agent": "coder"})
    invalid(answer, "body", "agent")
    assert client.document()["revision"] == 0


def test_reload_shows_an_edit_by_hand(client: Client) -> None:
    client.create("before the edit")
    (path,) = client.bucket.rglob("fact_*.md")
    edit(path, "\nbefore the edit\n", "\nafter the edit\n")
    assert contents(body_of(client.post("/api/memory/reload"))) == ["after the edit"]
    assert contents(client.document()) == ["after the edit"]


def test_the_settings_name_no_path(client: Client, shared: Running) -> None:
    answer = client.get("/api/memory/config")
    assert body_of(answer)["max_facts"] == 100
    assert str(shared.root) not in answer.text


def test_the_status_is_the_settings_and_the_document(client: Client) -> None:
    client.create("a fact")
    status = body_of(client.get("/api/memory/status"))
    assert status["config"] == body_of(client.get("/api/memory/config"))
    assert status["data"] == client.document()


def test_a_page_tells_where_the_next_one_begins(client: Client) -> None:
    for number in range(5):
        client.create(f"fact {number}")
    seen, cursor = [], None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = body_of(client.get("/api/memory/facts", params=params))
        assert len(page["facts"]) <= 2
        seen += page["facts"]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert seen == client.document()["facts"]


def test_a_page_has_the_facts_that_match_every_filter(client: Client) -> None:
    document = {
        "facts": [
            {"id": "a", "content": "a", "category": "goal", "topics": ["x", "y"], "source": "thread-1"},
            {"id": "b", "content": "b", "category": "goal", "topics": ["x"]},
            {"id": "c", "content": "c", "category": "own", "topics": ["x", "y"], "source": "manual"},
        ]
    }
    client.post("/api/memory/import", json=document)

    def ids(**filters: str | list[str]) -> list[str]:
        page = body_of(client.get("/api/memory/facts", params=filters))
        return [fact["id"] for fact in page["facts"]]

    assert ids(category="goal") == ["a", "b"]
    assert ids(topic=["x", "y"]) == ["a", "c"]
    assert ids(source="thread-1") == ["a"]
    assert ids(category="own", topic="x") == ["c"]
    assert ids(category="none") == []


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"cursor": "../etc"}, "cursor"),
        ({"cursor": "readme"}, "cursor"),
        ({"agent": "__default__"}, "agent"),
        ({"agent": "a/b"}, "agent"),
        ({"agent": ""}, "agent"),
        ({"agent": "x" * 65}, "agent"),
        ({"agent": "coder\n"}, "agent"),
    ],
)
def test_a_query_that_breaks_a_rule_is_invalid(client: Client, params: dict[str, str], place: str) -> None:
    invalid(client.get("/api/memory/facts", params=params), "query", place)


def test_one_fact_alone_is_the_one_in_the_document(client: Client) -> None:
    fact_id = client.create("a fact")
    assert body_of(client.get(f"/api/memory/facts/{fact_id}")) == client.document()["facts"][0]


def test_facts_of_two_agents_do_not_mix(client: Client) -> None:
    client.create("of the default agent")
    client.post("/api/memory/facts", params={"agent": "coder"}, json={"content": "of the coder"})
    assert contents(client.document()) == ["of the default agent"]
    assert contents(client.document("coder")) == ["of the coder"]
    assert client.document("coder")["facts"][0]["scope"]["agentName"] == "coder"


def test_a_batch_is_stored_in_one_transaction(client: Client) -> None:
    batch = {"facts": [{"content": "one"}, {"content": "two", "category": "goal"}]}
    document = body_of(client.post("/api/memory/facts/batch", json=batch))
    assert (document["revision"], contents(document)) == (1, ["one", "two"])


@pytest.mark.parametrize("bad", [{"content": "stored"}, {"content": "twice"}])
def test_a_batch_with_a_duplicate_is_refused_as_a_whole(client: Client, bad: dict[str, str]) -> None:
    client.create("stored")
    batch = {"facts": [{"content": "Twice"}, {"content": "new"}, bad]}
    answer = client.post("/api/memory/facts/batch", json=batch)
    refused(answer, 409, "A fact with the same content already exists.")
    assert contents(client.document()) == ["stored"]


def test_a_batch_beyond_the_cap_evicts_the_weakest_or_is_refused_as_a_whole(tmp_path: Path) -> None:
    with running(manager_at(tmp_path, max_facts=10)) as gateway, gateway.client() as client:
        for number in range(9):
            client.create(f"fact {number}", confidence=0.5)
        strong = {"facts": [{"content": f"strong {n}", "confidence": 0.9} for n in range(2)]}
        assert len(body_of(client.post("/api/memory/facts/batch", json=strong))["facts"]) == 10
        before = client.document()
        weak = {"facts": [{"content": "strongest", "confidence": 1}, {"content": "weak", "confidence": 0.1}]}
        refused(client.post("/api/memory/facts/batch", json=weak), 409, EVICTED)
        assert client.document() == before


def test_a_batch_that_names_too_many_facts_is_invalid(tmp_path: Path) -> None:
    with running(manager_at(tmp_path), max_facts_per_request=3) as gateway, gateway.client() as client:
        batch = {"facts": [{"content": f"fact {n}"} for n in range(4)]}
        invalid(client.post("/api/memory/facts/batch", json=batch), "body", "facts")
        invalid(client.post("/api/memory/facts/batch-delete", json={"ids": list("abcd")}), "body", "ids")
        assert client.document()["revision"] == 0


def test_a_batch_of_nothing_is_invalid(client: Client) -> None:
    invalid(client.post("/api/memory/facts/batch", json={"facts": []}), "body", "facts")
    invalid(client.post("/api/memory/facts/batch-delete", json={"ids": []}), "body", "ids")


def test_a_batch_is_deleted_in_one_transaction(client: Client) -> None:
    ids = [client.create(f"fact {number}") for number in range(3)]
    document = body_of(client.post("/api/memory/facts/batch-delete", json={"ids": ids[:2]}))
    assert (document["revision"], contents(document)) == (4, ["fact 2"])


def test_a_batch_of_deletes_with_a_missing_fact_deletes_nothing(client: Client) -> None:
    fact_id = client.create("kept")
    answer = client.post("/api/memory/facts/batch-delete", json={"ids": [fact_id, "fact_missing"]})
    refused(answer, 404, MISSING)
    assert contents(client.document()) == ["kept"]


def test_a_batch_of_deletes_that_names_a_fact_twice_is_invalid(client: Client) -> None:
    fact_id = client.create("kept")
    answer = client.post("/api/memory/facts/batch-delete", json={"ids": [fact_id, fact_id]})
    assert answer.status_code == 422
    assert contents(client.document()) == ["kept"]


def test_summaries_that_are_not_named_stay(client: Client) -> None:
    client.patch("/api/memory/summaries", json={"user": {"workContext": {"summary": "works"}}})
    answer = client.patch("/api/memory/summaries", json={"user": {"topOfMind": {"summary": "tea"}}})
    user = body_of(answer)["user"]
    assert (user["workContext"]["summary"], user["topOfMind"]["summary"]) == ("works", "tea")


@pytest.mark.parametrize(
    "patch",
    [{"user": {"shoeSize": {"summary": "43"}}}, {"facts": []}, {"user": {"workContext": {"summary": 1}}}],
)
def test_a_patch_of_unknown_summaries_is_invalid(client: Client, patch: object) -> None:
    assert client.patch("/api/memory/summaries", json=patch).status_code == 422
    assert client.document()["revision"] == 0


def test_a_summary_that_is_invalid_is_told_by_its_place_in_the_request(client: Client) -> None:
    patch = {"user": {"topOfMind": {"summary": "x", "updatedAt": "yesterday"}}}
    invalid(client.patch("/api/memory/summaries", json=patch), "body", "user", "topOfMind", "updatedAt")


def test_the_agents_of_a_user_are_listed_without_the_default_one(client: Client) -> None:
    client.create("of the default agent")
    for agent in ("writer", "coder"):
        client.post("/api/memory/facts", params={"agent": agent}, json={"content": "x"})
    assert body_of(client.get("/api/agents"))["agents"] == [
        {"name": "coder", "custom": False, "facts": 1},
        {"name": "writer", "custom": False, "facts": 1},
    ]


def test_an_agent_is_listed_that_is_a_custom_one_or_has_facts(client: Client) -> None:
    for agent in ("emptied", "both"):
        client.post("/api/memory/facts", params={"agent": agent}, json={"content": "x"})
    client.delete("/api/memory", params={"agent": "emptied"})
    agents = client.bucket / "agents"
    for agent in ("new", "both"):
        (agents / agent).mkdir(exist_ok=True)
        (agents / agent / "config.yaml").write_text("model: x\n")
    (agents / "notes").mkdir()
    (agents / "notes" / "readme.txt").write_text("no agent\n")
    assert body_of(client.get("/api/agents"))["agents"] == [
        {"name": "both", "custom": True, "facts": 1},
        {"name": "new", "custom": True, "facts": 0},
    ]


def test_the_agents_of_a_user_without_any_memory_are_listed(client: Client) -> None:
    (client.bucket / "agents" / "new").mkdir(parents=True)
    (client.bucket / "agents" / "new" / "config.yaml").write_text("model: x\n")
    assert body_of(client.get("/api/agents"))["agents"] == [{"name": "new", "custom": True, "facts": 0}]


def test_a_custom_agent_is_deleted_with_all_it_owns(client: Client) -> None:
    client.post("/api/memory/facts", params={"agent": "coder"}, json={"content": "x"})
    directory = client.bucket / "agents" / "coder"
    (directory / "config.yaml").write_text("model: x\n")
    (directory / "SOUL.md").write_text("kind\n")
    answer = client.delete("/api/agents/Coder")
    assert (answer.status_code, answer.content) == (204, b"")
    assert not directory.exists()
    refused(client.delete("/api/agents/coder"), 404, "Agent 'coder' not found")


def test_a_directory_with_memories_alone_is_preserved(client: Client) -> None:
    client.post("/api/memory/facts", params={"agent": "coder"}, json={"content": "x"})
    refused(
        client.delete("/api/agents/coder"),
        409,
        "Directory for 'coder' contains memory data but is not a custom agent because config.yaml is missing;"
        " it was preserved.",
    )
    assert contents(client.document("coder")) == ["x"]


@pytest.mark.parametrize("name", ["nobody", "__default__", "a.b", "..", "x" * 65])
def test_an_agent_that_is_not_there_is_not_found(client: Client, name: str) -> None:
    answer = client.delete(f"/api/agents/{name.replace('.', '%2E')}")
    assert answer.status_code == 404


def test_values_that_are_null_are_left_out(client: Client) -> None:
    client.create("a fact")
    assert None not in client.document()["facts"][0].values()
    assert "null" not in client.get("/api/memory").text


def test_a_read_only_gateway_reads_and_refuses_every_change(tmp_path: Path) -> None:
    manager_at(tmp_path).create_fact("kept", user_id="default")
    with running(manager_at(tmp_path), read_only=True) as gateway, gateway.client() as client:
        assert contents(client.document()) == ["kept"]
        assert contents(body_of(client.post("/api/memory/reload"))) == ["kept"]
        fact = f"/api/memory/facts/{client.document()['facts'][0]['id']}"
        batch = {"facts": [{"content": "x"}]}
        for answer in (
            client.delete("/api/memory"),
            client.post("/api/memory/import", json={}),
            client.post("/api/memory/facts", json={"content": "x"}),
            client.post("/api/memory/facts/batch", json=batch),
            client.post("/api/memory/facts/batch-delete", json={"ids": ["x"]}),
            client.patch("/api/memory/summaries", json={}),
            client.patch(fact, json={"content": "x"}),
            client.delete(fact),
            client.delete("/api/agents/coder"),
        ):
            refused(answer, 403, "This gateway is read-only.")
        assert body_of(client.get("/api/memory/config"))["read_only"] is True
        assert client.document()["revision"] == 1


def test_the_user_of_mode_none_is_the_default_one(gateway: Running, local: Client) -> None:
    local.create("a fact")
    assert isinstance(gateway.manager, DeerMem)
    assert contents(gateway.manager.get_memory(user_id="default")) == ["a fact"]


def test_unknown_routes_and_methods_are_told_as_such(client: Client) -> None:
    refused(client.get("/api/nothing"), 404, "Not Found")
    refused(client.get("/api/memory/"), 404, "Not Found")
    refused(client.put("/api/memory/facts", json={}), 405, "Method Not Allowed")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/memory", None),
        ("HEAD", "/api/memory", None),
        ("GET", "/api/memory/export", None),
        ("POST", "/api/memory/reload", None),
        ("DELETE", "/api/memory", None),
        ("POST", "/api/memory/import", {"facts": []}),
        ("PATCH", "/api/memory/summaries", {"user": {"topOfMind": {"summary": "x"}}}),
        ("GET", "/api/memory/config", None),
        ("GET", "/api/memory/status", None),
        ("GET", "/api/memory/facts", None),
        ("POST", "/api/memory/facts", {"content": "x"}),
        ("POST", "/api/memory/facts/batch", {"facts": [{"content": "x"}]}),
        ("POST", "/api/memory/facts/batch-delete", {"ids": ["f1"]}),
        ("GET", "/api/memory/facts/f1", None),
        ("PATCH", "/api/memory/facts/f1", {"content": "x"}),
        ("DELETE", "/api/memory/facts/f1", None),
        ("GET", "/api/agents", None),
        ("DELETE", "/api/agents/coder", None),
    ],
)
def test_a_name_in_a_query_that_a_route_does_not_take_is_invalid_and_nothing_is_changed(
    client: Client, method: str, path: str, body: object
) -> None:
    client.post("/api/memory/import", json={"facts": [{"id": "f1", "content": "kept"}]})
    directory = client.bucket / "agents" / "coder"
    directory.mkdir(parents=True)
    (directory / "config.yaml").write_text("model: x\n")
    answer = client.request(method, path, params={"agnet": "research"}, json=body)
    assert answer.status_code == 422
    if method != "HEAD":
        invalid(answer, "query", "agnet")
    assert contents(client.document()) == ["kept"]
    assert directory.exists()


def test_a_parameter_of_one_route_is_unknown_to_another(client: Client) -> None:
    invalid(client.get("/api/memory", params={"limit": "5"}), "query", "limit")
    invalid(client.get("/api/agents", params={"agent": "coder"}), "query", "agent")
    answer = client.get("/api/memory/facts", params={"Limit": "5"})
    assert "is none of agent, category, cursor, limit, source, topic" in answer.text


def test_of_very_many_unknown_names_a_few_are_told(client: Client) -> None:
    answer = client.get("/api/memory", params={f"name{number}": "" for number in range(1_000)})
    assert len(body_of(answer, 422)["detail"]) == 20


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
def test_what_is_no_part_of_the_api_takes_any_query(local: Client, path: str) -> None:
    assert local.get(path, params={"t": "1"}).status_code == 200
