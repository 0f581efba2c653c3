from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import pytest

from deermem.gateway.auth import (
    AuthenticationFailed,
    Authenticator,
    AuthSettings,
    Mode,
    Role,
    make_authenticator,
)
from deermem.gateway.auth.caller import NEEDED, NOT_AVAILABLE, NOT_VALID
from deermem.gateway.auth.modes import Tokens
from deermem.gateway.auth.token_file import TokenFile
from tests.gateway_auth.calls import Header, bearer, caller, refusal
from tests.support.threads import in_thread

NOW = "2026-01-31T12:00:00Z"
Create = Callable[..., str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the tokens are."""
    return tmp_path / "tokens.json"


@pytest.fixture
def create(path: Path) -> Create:
    """Makes a token."""

    def make(user: str = "alice", role: Role = Role.USER) -> str:
        return TokenFile(str(path)).create(user, role, NOW)[0]

    return make


@pytest.fixture
def tokens(path: Path) -> Authenticator:
    """Knows callers by the file."""
    return make_authenticator(AuthSettings(mode=Mode.TOKEN, token_file=str(path)))


def id_of(token: str) -> str:
    return token.split("_")[1]


def test_a_token_in_either_header_is_its_users(tokens: Authenticator, create: Create) -> None:
    token = create("alice@example.com")
    for header in (bearer(token), ("Authorization", f"bearer  {token}"), ("X-API-Key", token)):
        found = caller(tokens, header)
        assert (found.subject, found.role, found.user_id) == (
            "alice@example.com",
            Role.USER,
            "alice@example.com",
        )


def test_the_same_token_in_both_headers_is_let_in(tokens: Authenticator, create: Create) -> None:
    token = create()
    assert caller(tokens, bearer(token), ("X-API-Key", token)).subject == "alice"


def test_no_credentials_are_asked_for(tokens: Authenticator) -> None:
    failed = refusal(tokens)
    assert (failed.status, failed.detail) == (401, NEEDED)
    assert failed.headers == {"WWW-Authenticate": 'Bearer realm="deermem"'}


def test_each_token_opens_its_own_memory_alone(tokens: Authenticator, create: Create) -> None:
    users = ["alice", "bob", "bob@x.com", "bob-x-com-0123456789abcdef"]
    made = {user: create(user) for user in users}
    opened = {user: caller(tokens, bearer(token)).user_id for user, token in made.items()}
    assert [opened[user] for user in users[:3]] == users[:3]
    assert opened[users[3]].startswith(f"{users[3]}-")


WRONG = MappingProxyType[str, Callable[[str], tuple[Header, ...]]](
    {
        "another secret": lambda token: (bearer(token[:-1] + ("0" if token[-1] != "0" else "1")),),
        "another id": lambda token: (bearer(f"deermem_{'0' * 16}_{token[-64:]}"),),
        "no secret": lambda token: (bearer(token[:-65]),),
        "the secret alone": lambda token: (bearer(token[-64:]),),
        "capitals": lambda token: (bearer(token.upper()),),
        "a blank inside": lambda token: (bearer(token[:30] + " " + token[30:]),),
        "something behind": lambda token: (bearer(token + "\n"),),
        "no token": lambda _: (("Authorization", "Bearer"),),
        "an empty key": lambda _: (("X-API-Key", ""),),
        "another scheme": lambda token: (("Authorization", f"Basic {token}"),),
        "the token without a scheme": lambda token: (("Authorization", token),),
        "another scheme beside the key": lambda token: (
            ("Authorization", "Basic eDp5"),
            ("X-API-Key", token),
        ),
        "another token beside it": lambda token: (bearer(token), ("X-API-Key", token[:-1] + "x")),
        "the same header twice": lambda token: (bearer(token), bearer(token)),
        "two in one header": lambda token: (("Authorization", f"Bearer {token}, Bearer {token}"),),
        "the same key twice": lambda token: (("X-API-Key", token), ("X-API-Key", token)),
        "a NUL": lambda token: (bearer(f"{token}\0"),),
        "no ASCII": lambda token: (("X-API-Key", token.encode() + b"\xc3\xa4"),),
        "8 KiB and more": lambda token: (bearer(token + "a" * 8_192),),
    }
)


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_credentials_get_one_answer(tokens: Authenticator, create: Create, kind: str) -> None:
    failed = refusal(tokens, *WRONG[kind](create()))
    assert (failed.status, failed.detail) == (401, NOT_VALID)
    assert failed.headers == {"WWW-Authenticate": 'Bearer realm="deermem", error="invalid_token"'}


def test_two_good_tokens_of_two_users_at_once_are_refused(tokens: Authenticator, create: Create) -> None:
    one, other = create("alice"), create("bob")
    assert refusal(tokens, bearer(one), ("X-API-Key", other)).status == 401


def test_hashes_are_compared_by_what_takes_the_same_time_wherever_they_differ(
    path: Path, create: Create
) -> None:
    token, compared = create(), []

    def same(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    tokens = Tokens(AuthSettings(mode=Mode.TOKEN, token_file=str(path)), same=same)
    caller(tokens, bearer(token))
    refusal(tokens, bearer(f"deermem_{'0' * 16}_{'0' * 64}"))
    refusal(tokens, bearer("nonsense"))
    assert compared == [(64, 64)] * 3


def test_a_token_counts_from_its_creation_to_its_revocation(
    tokens: Authenticator, path: Path, create: Create
) -> None:
    for _ in range(30):  # faster than the ticks of modification times
        token = create()
        assert caller(tokens, bearer(token)).subject == "alice"
        TokenFile(str(path)).revoke([id_of(token)])
        assert refusal(tokens, bearer(token)).status == 401


def test_a_change_counts_though_size_and_time_of_the_file_stay(
    tokens: Authenticator, path: Path, create: Create
) -> None:
    token = create("alice")
    assert caller(tokens, bearer(token)).user_id == "alice"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"alice"', b'"carol"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert caller(tokens, bearer(token)).user_id == "carol"


def test_a_revoked_token_is_refused_whoever_asks_at_the_same_time(
    tokens: Authenticator, path: Path, create: Create
) -> None:
    kept, gone = create("alice"), create("bob")
    revoked, end = threading.Event(), threading.Event()
    answers: set[tuple[bool, int]] = set()

    def ask() -> None:
        while not end.is_set():
            was_revoked = revoked.is_set()
            assert caller(tokens, bearer(kept)).subject == "alice"
            try:
                caller(tokens, bearer(gone))
            except AuthenticationFailed as failed:
                answers.add((was_revoked, failed.status))
            else:
                answers.add((was_revoked, 200))

    with in_thread(ask), in_thread(ask):
        for number in range(20):
            create(f"user{number}")
        TokenFile(str(path)).revoke([id_of(gone)])
        revoked.set()
        for number in range(20, 40):
            create(f"user{number}")
        end.set()
    assert answers <= {(False, 200), (False, 401), (True, 401)}


def test_threads_that_create_at_once_lose_nothing(path: Path) -> None:
    made: list[str] = []

    def work() -> None:
        made.extend(TokenFile(str(path)).create("alice", Role.USER, NOW)[1].id for _ in range(10))

    with in_thread(work), in_thread(work), in_thread(work):
        pass
    assert sorted(TokenFile(str(path)).read().entries) == sorted(made)


def test_a_gateway_without_a_file_knows_nobody_and_learns_of_the_first_token(
    tokens: Authenticator, create: Create, path: Path
) -> None:
    assert refusal(tokens, bearer("x")).status == 401
    token = create()
    assert caller(tokens, bearer(token)).subject == "alice"
    path.unlink()
    assert refusal(tokens, bearer(token)).status == 401


BROKEN = MappingProxyType[str, Callable[[bytes], bytes]](
    {
        "cut": lambda data: data[:-10],
        "empty": lambda _: b"",
        "a list": lambda _: b"[]",
        "zeros": lambda data: bytes(len(data)),
        "another version": lambda data: data.replace(b'"version": 1', b'"version": 2'),
        "an unknown key": lambda data: data.replace(b'"note": ""', b'"expires": "2020"'),
        "an unknown role": lambda data: data.replace(b'"role": "user"', b'"role": "root"'),
        "no hash": lambda data: data.replace(b'"sha256": "', b'"sha256": "x'),
        "no user": lambda data: data.replace(b'"alice"', b'""'),
        "more than a megabyte": lambda data: data + b" " * 1_000_000,
    }
)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_list_that_cannot_be_trusted_lets_nobody_in_until_it_is_mended(
    tokens: Authenticator, path: Path, create: Create, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = create()
    good = path.read_bytes()
    assert caller(tokens, bearer(token)).subject == "alice"
    path.write_bytes(BROKEN[kind](good))
    assert path.read_bytes() != good
    for _ in range(3):
        failed = refusal(tokens, bearer(token))
        assert (failed.status, failed.detail, failed.headers) == (503, NOT_AVAILABLE, {"Retry-After": "1"})
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [str(path) in record.getMessage() for record in told] == [True]
    path.write_bytes(good)
    assert caller(tokens, bearer(token)).subject == "alice"


def test_a_user_that_a_file_cannot_have_is_found_when_it_is_read(
    tokens: Authenticator, path: Path, create: Create
) -> None:
    token = create()
    path.write_bytes(path.read_bytes().replace(b'"alice"', b'"' + b"a" * 201 + b'"'))
    assert refusal(tokens, bearer(token)).status == 503


def test_no_answer_tells_whether_a_token_once_existed(
    tokens: Authenticator, path: Path, create: Create
) -> None:
    token = create()
    TokenFile(str(path)).revoke([id_of(token)])
    revoked, never = refusal(tokens, bearer(token)), refusal(tokens, bearer(f"deermem_{'1' * 16}_{'1' * 64}"))
    assert (revoked.status, revoked.detail, revoked.headers) == (never.status, never.detail, never.headers)
