"""Entity tags, conditional requests and idempotency keys (contract section 7)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from tests.gateway.servers import Client, Running, body_of, contents, invalid, manager_at, refused, running
from tests.manager.managers import watched_manager
from tests.support.stores import edit
from tests.support.threads import run_together
from tests.support.watched import Call

CONFLICT = "Memory changed concurrently; reload and retry."
DUPLICATE = "A fact with the same content already exists."
MEMORY = "/api/memory"
FACTS = "/api/memory/facts"

Change = Callable[[Client, str, dict[str, str]], httpx.Response]

# Changes of the memory as a whole; the first argument is the id of a fact that is there.
CHANGES: dict[str, Change] = {
    "clear": lambda client, _, headers: client.delete(MEMORY, headers=headers),
    "import": lambda client, _, headers: client.post(f"{MEMORY}/import", json={"facts": []}, headers=headers),
    "summaries": lambda client, _, headers: client.patch(
        f"{MEMORY}/summaries", json={"user": {"topOfMind": {"summary": "tea"}}}, headers=headers
    ),
    "create": lambda client, _, headers: client.post(FACTS, json={"content": "new"}, headers=headers),
    "batch": lambda client, _, headers: client.post(
        f"{FACTS}/batch", json={"facts": [{"content": "new"}]}, headers=headers
    ),
    "batch-delete": lambda client, fact_id, headers: client.post(
        f"{FACTS}/batch-delete", json={"ids": [fact_id]}, headers=headers
    ),
}
FACT_CHANGES: dict[str, Change] = {
    "update": lambda client, fact_id, headers: client.patch(
        f"{FACTS}/{fact_id}", json={"content": "changed"}, headers=headers
    ),
    "delete": lambda client, fact_id, headers: client.delete(f"{FACTS}/{fact_id}", headers=headers),
}

ALL_CHANGES = {**CHANGES, **FACT_CHANGES}


def tag(client: Client, path: str = MEMORY, **params: str) -> str:
    return str(client.get(path, params=params).headers["etag"])


def test_the_tags_tell_kind_revision_and_bytes(client: Client) -> None:
    fact_id = client.create("a fact")
    client.patch(f"{MEMORY}/summaries", json={"user": {"topOfMind": {"summary": "tea"}}})
    for path, start in ((MEMORY, "m2"), (f"{FACTS}/{fact_id}", "f1"), (f"{MEMORY}/export", "m2")):
        answer = client.get(path)
        digest = sha256(answer.content).hexdigest()[:16]
        assert answer.headers["etag"] == f'"{start}-{digest}"'


def test_a_change_answers_with_the_tag_that_a_read_then_has(client: Client) -> None:
    answers = [
        client.post(FACTS, json={"content": "one"}),
        client.post(FACTS, json={"content": "two"}, headers={"Idempotency-Key": "k"}),
        client.patch(f"{MEMORY}/summaries", json={"user": {"topOfMind": {"summary": "tea"}}}),
        client.post(f"{MEMORY}/reload"),
        client.delete(MEMORY),
    ]
    for answer in answers[:-1]:
        assert re.fullmatch(r'"m\d+-[0-9a-f]{16}"', answer.headers["etag"])
    assert answers[-1].headers["etag"] == tag(client)


def test_what_the_client_has_is_not_sent_again(client: Client) -> None:
    fact_id = client.create("a fact")
    paths = (MEMORY, f"{MEMORY}/export", f"{MEMORY}/status", f"{MEMORY}/config", FACTS, f"{FACTS}/{fact_id}")
    for path in (*paths, "/api/agents"):
        known = tag(client, path)
        answer = client.get(path, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == known
        assert answer.headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("header", ["W/{tag}", '"x", {tag}', "*", '"a,b", W/"c", {tag}'])
def test_each_form_of_if_none_match_is_understood(client: Client, header: str) -> None:
    client.create("a fact")
    answer = client.get(MEMORY, headers={"If-None-Match": header.format(tag=tag(client))})
    assert answer.status_code == 304


def test_what_has_changed_is_sent_again(client: Client) -> None:
    client.create("one")
    known = tag(client)
    client.create("two")
    assert client.get(MEMORY, headers={"If-None-Match": known}).status_code == 200


def test_an_edit_by_hand_changes_the_tag_though_the_revision_stays(client: Client) -> None:
    client.create("before the edit")
    known = tag(client)
    (path,) = client.bucket.rglob("fact_*.md")
    edit(path, "\nbefore the edit\n", "\nafter the edit\n")
    client.post(f"{MEMORY}/reload")
    answer = client.get(MEMORY, headers={"If-None-Match": known})
    assert (answer.status_code, answer.json()["revision"]) == (200, 1)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_the_client_has_seen_is_made(client: Client, name: str) -> None:
    fact_id = client.create("a fact")
    answer = CHANGES[name](client, fact_id, {"If-Match": tag(client)})
    assert body_of(answer)["revision"] == 2
    assert answer.json() == client.document()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_the_client_has_not_seen_is_refused(client: Client, name: str) -> None:
    fact_id = client.create("a fact")
    seen = tag(client)
    client.create("another")
    before = client.document()
    body = refused(CHANGES[name](client, fact_id, {"If-Match": seen}), 409, CONFLICT)
    assert body["revision"] == 2
    assert client.document() == before


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("condition", ["the tag of a fact", "W/{tag}", '""', '"nonsense"'])
def test_what_is_no_tag_of_the_memory_matches_nothing(client: Client, name: str, condition: str) -> None:
    fact_id = client.create("a fact")
    known = tag(client)
    fact_tag = tag(client, f"{FACTS}/{fact_id}")
    header = condition.format(tag=known, bare=known.strip('"')).replace("the tag of a fact", fact_tag)
    body = refused(CHANGES[name](client, fact_id, {"If-Match": header}), 409, CONFLICT)
    assert body["revision"] == 1


@pytest.mark.parametrize("name", ALL_CHANGES)
@pytest.mark.parametrize(
    "header", ["{bare}", "nonsense", "", '{tag} "x"', "{tag}, *", "{tag},, x", '"', "w/{tag}"]
)
def test_a_condition_that_is_malformed_is_invalid_and_no_conflict(
    client: Client, name: str, header: str
) -> None:
    fact_id = client.create("a fact")
    known = tag(client)
    headers = {"If-Match": header.format(tag=known, bare=known.strip('"'))}
    invalid(ALL_CHANGES[name](client, fact_id, headers), "header", "If-Match")
    assert tag(client) == known


def test_a_condition_may_be_spread_over_several_headers(client: Client) -> None:
    client.create("a fact")
    headers = [("If-Match", '"x"'), ("If-Match", f'W/"y" ,{tag(client)}')]
    assert client.post(FACTS, json={"content": "new"}, headers=headers).status_code == 200


@pytest.mark.parametrize("header", ['"x", {tag}', "*"])
@pytest.mark.parametrize("name", CHANGES)
def test_each_form_of_if_match_is_understood(client: Client, name: str, header: str) -> None:
    fact_id = client.create("a fact")
    answer = CHANGES[name](client, fact_id, {"If-Match": header.format(tag=tag(client))})
    assert answer.status_code == 200


@pytest.mark.parametrize("name", FACT_CHANGES)
def test_a_change_of_the_fact_that_the_client_has_seen_is_made(client: Client, name: str) -> None:
    fact_id = client.create("a fact")
    seen = tag(client, f"{FACTS}/{fact_id}")
    client.create("another")  # a fact's tag does not depend on the others
    assert FACT_CHANGES[name](client, fact_id, {"If-Match": seen}).status_code == 200


@pytest.mark.parametrize("name", FACT_CHANGES)
def test_a_change_of_a_fact_that_has_changed_is_refused(client: Client, name: str) -> None:
    fact_id = client.create("a fact")
    seen = tag(client, f"{FACTS}/{fact_id}")
    client.patch(f"{FACTS}/{fact_id}", json={"content": "by another"})
    body = refused(FACT_CHANGES[name](client, fact_id, {"If-Match": seen}), 409, CONFLICT)
    assert (body["factId"], body["revision"]) == (fact_id, 2)
    assert contents(client.document()) == ["by another"]


@pytest.mark.parametrize("name", FACT_CHANGES)
def test_the_tag_of_a_memory_is_none_of_a_fact(client: Client, name: str) -> None:
    fact_id = client.create("a fact")
    refused(FACT_CHANGES[name](client, fact_id, {"If-Match": tag(client)}), 409, CONFLICT)
    assert contents(client.document()) == ["a fact"]


@pytest.mark.parametrize("name", FACT_CHANGES)
def test_a_fact_that_was_deleted_and_created_again_is_not_the_one_that_was_seen(
    client: Client, name: str
) -> None:
    key = {"Idempotency-Key": "same id"}
    client.post(FACTS, json={"content": "a fact"}, headers=key)
    (fact,) = client.document()["facts"]
    seen = tag(client, f"{FACTS}/{fact['id']}")
    client.delete(f"{FACTS}/{fact['id']}")
    client.post(FACTS, json={"content": "a fact"}, headers=key)
    refused(FACT_CHANGES[name](client, fact["id"], {"If-Match": seen}), 409, CONFLICT)


@pytest.mark.parametrize("name", FACT_CHANGES)
def test_a_missing_fact_is_not_found_whatever_the_condition(client: Client, name: str) -> None:
    answer = FACT_CHANGES[name](client, "fact_missing", {"If-Match": '"f1-0000000000000000"'})
    refused(answer, 404, "Memory fact 'fact_missing' not found.")


def test_a_condition_on_one_agent_is_none_on_another(client: Client) -> None:
    client.create("of the default agent")
    client.post(FACTS, params={"agent": "coder"}, json={"content": "of the coder"})
    of_coder = tag(client, agent="coder")
    refused(client.post(FACTS, json={"content": "x"}, headers={"If-Match": of_coder}), 409, CONFLICT)
    answer = client.post(
        FACTS, params={"agent": "coder"}, json={"content": "x"}, headers={"If-Match": of_coder}
    )
    assert contents(body_of(answer)) == ["of the coder", "x"]


def test_a_conditional_clear_of_an_agent_leaves_the_others(client: Client) -> None:
    client.create("of the default agent")
    client.post(FACTS, params={"agent": "coder"}, json={"content": "of the coder"})
    headers = {"If-Match": tag(client, agent="coder")}
    assert body_of(client.delete(MEMORY, params={"agent": "coder"}, headers=headers))["facts"] == []
    assert contents(client.document()) == ["of the default agent"]


def test_of_several_changes_to_what_all_have_seen_one_is_made(client: Client, shared: Running) -> None:
    client.create("a fact")
    seen = tag(client)
    answers: list[httpx.Response] = []

    def change(number: int) -> None:
        with Client(base_url=shared.url, headers=client.headers, timeout=30, trust_env=False) as other:
            answers.append(
                other.post(FACTS, json={"content": f"change {number}"}, headers={"If-Match": seen})
            )

    run_together(*(partial(change, number) for number in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    assert len(client.document()["facts"]) == 2


def test_the_same_key_and_content_is_answered_as_the_first_time(client: Client) -> None:
    first = client.post(FACTS, json={"content": " once "}, headers={"Idempotency-Key": "k1"})
    again = client.post(FACTS, json={"content": "once"}, headers={"Idempotency-Key": "k1"})
    assert body_of(first) == body_of(again)
    assert contents(client.document()) == ["once"]


def test_the_same_key_with_another_content_is_invalid(client: Client) -> None:
    client.post(FACTS, json={"content": "once"}, headers={"Idempotency-Key": "k1"})
    answer = client.post(FACTS, json={"content": "other"}, headers={"Idempotency-Key": "k1"})
    invalid(answer, "header", "Idempotency-Key")
    assert contents(client.document()) == ["once"]


def test_a_key_names_the_fact_by_user_agent_and_key(client: Client) -> None:
    user = client.bucket.name
    for agent in (None, "coder"):
        params = {"agent": agent} if agent else {}
        client.post(FACTS, params=params, json={"content": "x"}, headers={"Idempotency-Key": "k1"})
        (fact,) = client.document(agent)["facts"]
        digest = sha256(f'["{user}", "{agent or "__default__"}", "k1"]'.encode()).hexdigest()
        assert fact["id"] == f"fact_{digest[:32]}"


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k1"}, {"If-Match": "*"}])
@pytest.mark.parametrize("agent", [None, "Coder"])
def test_a_creation_tells_where_the_new_fact_is(
    client: Client, headers: dict[str, str], agent: str | None
) -> None:
    params = {"agent": agent} if agent else {}
    client.post(FACTS, params=params, json={"content": "there"})
    answer = client.post(FACTS, params=params, json={"content": " new "}, headers=headers)
    fact = body_of(client.get(answer.headers["location"]))
    assert (fact["content"], fact["scope"]["agentName"]) == ("new", "coder" if agent else "__default__")


def test_a_repeated_creation_tells_the_same_place(client: Client) -> None:
    first, again = (
        client.post(FACTS, json={"content": "once"}, headers={"Idempotency-Key": "k1"}) for _ in range(2)
    )
    assert first.headers["location"] == again.headers["location"]


def test_a_key_does_not_let_a_duplicate_pass(client: Client) -> None:
    client.create("there already")
    answer = client.post(FACTS, json={"content": "There already"}, headers={"Idempotency-Key": "k1"})
    refused(answer, 409, DUPLICATE)


def test_a_condition_that_was_stale_before_the_first_time_does_not_refuse_the_repetition(
    client: Client,
) -> None:
    headers = {"Idempotency-Key": "k1", "If-Match": tag(client)}
    first = client.post(FACTS, json={"content": "once"}, headers=headers)
    again = client.post(FACTS, json={"content": "once"}, headers=headers)
    assert body_of(first) == body_of(again)


def test_one_key_at_once_creates_one_fact(client: Client, shared: Running) -> None:
    answers: list[httpx.Response] = []

    def create() -> None:
        with Client(base_url=shared.url, headers=client.headers, timeout=30, trust_env=False) as other:
            headers = {"Idempotency-Key": "k1"}
            answers.append(other.post(FACTS, json={"content": "once"}, headers=headers))

    run_together(*[create] * 6)
    assert [answer.status_code for answer in answers] == [200] * 6
    assert contents(client.document()) == ["once"]


def test_a_batch_with_a_key_may_be_repeated(client: Client) -> None:
    batch = {"facts": [{"content": "one"}, {"content": "two"}]}
    first = client.post(f"{FACTS}/batch", json=batch, headers={"Idempotency-Key": "k1"})
    again = client.post(f"{FACTS}/batch", json=batch, headers={"Idempotency-Key": "k1"})
    assert body_of(first) == body_of(again)
    other = {"facts": [{"content": "one"}, {"content": "three"}]}
    invalid(
        client.post(f"{FACTS}/batch", json=other, headers={"Idempotency-Key": "k1"}),
        "header",
        "Idempotency-Key",
    )
    assert contents(client.document()) == ["one", "two"]


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb"])
def test_a_key_that_breaks_the_rule_is_invalid(client: Client, key: str) -> None:
    answer = client.post(FACTS, json={"content": "x"}, headers={"Idempotency-Key": key})
    invalid(answer, "header", "Idempotency-Key")


def test_a_condition_that_a_route_does_not_know_is_not_ignored(client: Client) -> None:
    directory = client.bucket / "agents" / "coder"
    directory.mkdir(parents=True)
    (directory / "config.yaml").write_text("model: x\n")
    etag = client.get("/api/agents").headers["etag"]
    for tag in (etag, '"m1-stale"'):
        invalid(client.delete("/api/agents/coder", headers={"If-Match": tag}), "header", "If-Match")
    assert directory.exists()
    assert client.delete("/api/agents/coder", headers={"If-Match": "*"}).status_code == 204


@pytest.mark.parametrize("path", [FACTS, f"{FACTS}/batch"])
def test_two_keys_are_invalid(client: Client, path: str) -> None:
    body = {"content": "x"} if path == FACTS else {"facts": [{"content": "x"}]}
    answer = client.post(path, json=body, headers=[("Idempotency-Key", "k1"), ("Idempotency-Key", "k2")])
    invalid(answer, "header", "Idempotency-Key")
    assert client.document()["facts"] == []


def test_a_writer_in_between_makes_a_conditional_change_conflict(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    with running(manager) as gateway, gateway.client() as client:
        client.create("a fact")
        seen = tag(client)

        def write_first(call: Call) -> None:
            if call.kind == "lock_file":
                disk.on_call = lambda _: None
                manager_at(tmp_path).create_fact("in between", user_id="default")

        disk.on_call = write_first
        answer = client.post(FACTS, json={"content": "late"}, headers={"If-Match": seen})
        assert refused(answer, 409, CONFLICT)["revision"] == 2
        assert contents(client.document()) == ["a fact", "in between"]
