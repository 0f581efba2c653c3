"""Every route in every mode: nobody without credentials, and nobody in another's memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from deermem.asgi.limits import LimitSettings
from deermem.gateway.auth import AuthSettings, Mode, Role
from deermem.gateway.auth.token_file import TokenFile
from deermem.model.identity import safe_user_id
from tests.gateway.servers import Running, manager_at, running
from tests.gateway_auth.signing import AUDIENCE, ISSUER, jwk, key_set, signed

ALICE, BOB = "alice@example.com", "bob@example.com"
SECRET = "a-secret-that-only-the-proxy-and-the-gateway-know"  # noqa: S105 - of this test
NOW = "2026-07-19T00:00:00Z"
SECRET_TEXT = "what only Bob knows"  # noqa: S105 - a fact
Headers = dict[str, str]

ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/api/memory", None),
    ("GET", "/api/memory?agent=coder", None),
    ("GET", "/api/memory/export", None),
    ("GET", "/api/memory/status", None),
    ("GET", "/api/memory/config", None),
    ("POST", "/api/memory/reload", None),
    ("POST", "/api/memory/import", {"facts": [{"id": "fact_bob", "content": "imported"}]}),
    ("PATCH", "/api/memory/summaries", {"user": {"topOfMind": {"summary": "patched"}}}),
    ("GET", "/api/memory/facts", None),
    ("POST", "/api/memory/facts", {"content": "new"}),
    ("POST", "/api/memory/facts/batch", {"facts": [{"content": "new too"}]}),
    ("POST", "/api/memory/facts/batch-delete", {"ids": ["fact_bob"]}),
    ("GET", "/api/memory/facts/fact_bob", None),
    ("PATCH", "/api/memory/facts/fact_bob", {"content": "changed"}),
    ("DELETE", "/api/memory/facts/fact_bob", None),
    ("DELETE", "/api/memory", None),
    ("GET", "/api/agents", None),
    ("DELETE", "/api/agents/coder", None),
    ("GET", "/metrics", None),
    ("GET", "/docs", None),
    ("GET", "/openapi.json", None),
    ("GET", "/no/such/route", None),
]


class Door(NamedTuple):
    """Is a gateway in one mode, with the headers of those who may come in and of those who may not."""

    gateway: Running
    alice: Headers
    strangers: dict[str, Headers]
    bucket_of_bob: Path


def with_bob(root: Path) -> Path:
    """Stores what Alice must not see or change, and returns where."""
    manager = manager_at(root)
    manager.import_memory({"facts": [{"id": "fact_bob", "content": SECRET_TEXT}]}, user_id=BOB)
    manager.create_fact(SECRET_TEXT, user_id=BOB, agent_name="coder")
    bucket = root / "users" / safe_user_id(BOB)
    (bucket / "agents" / "coder" / "config.yaml").write_text("model: x\n")
    return bucket


def bearer(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def token_door(root: Path, stack: ExitStack) -> Door:
    bucket = with_bob(root / "store")
    tokens = TokenFile(str(root / "tokens.json"))
    alice, _ = tokens.create(ALICE, Role.USER, NOW)
    revoked, entry = tokens.create(BOB, Role.USER, NOW)
    auth = AuthSettings(mode=Mode.TOKEN, token_file=tokens.file.path)
    gateway = stack.enter_context(running(manager_at(root / "store"), auth=auth, limits=no_limits()))
    with gateway.client(**bearer(revoked)) as client:
        assert client.get("/api/memory").status_code == 200
    tokens.revoke([entry.id])
    strangers = {
        "missing": {},
        "wrong": bearer(alice[:-1] + ("0" if alice[-1] != "0" else "1")),
        "revoked": bearer(revoked),
        "two that differ": {**bearer(alice), "X-API-Key": revoked},
        "another scheme": {"Authorization": f"Basic {alice}"},
        "of a proxy": proxy_headers(BOB),
    }
    return Door(gateway, bearer(alice), strangers, bucket)


def jwt_door(root: Path, stack: ExitStack) -> Door:
    bucket = with_bob(root / "store")
    keys = root / "keys.json"
    keys.write_bytes(key_set(jwk("rsa-1"), jwk("ec-1")))
    keys.chmod(0o600)
    auth = AuthSettings(mode=Mode.JWT, issuer=ISSUER, audience=(AUDIENCE,), jwks_file=str(keys))
    gateway = stack.enter_context(running(manager_at(root / "store"), auth=auth, limits=no_limits()))
    good = signed("rsa-1", "RS256", sub=ALICE, exp=4_000_000_000)
    strangers = {
        "missing": {},
        "expired": bearer(signed("rsa-1", "RS256", sub=BOB, exp=1_000_000_000)),
        "of another issuer": bearer(signed("rsa-1", "RS256", sub=BOB, iss="https://evil.example")),
        "for another audience": bearer(signed("rsa-1", "RS256", sub=BOB, aud="another")),
        "of an unknown key": bearer(signed("rsa-2", "RS256", sub=BOB)),
        "changed": bearer(good[:-4] + ("AAAA" if not good.endswith("AAAA") else "BBBB")),
    }
    return Door(gateway, bearer(good), strangers, bucket)


def proxy_headers(user: str, secret: str = SECRET) -> Headers:
    return {"X-Forwarded-User": user, "X-DeerMem-Proxy-Secret": secret}


def proxy_door(root: Path, stack: ExitStack) -> Door:
    bucket = with_bob(root / "store")
    auth = AuthSettings(mode=Mode.PROXY, proxy_secret=SECRET)
    gateway = stack.enter_context(running(manager_at(root / "store"), auth=auth, limits=no_limits()))
    strangers = {
        "missing": {},
        "without the secret": {"X-Forwarded-User": BOB},
        "with a wrong secret": proxy_headers(BOB, SECRET[::-1]),
        "without a user": {"X-DeerMem-Proxy-Secret": SECRET},
        "of a token": bearer(SECRET),
    }
    return Door(gateway, proxy_headers(ALICE), strangers, bucket)


def no_limits() -> LimitSettings:
    return LimitSettings(requests_per_minute=1_000_000, burst=1_000_000)


@pytest.fixture(scope="module", params=[token_door, jwt_door, proxy_door], ids=["token", "jwt", "proxy"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with ExitStack() as stack:
        yield request.param(tmp_path_factory.mktemp("door"), stack)


def send(door: Door, route: tuple[str, str, Any], headers: Headers) -> httpx.Response:
    method, path, body = route
    with door.gateway.client() as client:
        return client.request(method, path, json=body, headers=headers)


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route[0]} {route[1]}")
def test_nobody_comes_in_without_good_credentials(door: Door, route: tuple[str, str, Any]) -> None:
    before = contents_of(door.bucket_of_bob)
    for kind, headers in door.strangers.items():
        answer = send(door, route, headers)
        assert answer.status_code == 401, kind
        assert answer.headers["www-authenticate"]
        assert answer.headers["cache-control"] == "private, no-cache"
        assert SECRET_TEXT not in answer.text
    assert contents_of(door.bucket_of_bob) == before


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route[0]} {route[1]}")
def test_a_user_reaches_nothing_of_another(door: Door, route: tuple[str, str, Any]) -> None:
    before = contents_of(door.bucket_of_bob)
    answer = send(door, route, door.alice)
    assert answer.status_code in (200, 204, 403, 404)
    assert SECRET_TEXT not in answer.text
    for header in ("X-DeerMem-User", "X-DeerMem-Bucket"):
        acting = send(door, route, {**door.alice, header: safe_user_id(BOB)})
        assert acting.status_code == 403
        assert SECRET_TEXT not in acting.text
    assert contents_of(door.bucket_of_bob) == before


def test_what_a_user_stores_lies_in_a_bucket_of_its_own(door: Door) -> None:
    answer = send(door, ("POST", "/api/memory/facts", {"content": "of Alice"}), door.alice)
    assert answer.status_code in (200, 409)
    assert (door.bucket_of_bob.parent / safe_user_id(ALICE)).is_dir()
