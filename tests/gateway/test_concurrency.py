"""Eight clients at once on one user: what the server answered is what the files say, no more and no less."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import httpx
import pytest

from deermem import MemoryRepository, Scope
from tests.gateway.servers import Client, Running, body_of, fact_in, manager_at, running
from tests.support.threads import run_together

CLIENTS = 8
FACTS = "/api/memory/facts"
USER = Scope.of("default")


@dataclass
class Span:
    """When something was asked for and answered."""

    sent: float
    answered: float


@dataclass
class Life:
    """What a client knows of a fact that it created; the text is what was acknowledged last."""

    text: str
    created: Span
    deleted: bool = False


@dataclass
class Record:
    """What one client was told."""

    lives: dict[str, Life] = field(default_factory=dict)
    refused_texts: set[str] = field(default_factory=set)
    clears: list[Span] = field(default_factory=list)
    commits: int = 0
    revisions: list[int] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)


class Actor:
    """Sends one request after another, and notes what comes of each."""

    def __init__(self, client: Client, name: str, seed: int, record: Record) -> None:
        self.client = client
        self.name = name
        self.random = random.Random(seed)  # noqa: S311 - which request comes next is no secret
        self.numbers = count()
        self.record = record

    def act(self) -> None:
        """Sends one request of a kind chosen by chance."""
        action = self.random.choices(
            (self.create, self.patch, self.delete, self.write_stale, self.repeat, self.clear),
            (45, 20, 12, 8, 8, 3),
        )[0]
        action()

    def new_text(self) -> str:
        return f"{self.name} says {next(self.numbers)}"

    def send(self, method: str, path: str, **more: object) -> tuple[httpx.Response, Span]:
        sent = time.monotonic()
        answer = self.client.request(method, path, **more)  # type: ignore[arg-type]
        span = Span(sent, time.monotonic())
        statuses = self.record.statuses
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        if answer.status_code == 200:
            self.record.commits += 1
            self.record.revisions.append(answer.json()["revision"])
        return answer, span

    def create(self) -> None:
        text = self.new_text()
        answer, span = self.send("POST", FACTS, json={"content": text}, headers={"Idempotency-Key": text})
        body = body_of(answer)
        # Another client may have cleared the memory before the answer was read.
        ids = [fact["id"] for fact in body["facts"] if fact["content"] == text]
        if ids:
            self.record.lives[ids[0]] = Life(text, span)

    def choose(self) -> str | None:
        alive = [fact_id for fact_id, life in self.record.lives.items() if not life.deleted]
        return self.random.choice(alive) if alive else None

    def patch(self) -> None:
        fact_id = self.choose()
        if fact_id is not None:
            text = self.new_text()
            answer, _ = self.send("PATCH", f"{FACTS}/{fact_id}", json={"content": text})
            if answer.status_code == 200:
                self.record.lives[fact_id].text = text
            else:
                body_of(answer, 404)
                self.record.refused_texts.add(text)

    def delete(self) -> None:
        fact_id = self.choose()
        if fact_id is not None:
            answer, _ = self.send("DELETE", f"{FACTS}/{fact_id}")
            assert answer.status_code in (200, 404), answer.text
            self.record.lives[fact_id].deleted = True

    def write_stale(self) -> None:
        text = self.new_text()
        headers = {"If-Match": '"m1-0123456789abcdef"'}
        answer, _ = self.send("POST", FACTS, json={"content": text}, headers=headers)
        body_of(answer, 409)
        self.record.refused_texts.add(text)

    def repeat(self) -> None:
        """Writes what is refused: a text that is there, or one of nothing."""
        answer, _ = self.send("POST", FACTS, json={"content": "   "})
        body_of(answer, 400)
        answer, _ = self.send("POST", FACTS, json={"content": "the one that all repeat"})
        assert answer.status_code in (200, 409), answer.text

    def clear(self) -> None:
        answer, span = self.send("DELETE", "/api/memory")
        body_of(answer)
        self.record.clears.append(span)


def check(root: Path, records: Iterable[Record]) -> None:
    """Compares what the clients were told with what the files say."""
    records = list(records)
    clears = [span for record in records for span in record.clears]
    with MemoryRepository(root) as repository:
        snapshot = repository.snapshot(USER)
    texts = {fact.content for fact in snapshot.facts}
    for record in records:
        for fact_id, life in record.lives.items():
            fact = snapshot.by_id.get(fact_id)  # type: ignore[call-overload]  # ids of answers are ids
            certainly_cleared = any(span.sent > life.created.answered for span in clears)
            possibly_cleared = any(span.answered > life.created.sent for span in clears)
            if life.deleted or certainly_cleared:
                assert fact is None, f"{fact_id} came back"
            elif not possibly_cleared:
                assert fact is not None, f"{fact_id} is lost"
            if fact is not None:
                assert fact.content == life.text
        assert texts.isdisjoint(record.refused_texts)
        assert record.revisions == sorted(record.revisions)
    # Every acknowledged change is one revision, and nothing else is.
    assert snapshot.revision == 1 + sum(record.commits for record in records)
    assert not list(root.rglob(".memory.journal.json"))


def run_clients(gateway: Running, seconds: float) -> list[Record]:
    """Lets the clients act for some time, and ten times at least, after one fact has been stored."""
    records = [Record() for _ in range(CLIENTS)]

    def run(number: int) -> None:
        with gateway.client() as client:
            actor = Actor(client, f"client {number}", number, records[number])
            acted = 0
            while acted < 10 or time.monotonic() < end:
                actor.act()
                acted += 1

    with gateway.client() as client:
        client.create("the first")
    end = time.monotonic() + seconds
    run_together(*(partial(run, number) for number in range(CLIENTS)))
    return records


def race(root: Path, seconds: float) -> None:
    with running(manager_at(root, max_facts=100_000)) as gateway:
        records = run_clients(gateway, seconds)
        with gateway.client() as client:
            metrics = client.get("/metrics").text
    check(root, records)
    told: dict[int, int] = {}
    for record in records:
        for status, number in record.statuses.items():
            told[status] = told.get(status, 0) + number
    assert set(told) <= {200, 400, 404, 409}
    assert f"deermem_commits_total {1 + told[200]}.0" in metrics


def test_what_eight_clients_were_told_is_what_the_files_say(tmp_path: Path) -> None:
    race(tmp_path, 2.5)


@pytest.mark.stress
def test_what_eight_clients_were_told_in_a_longer_time_is_what_the_files_say(tmp_path: Path) -> None:
    race(tmp_path, 20)


def test_a_lost_fact_is_found_out(tmp_path: Path) -> None:
    with running(manager_at(tmp_path)) as gateway, gateway.client() as client:
        record = Record()
        actor = Actor(client, "client", 0, record)
        client.create("the first")
        actor.create()
        actor.create()
        check(tmp_path, [record])
        (fact_id, _), (_, life) = record.lives.items()
        client.delete(f"{FACTS}/{fact_id}")
        with pytest.raises(AssertionError, match="is lost"):
            check(tmp_path, [record])
        fact_in(client.document(), life.text)
        record.lives.pop(fact_id)
        record.commits += 1
        check(tmp_path, [record])
        life.deleted = True
        with pytest.raises(AssertionError, match="came back"):
            check(tmp_path, [record])
        life.deleted = False
        record.refused_texts.add(life.text)
        with pytest.raises(AssertionError):
            check(tmp_path, [record])


def test_eight_clients_that_create_at_once_keep_the_cap_and_store_no_text_twice(tmp_path: Path) -> None:
    with running(manager_at(tmp_path, max_facts=10)) as gateway:

        def create(number: int) -> None:
            with gateway.client() as client:
                for text in range(8):
                    body = {"content": f"text {text}", "confidence": 0.5 + text / 100}
                    assert client.post(FACTS, json=body).status_code in (200, 409)
                    client.post(FACTS, json={"content": f"of {number} {text}", "confidence": 0.1})

        run_together(*(partial(create, number) for number in range(CLIENTS)))
        with gateway.client() as client:
            facts = client.document()["facts"]
    texts = [fact["content"] for fact in facts]
    assert len(texts) == len(set(texts)) == 10
    assert {f"text {number}" for number in range(8)} <= set(texts)
