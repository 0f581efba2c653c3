"""What each role may do in each mode, and headers that try to be somebody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from deermem.errors import InvalidInputError
from deermem.gateway.auth import (
    AuthenticationFailed,
    Authenticator,
    AuthSettings,
    Mode,
    Role,
    make_authenticator,
)
from deermem.gateway.auth.caller import NEEDED, NO_SUCH_USER, NOT_VALID, OTHER_ROLE
from deermem.gateway.auth.modes import TrustedProxy
from deermem.gateway.auth.token_file import TokenFile
from deermem.model.identity import safe_user_id
from tests.gateway_auth.calls import Header, bearer, caller, refusal, request
from tests.gateway_auth.signing import AUDIENCE, ISSUER, jwk, key_set, signed

SECRET = "s" * 40
USER, BUCKET = "X-DeerMem-User", "X-DeerMem-Bucket"


class Setup(NamedTuple):
    """A mode with what proves a subject and a role in it."""

    authenticator: Authenticator
    proof: Callable[[str, Role], tuple[Header, ...]]


def with_tokens(folder: Path) -> Setup:
    path = str(folder / "tokens.json")

    def proof(subject: str, role: Role) -> tuple[Header, ...]:
        return (bearer(TokenFile(path).create(subject, role, "2026-01-31T12:00:00Z")[0]),)

    return Setup(make_authenticator(AuthSettings(mode=Mode.TOKEN, token_file=path)), proof)


def with_jwt(folder: Path) -> Setup:
    path = folder / "keys.json"
    path.write_bytes(key_set(jwk("ec-1")))
    path.chmod(0o600)
    settings = AuthSettings(
        mode=Mode.JWT, issuer=ISSUER, audience=(AUDIENCE,), jwks_file=str(path), role_claim="role"
    )
    return Setup(
        make_authenticator(settings),
        lambda subject, role: (bearer(signed("ec-1", "ES256", sub=subject, role=str(role))),),
    )


def with_proxy(_: Path) -> Setup:
    settings = AuthSettings(mode=Mode.PROXY, proxy_secret=SECRET, proxy_role_header="X-Role")
    return Setup(
        make_authenticator(settings),
        lambda subject, role: (
            ("X-DeerMem-Proxy-Secret", SECRET),
            ("X-Forwarded-User", subject),
            ("X-Role", str(role)),
        ),
    )


MODES = MappingProxyType({"token": with_tokens, "jwt": with_jwt, "proxy": with_proxy})


@pytest.fixture(params=MODES)
def setup(request: pytest.FixtureRequest, tmp_path: Path) -> Setup:
    """Each mode that asks for credentials."""
    return MODES[request.param](tmp_path)


@pytest.mark.parametrize("role", Role)
def test_every_role_has_a_memory_of_its_own(setup: Setup, role: Role) -> None:
    found = caller(setup.authenticator, *setup.proof("me@example.com", role))
    assert (found.subject, found.role, found.user_id) == ("me@example.com", role, "me@example.com")


@pytest.mark.parametrize("role", [Role.SERVICE, Role.ADMINISTRATOR])
def test_a_service_and_an_administrator_act_for_a_user_by_the_raw_id(setup: Setup, role: Role) -> None:
    found = caller(setup.authenticator, *setup.proof("me", role), (USER, "bob@x.com"))
    assert (found.subject, found.user_id) == ("me", "bob@x.com")


def test_a_service_does_not_reach_a_user_by_the_name_of_the_bucket(setup: Setup) -> None:
    bucket = safe_user_id("bob@x.com")
    found = caller(setup.authenticator, *setup.proof("me", Role.SERVICE), (USER, bucket))
    assert safe_user_id(found.user_id) != bucket


def test_an_administrator_opens_a_bucket_by_its_name(setup: Setup) -> None:
    bucket = safe_user_id("bob@x.com")
    found = caller(setup.authenticator, *setup.proof("me", Role.ADMINISTRATOR), (BUCKET, bucket))
    assert (found.subject, found.user_id) == ("me", bucket)
    assert safe_user_id(found.user_id) == bucket


def test_an_administrator_opens_the_bucket_with_the_longest_name(setup: Setup) -> None:
    bucket = safe_user_id("." * 200)
    found = caller(setup.authenticator, *setup.proof("me", Role.ADMINISTRATOR), (BUCKET, bucket))
    assert safe_user_id(found.user_id) == bucket


@pytest.mark.parametrize(("role", "header"), [(Role.USER, USER), (Role.USER, BUCKET), (Role.SERVICE, BUCKET)])
@pytest.mark.parametrize("name", ["me", "bob"])
def test_a_role_that_may_not_act_for_others_is_refused(
    setup: Setup, role: Role, header: str, name: str
) -> None:
    failed = refusal(setup.authenticator, *setup.proof("me", role), (header, name))
    assert (failed.status, failed.detail) == (403, OTHER_ROLE)


@pytest.mark.parametrize(
    "name", ["../bob", "a b", "bob@x.com", ".", "a" * 201, "a" * 217, "a" * 201 + "-0123456789abcdef", "a/b"]
)
def test_what_is_no_bucket_is_refused(setup: Setup, name: str) -> None:
    failed = refusal(setup.authenticator, *setup.proof("me", Role.ADMINISTRATOR), (BUCKET, name))
    assert failed.status == 400


def test_an_administrator_who_names_a_user_and_a_bucket_is_refused(setup: Setup) -> None:
    proof = setup.proof("me", Role.ADMINISTRATOR)
    assert refusal(setup.authenticator, *proof, (USER, "a"), (BUCKET, "a")).status == 400


HOSTILE = MappingProxyType[str, tuple[str | bytes, ...]](
    {
        "empty": ("",),
        "twice": ("bob", "bob"),
        "two": ("bob", "carol"),
        "joined by a proxy": ("bob, carol",),
        "NUL": ("bob\0",),
        "a line break": ("bob\r\nX-Role: administrator",),
        "a tab": ("bob\tcarol",),
        "no ASCII": ("böb".encode(),),
        "no text at all": (b"\xff\xfe",),
        "long": ("b" * 513,),
        "very long": ("b" * 100_000,),
    }
)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("header", [USER, BUCKET])
@pytest.mark.parametrize("role", Role)
def test_a_hostile_name_is_refused(setup: Setup, role: Role, header: str, kind: str) -> None:
    headers = tuple((header, value) for value in HOSTILE[kind])
    failed = refusal(setup.authenticator, *setup.proof("me", role), *headers)
    assert failed.status == 400
    assert "bob" not in failed.detail


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_credentials_are_refused(setup: Setup, kind: str) -> None:
    for name in (*setup.authenticator.identifying_headers, "Authorization", "X-API-Key"):
        headers = tuple((name, value) for value in HOSTILE[kind])
        assert refusal(setup.authenticator, *headers).status in (400, 401)


def test_a_name_that_can_be_no_user_is_told_so(setup: Setup) -> None:
    failed = refusal(setup.authenticator, *setup.proof("me", Role.SERVICE), (USER, "b" * 201))
    assert (failed.status, failed.detail) == (403, NO_SUCH_USER)


def test_headers_of_proxies_and_of_other_names_change_nothing(setup: Setup) -> None:
    names = {
        "X-Forwarded-User",
        "X-Forwarded-For",
        "X-User",
        "X_DeerMem_User",
        "X-Role",
        "Remote-User",
        "From",
    }
    names -= set(setup.authenticator.identifying_headers)
    others = [(name, "administrator") for name in sorted(names)]
    found = caller(setup.authenticator, *setup.proof("me", Role.USER), *others)
    assert (found.user_id, found.role) == ("me", Role.USER)


def test_every_header_that_decides_is_told_to_caches(setup: Setup) -> None:
    assert {USER, BUCKET} <= set(setup.authenticator.identifying_headers)
    proof = setup.proof("me", Role.SERVICE)
    assert {name for name, _ in proof} <= set(setup.authenticator.identifying_headers)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "", "memory.example"])  # noqa: S104 - asked only
def test_who_asks_for_credentials_may_listen_anywhere(setup: Setup, host: str) -> None:
    setup.authenticator.allows_listening_on(host)


def proxy(**more: str) -> Authenticator:
    return make_authenticator(AuthSettings.from_mapping({"mode": "proxy", "proxy_secret": SECRET, **more}))


NAME, PROOF = ("X-Forwarded-User", "alice"), ("X-DeerMem-Proxy-Secret", SECRET)


@pytest.mark.parametrize(
    ("headers", "status", "detail"),
    [
        ((NAME,), 401, NEEDED),
        ((PROOF,), 401, NEEDED),
        ((NAME, ("X-DeerMem-Proxy-Secret", SECRET[:-1])), 401, NOT_VALID),
        ((NAME, ("X-DeerMem-Proxy-Secret", SECRET + "s")), 401, NOT_VALID),
        ((NAME, ("X-DeerMem-Proxy-Secret", "")), 401, NOT_VALID),
        ((NAME, PROOF, PROOF), 401, NOT_VALID),
        ((NAME, bearer(SECRET)), 401, NEEDED),
        ((NAME, NAME, PROOF), 400, "The header X-Forwarded-User is not valid."),
        ((("X-Forwarded-User", "bob, alice"), PROOF), 400, "The header X-Forwarded-User is not valid."),
    ],
)
def test_a_name_counts_only_from_the_proxy_that_knows_the_secret(
    headers: tuple[Header, ...], status: int, detail: str
) -> None:
    failed = refusal(proxy(), *headers)
    assert (failed.status, failed.detail) == (status, detail)
    assert caller(proxy(), NAME, PROOF).subject == "alice"


def test_the_secret_is_compared_by_what_takes_the_same_time_wherever_it_differs() -> None:
    compared: list[tuple[bytes, bytes]] = []

    def same(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    trusting = TrustedProxy(AuthSettings(mode=Mode.PROXY, proxy_secret=SECRET), same=same)
    refusal(trusting, NAME, ("X-DeerMem-Proxy-Secret", "x"))
    caller(trusting, NAME, PROOF)
    assert compared == [(b"x", SECRET.encode()), (SECRET.encode(), SECRET.encode())]


def test_a_role_header_counts_only_if_it_is_configured() -> None:
    assert caller(proxy(), NAME, PROOF, ("X-Role", "administrator")).role is Role.USER
    assert caller(proxy(proxy_role_header="X-Role"), NAME, PROOF).role is Role.USER
    failed = refusal(proxy(proxy_role_header="X-Role"), NAME, PROOF, ("X-Role", "root"))
    assert (failed.status, failed.detail) == (403, OTHER_ROLE)


def test_the_secret_of_a_proxy_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n", "utf-8")
    path.chmod(0o600)
    trusting = make_authenticator(AuthSettings(mode=Mode.PROXY, proxy_secret_file=str(path)))
    assert caller(trusting, NAME, PROOF).subject == "alice"


@pytest.mark.parametrize("text", [None, "", "short\n", f"{'s' * 40}ä", f"{'s' * 20}\n{'s' * 20}"])
def test_a_file_without_a_good_secret_is_refused_at_the_start(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "secret"
    if text is not None:
        path.write_text(text, "utf-8")
        path.chmod(0o600)
    with pytest.raises(InvalidInputError):
        make_authenticator(AuthSettings(mode=Mode.PROXY, proxy_secret_file=str(path)))


NOBODY = make_authenticator(AuthSettings())


def test_without_authentication_everybody_on_this_machine_is_the_one_user() -> None:
    for client in ("127.0.0.1", "127.8.9.10", "::1", None, ""):
        found = NOBODY.authenticate(request(bearer("whatever"), client=client))
        assert (found.subject, found.role, found.user_id) == ("default", Role.USER, "default")
    assert NOBODY.identifying_headers == ()


@pytest.mark.parametrize("client", ["192.0.2.7", "10.0.0.1", "::", "2001:db8::1", "unknown", "_hidden"])
def test_without_authentication_other_machines_are_refused_however_they_come(client: str) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        NOBODY.authenticate(request(client=client))
    assert caught.value.status == 403


@pytest.mark.parametrize("header", [USER, BUCKET])
def test_without_authentication_nobody_acts_for_others(header: str) -> None:
    assert refusal(NOBODY, (header, "bob")).status == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1"])
def test_without_authentication_this_machine_may_be_listened_on(host: str) -> None:
    NOBODY.allows_listening_on(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",  # noqa: S104 - refused
        "::",
        "192.0.2.7",
        "memory.example",
        "localhost.example",
        "127.0.0.1.example",
        "0",
        "127.1",
    ],
)
def test_without_authentication_listening_anywhere_else_is_refused(host: str) -> None:
    with pytest.raises(InvalidInputError, match="host"):
        NOBODY.allows_listening_on(host)


def test_the_one_user_may_be_chosen() -> None:
    chosen = make_authenticator(AuthSettings(user="a-b-c-0123456789abcdef"))
    assert caller(chosen).user_id == "a-b-c-0123456789abcdef"
