"""The client of the gateway's benchmarks counts whole answers, however they arrive."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, repeat

import pytest

from benchmarks import load
from benchmarks.client import Answers, Connection, Request, ask, request
from benchmarks.samples import fact_id
from deermem.model.identity import FactId

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
UNCHANGED = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"


@contextmanager
def server(answer: Callable[[bytes], list[bytes]]) -> Iterator[tuple[str, int]]:
    """Answers each request by pieces, which are sent one by one; none of them hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []

        def serve(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(65_536):
                    pieces = answer(data)
                    for piece in pieces:
                        connection.sendall(piece)
                    if not pieces:
                        return

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=serve, args=(connection,)))
                threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield listener.getsockname()
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("connections", [1, 3])
@pytest.mark.parametrize("pieces", [[ANSWER], [ANSWER[:9], ANSWER[9:40], ANSWER[40:]]])
def test_an_answer_counts_once_it_is_whole(connections: int, pieces: list[bytes]) -> None:
    with server(lambda _: pieces) as address:
        answers = ask(address, repeat(request("/x")), connections=connections, number=7)
    assert answers.statuses == {("read", 200): 7}
    assert (answers.number, len(answers.seconds["read"])) == (7, 7)
    assert 0 < max(answers.seconds["read"]) <= answers.elapsed


@pytest.mark.parametrize("length", range(1, len(ANSWER)))
def test_a_part_of_an_answer_is_none(length: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(listener.getsockname())
        with connection.socket, listener.accept()[0] as server_side:
            for _ in range(2):
                server_side.sendall(ANSWER[:length])
                assert connection.receive() is None
                server_side.sendall(ANSWER[length:])
                assert connection.receive() == 200


def test_kinds_and_statuses_are_told_apart() -> None:
    sent = iter([request("/x", kind="a"), request("/y", "If-None-Match: x", kind="b")])
    with server(lambda data: [UNCHANGED if b"If-None-Match: x" in data else ANSWER]) as address:
        answers = ask(address, sent, connections=1, number=2)
    assert answers.statuses == {("a", 200): 1, ("b", 304): 1}


def test_after_the_time_is_over_nothing_more_is_sent() -> None:
    seen: list[bytes] = []

    def answer(data: bytes) -> list[bytes]:
        seen.append(data)
        return [ANSWER]

    with server(answer) as address:
        answers = ask(address, repeat(request("/x")), connections=2, seconds=0.0)
    assert (len(seen), answers.number) == (2, 2)


def test_a_server_that_hangs_up_is_an_error() -> None:
    with server(lambda _: []) as address, pytest.raises(ConnectionError):
        ask(address, repeat(request("/x")), connections=1, number=1)


def test_a_body_has_its_length() -> None:
    sent = request("/x", method="PATCH", body=b"{}", kind="change")
    assert sent.data.startswith(b"PATCH /x HTTP/1.1\r\n")
    assert b"Content-Length: 2\r\n" in sent.data
    assert sent.data.endswith(b"\r\n\r\n{}")


def test_five_requests_in_a_hundred_change_something() -> None:
    sent: list[Request] = list(islice(load.mixed([fact_id(0), FactId("other")], "tag"), 300))
    assert Counter(each.kind for each in sent) == {
        "document": 95,
        "document if changed": 95,
        "fact": 95,
        "change": 15,
    }
    assert len({each.data for each in sent if each.kind == "change"}) == 15


def test_percentiles_are_the_median_and_what_one_in_a_hundred_exceeds() -> None:
    assert load.percentiles([float(number) for number in range(101)]) == (50.0, 99.0)
    assert load.percentiles([3.0]) == (3.0, 3.0)


def test_a_load_with_an_error_is_no_figure() -> None:
    load.check(Answers(statuses=Counter({("read", 200): 3, ("read", 304): 1})))
    with pytest.raises(AssertionError, match="503"):
        load.check(Answers(statuses=Counter({("read", 200): 3, ("change", 503): 1})))


def test_a_load_tells_its_rate_and_two_percentiles_of_each_kind() -> None:
    floor = Answers(1.0, {"constant": [0.1] * 10}, Counter({("constant", 200): 10}))
    found = list(load.results(Answers(2.0, {"fact": [0.2] * 10}, Counter({("fact", 200): 10})), floor))
    assert [(each.product, each.ratio.middle) for each in found] == [(5.0, 0.5), (0.2, 2.0), (0.2, 2.0)]
