from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deermem.asgi.limits import (
    TOO_MANY,
    TOO_SLOW,
    TOO_SLOW_BODY,
    BodyLimit,
    CallerRates,
    LimitSettings,
    RateLimit,
    TimeLimit,
)
from deermem.errors import InvalidInputError
from deermem.gateway.auth import Caller, Role

Header = tuple[bytes, bytes]
SILENCE = b"a client that sends no more"


async def read_and_answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the length of the body."""
    body = await Request(scope, receive).body()
    await answer(send, 200, str(len(body)).encode())


async def answer(send: Send, status: int, body: bytes = b"") -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Client:
    """Sends one request to an application, and keeps what comes back."""

    def __init__(self, parts: Iterable[bytes] = (b"",), headers: Iterable[Header] = (), **more: Any) -> None:
        self.scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers), **more}
        self._parts = list(parts)
        self.received = 0
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        """Returns the next part of the body; a client that has no more is silent."""
        if self._parts[self.received : self.received + 1] in ([], [SILENCE]):
            await asyncio.Event().wait()
        part = self._parts[self.received]
        self.received += 1
        return {"type": "http.request", "body": part, "more_body": self.received < len(self._parts)}

    async def send(self, message: Message) -> None:
        """Takes a part of the answer."""
        self.sent.append(message)

    def ask(self, app: ASGIApp) -> Client:
        """Sends the request."""
        asyncio.run(self._ask(app))
        return self

    async def _ask(self, app: ASGIApp) -> None:
        await app(self.scope, self.receive, self.send)

    @property
    def status(self) -> int:
        """The status of the one answer."""
        (start,) = [message for message in self.sent if message["type"] == "http.response.start"]
        return int(start["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The headers of the answer."""
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        """The body of the answer."""
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def detail(self) -> object:
        """Why the request was refused."""
        return json.loads(self.body)["detail"]


@given(parts=st.lists(st.binary(max_size=8), min_size=1, max_size=8), announced=st.integers(0, 40))
def test_a_body_is_judged_by_what_arrives(parts: list[bytes], announced: int) -> None:
    size = sum(map(len, parts))
    client = Client(parts, [(b"content-length", str(announced).encode())])
    client.ask(BodyLimit(read_and_answer, limit=20))
    assert client.status == (413 if size > 20 or announced > 20 else 200)
    if client.status == 413:
        assert client.detail == "The body is larger than 20 bytes."
        assert client.headers[b"connection"] == b"close"
    else:
        assert client.body == str(size).encode()


def test_a_body_that_is_announced_as_too_large_is_not_read() -> None:
    client = Client([b"x"], [(b"content-length", b"21")]).ask(BodyLimit(read_and_answer, limit=20))
    assert (client.status, client.received) == (413, 0)


@pytest.mark.parametrize("announced", [b"9" * 19, b"9" * 10_000, b"-1", b"x", b"", b"1_000", "²".encode()])
def test_nonsense_in_content_length_is_no_fault_of_the_server(announced: bytes) -> None:
    client = Client([b"x"], [(b"content-length", announced)]).ask(BodyLimit(read_and_answer, limit=20))
    assert client.status == (413 if announced.startswith(b"9") else 200)


def test_no_more_of_a_large_body_is_read_than_shows_that_it_is_large() -> None:
    client = Client([b"x" * 10] * 100).ask(BodyLimit(read_and_answer, limit=20))
    assert (client.status, client.received) == (413, 3)


def test_what_an_application_makes_of_the_early_end_is_not_sent() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await read_and_answer(scope, receive, send)
        except Exception:  # noqa: BLE001 - as frameworks do
            await answer(send, 400, b"There was an error parsing the body")

    client = Client([b"x" * 30]).ask(BodyLimit(app, limit=20))
    assert (client.status, client.detail) == (413, "The body is larger than 20 bytes.")


def test_an_answer_that_has_begun_is_not_followed_by_another() -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        await send({"type": "http.response.body", "body": b"done"})

    client = Client([b"x" * 30]).ask(BodyLimit(app, limit=20))
    assert (client.status, client.body) == (200, b"done")


def test_an_error_of_the_application_is_still_its_error() -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise LookupError

    for layer in (BodyLimit(app, limit=20), TimeLimit(app, seconds=60)):
        with pytest.raises(LookupError):
            Client().ask(layer)


async def never(_scope: Scope, receive: Receive, _send: Send) -> None:
    """Reads the body and does not come to an end."""
    await receive()
    await asyncio.Event().wait()


def test_an_answer_that_takes_too_long_is_replaced_by_one_that_promises_nothing() -> None:
    client = Client().ask(TimeLimit(never, seconds=0.01))
    assert (client.status, client.detail) == (504, TOO_SLOW)


def test_a_body_that_takes_too_long_changed_nothing() -> None:
    client = Client([b"x", SILENCE], [(b"transfer-encoding", b"chunked")])
    client.ask(TimeLimit(read_and_answer, seconds=0.01))
    assert (client.status, client.detail) == (408, TOO_SLOW_BODY)
    assert client.headers[b"connection"] == b"close"


def test_an_answer_that_has_begun_may_take_its_time() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0.05)
        await send({"type": "http.response.body", "body": b"done"})

    client = Client().ask(TimeLimit(app, seconds=0.01))
    assert (client.status, client.body) == (200, b"done")


def test_work_that_was_begun_is_not_interrupted() -> None:
    ended: list[bool] = []

    async def work(release: asyncio.Event) -> None:
        await release.wait()
        ended.append(True)

    async def run() -> Client:
        release = asyncio.Event()
        task = asyncio.create_task(work(release))

        async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
            await receive()
            await asyncio.shield(task)

        client = Client()
        await client._ask(TimeLimit(app, seconds=0.01))
        release.set()
        await task
        return client

    assert asyncio.run(run()).status == 504
    assert ended == [True]


def test_a_time_out_of_the_application_itself_is_left_to_it() -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        Client().ask(TimeLimit(app, seconds=60))


def asked(app: ASGIApp, subject: str, user_id: str = "u") -> Client:
    return Client(state={"caller": Caller(subject, Role.SERVICE, user_id)}).ask(app)


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_a_caller_that_asks_too_often_waits_and_nobody_else() -> None:
    clock = Hand()
    app = RateLimit(read_and_answer, rates=CallerRates(60, 3, clock=clock))
    assert [asked(app, "a").status for _ in range(5)] == [200, 200, 200, 429, 429]
    refused = asked(app, "a")
    assert (refused.detail, refused.headers[b"retry-after"]) == (TOO_MANY, b"1")
    assert asked(app, "b").status == 200
    assert asked(app, "a", "another user").status == 200
    clock.now += 1
    assert [asked(app, "a").status for _ in range(2)] == [200, 429]


def test_who_waits_as_long_as_told_is_let_in() -> None:
    clock = Hand()
    rates = CallerRates(7, 2, clock=clock)
    for _ in range(50):
        wait = rates.wait_for("a")
        if wait:
            clock.now += wait + 0.001
            assert rates.wait_for("a") == 0


@given(steps=st.lists(st.floats(0, 3), min_size=1, max_size=80))
def test_no_pattern_of_requests_beats_the_rate(steps: list[float]) -> None:
    clock = Hand()
    rates = CallerRates(60, 5, clock=clock)
    taken = 0
    for step in steps:
        clock.now += step
        taken += rates.wait_for("a") == 0
    assert taken <= 5 + (clock.now - 5) + 1


def test_a_clock_that_starts_anywhere_lets_the_burst_through() -> None:
    for now in (0.0, 1e-9, 1e9):
        clock = Hand()
        clock.now = now
        rates = CallerRates(60, 3, clock=clock)
        assert [rates.wait_for("a") == 0 for _ in range(4)] == [True, True, True, False]


def test_a_request_without_a_caller_is_not_counted() -> None:
    app = RateLimit(read_and_answer, rates=CallerRates(1, 1))
    assert [Client().ask(app).status for _ in range(3)] == [200, 200, 200]


def test_what_is_remembered_of_callers_is_bounded_and_the_latest_stay() -> None:
    rates = CallerRates(60, 1, remembered=10, clock=Hand())
    for number in range(1_000):
        assert rates.wait_for(number) == 0
        assert rates.wait_for("kept") == (0 if number == 0 else pytest.approx(1, abs=0.01))
        assert len(rates) <= 10


@pytest.mark.parametrize(
    "layer", [BodyLimit(read_and_answer, limit=1), TimeLimit(read_and_answer, seconds=1)]
)
def test_what_is_no_request_passes(layer: ASGIApp) -> None:
    seen: list[str] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    layer._app = app  # type: ignore[attr-defined]
    Client(type="lifespan").ask(layer)
    assert seen == ["lifespan"]


def test_limits_come_from_a_file_and_variables_which_win() -> None:
    environment = {
        "DEERMEM_LIMIT_BURST": "7",
        "DEERMEM_LIMIT_REQUEST_SECONDS": "1.5",
        "DEERMEM_LIMIT_BODY_BYTES": "",
    }
    limits = LimitSettings.load({"burst": 9, "body_bytes": 5_000}, environment)
    assert (limits.burst, limits.request_seconds, limits.body_bytes) == (7, 1.5, 5_000)


@pytest.mark.parametrize(
    ("table", "environment", "named"),
    [
        ({"bodybytes": 1}, {}, "limits.bodybytes"),
        ({"body_bytes": 1}, {}, "limits.body_bytes"),
        ({"body_bytes": 5e3}, {}, "limits.body_bytes"),
        ({"burst": True}, {}, "limits.burst"),
        ({"burst": "9"}, {}, "limits.burst"),
        ({"request_seconds": float("nan")}, {}, "limits.request_seconds"),
        ({}, {"DEERMEM_LIMIT_BURST": "many"}, "DEERMEM_LIMIT_BURST"),
        ({}, {"DEERMEM_LIMIT_BURST": "nan"}, "DEERMEM_LIMIT_BURST"),
        ({}, {"DEERMEM_LIMIT_REQUESTS_PER_MINUTE": "0"}, "DEERMEM_LIMIT_REQUESTS_PER_MINUTE"),
        ({"burst": 5}, {"DEERMEM_LIMITS_BURST": "7"}, "DEERMEM_LIMITS_BURST"),
    ],
)
def test_a_limit_that_breaks_its_rule_is_named(
    table: dict[str, Any], environment: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        LimitSettings.load(table, environment)
    assert caught.value.field == named
