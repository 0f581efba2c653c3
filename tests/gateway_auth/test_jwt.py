from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from deermem.errors import InvalidInputError
from deermem.gateway.auth import Authenticator, AuthSettings, Role, make_authenticator
from deermem.gateway.auth.caller import NEEDED, NO_SUCH_USER, NOT_VALID
from tests.gateway_auth.calls import bearer, caller, refusal
from tests.gateway_auth.signing import AUDIENCE, ISSUER, SECRET, jwk, key_set, private_key, signed


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A file with one key of each family."""
    path = tmp_path / "keys.json"
    path.write_bytes(key_set(jwk("rsa-1"), jwk("ec-1"), jwk("oct-1")))
    path.chmod(0o600)
    return path


def known(path: Path, **more: object) -> Authenticator:
    given = {"mode": "jwt", "issuer": ISSUER, "audience": AUDIENCE, "jwks_file": str(path)}
    return make_authenticator(AuthSettings.from_mapping({**given, **more}))


@pytest.fixture
def signers(keys: Path) -> Authenticator:
    """Knows callers by tokens that those keys have signed."""
    return known(keys)


def unsigned(header: object, claims: object, signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.mark.parametrize(
    ("kid", "algorithm"),
    [("rsa-1", "RS256"), ("rsa-1", "RS512"), ("ec-1", "ES256"), ("oct-1", "HS256"), ("oct-1", "HS512")],
)
def test_a_token_of_each_family_is_of_its_subject(signers: Authenticator, kid: str, algorithm: str) -> None:
    found = caller(signers, bearer(signed(kid, algorithm)))
    assert (found.subject, found.role, found.user_id) == ("alice@example.com", Role.USER, "alice@example.com")


def test_no_token_is_asked_for(signers: Authenticator) -> None:
    failed = refusal(signers, ("X-API-Key", signed("rsa-1", "RS256")))
    assert (failed.status, failed.detail) == (401, NEEDED)


def claims(**more: Any) -> Callable[[], str]:
    return lambda: signed("rsa-1", "RS256", **more)


def now(seconds: int) -> int:
    return int(time.time()) + seconds


def public_pem() -> bytes:
    return private_key("rsa-1").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)  # type: ignore[no-any-return]


def confused() -> str:
    """Returns a token whose HMAC has the published RSA key for a secret; PyJWT itself makes none."""
    head = unsigned({"alg": "HS256", "kid": "rsa-1"}, GOOD()).rpartition(".")[0]
    mac = hmac.digest(public_pem(), head.encode(), hashlib.sha256)
    return f"{head}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def GOOD() -> dict[str, object]:  # noqa: N802 - a value that is made late
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": now(60)}


WRONG = MappingProxyType[str, Callable[[], str]](
    {
        "expired": claims(exp=now(-40)),
        "expired long ago": claims(exp=1),
        "without exp": claims(exp=None),
        "exp is no number": claims(exp="soon"),
        "exp beyond all numbers": lambda: signed("rsa-1", "RS256", exp=float("inf")),
        "not valid yet": claims(nbf=now(86_400)),
        "nbf is no number": claims(nbf={}),
        "issued in the future": claims(iat=now(86_400)),
        "another issuer": claims(iss="https://evil.example"),
        "the issuer with a slash more": claims(iss=f"{ISSUER}/"),
        "without iss": claims(iss=None),
        "iss is a list": claims(iss=[ISSUER]),
        "another audience": claims(aud="another"),
        "other audiences": claims(aud=["another", "deermem2"]),
        "without aud": claims(aud=None),
        "aud is a number": claims(aud=7),
        "without sub": claims(sub=None),
        "sub is a number": claims(sub=7),
        "sub is a list": claims(sub=["alice"]),
        "of another key": lambda: signed("rsa-1", "RS256", key=private_key("rsa-2")),
        "of an unknown kid": lambda: signed("rsa-2", "RS256"),
        "without a kid where there are several keys": lambda: signed(None, "RS256", key=private_key("rsa-1")),
        "with the kid of another family": lambda: signed("ec-1", "RS256", key=private_key("rsa-1")),
        "with an HMAC by a public key": confused,
        "with an HMAC under the kid of a public key": lambda: signed("rsa-1", "HS256", key=SECRET),
        "an algorithm that the key is not for": lambda: signed("rsa-1", "PS256"),
        "none": lambda: unsigned({"alg": "none", "kid": "rsa-1", "typ": "JWT"}, GOOD()),
        "None": lambda: unsigned({"alg": "None", "kid": "oct-1"}, GOOD()),
        "none without a kid": lambda: unsigned({"alg": "none"}, GOOD()),
        "no algorithm": lambda: unsigned({"kid": "rsa-1"}, GOOD(), b"x"),
        "algorithm is a list": lambda: unsigned({"kid": "rsa-1", "alg": ["RS256"]}, GOOD(), b"x"),
        "kid is a number": lambda: unsigned({"kid": 7, "alg": "RS256"}, GOOD(), b"x"),
        "kid is a list": lambda: unsigned({"kid": ["rsa-1"], "alg": "RS256"}, GOOD(), b"x"),
        "without a signature": lambda: signed("rsa-1", "RS256").rpartition(".")[0] + ".",
        "a part of the signature": lambda: signed("rsa-1", "RS256")[:-4],
        "another text under the signature": lambda: ".".join(
            [
                signed("rsa-1", "RS256", sub="bob").rpartition(".")[0],
                signed("rsa-1", "RS256").rpartition(".")[2],
            ]
        ),
        "what must be understood and is not": lambda: signed(
            "rsa-1", "RS256", header={"crit": ["x"], "x": 1}
        ),
        "unencoded": lambda: signed("oct-1", "HS256", header={"b64": False, "crit": ["b64"]}),
        "its own key": lambda: signed(
            "rsa-9", "RS256", header={"jwk": jwk("rsa-9"), "jku": "https://evil.example/keys"}
        ),
        "two parts": lambda: "a.b",
        "no JSON": lambda: "a.b.c",
        "claims are a list": lambda: unsigned({"alg": "none"}, []),
        "header is a list": lambda: unsigned([], GOOD()),
        "nested deeply": lambda: unsigned({"alg": "HS256", "kid": "oct-1"}, GOOD()).replace(
            ".", "." + base64.urlsafe_b64encode(b"[" * 3_000).decode(), 1
        ),
        "encrypted": lambda: "a.b.c.d.e",
        "a token of mode token": lambda: f"deermem_{'0' * 16}_{'0' * 64}",
    }
)


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_token_gets_one_answer(signers: Authenticator, kind: str) -> None:
    failed = refusal(signers, bearer(WRONG[kind]()))
    assert (failed.status, failed.detail) == (401, NOT_VALID)
    assert failed.headers == {"WWW-Authenticate": 'Bearer realm="deermem", error="invalid_token"'}


def test_clocks_may_differ_by_the_leeway_and_no_more(keys: Path) -> None:
    late = bearer(signed("rsa-1", "RS256", exp=now(-10)))
    early = bearer(signed("rsa-1", "RS256", nbf=now(10), iat=now(10)))
    for header in (late, early):
        assert caller(known(keys, leeway=30), header).subject == "alice@example.com"
        assert refusal(known(keys, leeway=0), header).status == 401


def test_one_of_several_audiences_is_enough(keys: Path) -> None:
    signers = known(keys, audience=["one", "two"])
    assert caller(signers, bearer(signed("ec-1", "ES256", aud=["x", "two"]))).subject == "alice@example.com"


@pytest.mark.parametrize("sub", ["", "a" * 201, "a\ud800", "a" * 200 + "-0123456789abcdef"])
def test_a_subject_that_can_have_no_memory_is_told_so(signers: Authenticator, sub: str) -> None:
    failed = refusal(signers, bearer(signed("oct-1", "HS256", sub=sub)))
    assert (failed.status, failed.detail) == (403, NO_SUCH_USER)


@pytest.mark.parametrize(
    "sub", ["李", "a b", "../../etc", "a\0b", "A", "default", "bob-x-com-0123456789abcdef"]
)
def test_any_other_subject_has_a_memory_of_its_own(signers: Authenticator, sub: str) -> None:
    found = caller(signers, bearer(signed("oct-1", "HS256", sub=sub)))
    assert found.subject == sub
    assert (found.user_id == sub) is not sub.endswith("-0123456789abcdef")


@pytest.mark.parametrize(
    ("value", "role"),
    [
        (None, Role.USER),
        ("user", Role.USER),
        ("service", Role.SERVICE),
        ("administrator", Role.ADMINISTRATOR),
        ("Administrator", Role.USER),
        ("root", Role.USER),
        ("", Role.USER),
        (7, Role.USER),
        ({"administrator": True}, Role.USER),
        (["reader", "service"], Role.SERVICE),
        (["service", "administrator", "user"], Role.ADMINISTRATOR),
        ([["administrator"]], Role.USER),
        ("service administrator", Role.USER),
    ],
)
def test_the_role_is_that_of_the_claim(keys: Path, value: object, role: Role) -> None:
    token = signed("ec-1", "ES256", **{"https://deermem.example/role": cast("Any", value)})
    assert caller(known(keys, role_claim="https://deermem.example/role"), bearer(token)).role is role


def test_without_a_configured_claim_everybody_is_a_user(signers: Authenticator) -> None:
    token = signed("ec-1", "ES256", role="administrator", roles=["administrator"])
    assert caller(signers, bearer(token)).role is Role.USER


def test_the_only_key_of_a_set_needs_no_kid(keys: Path) -> None:
    keys.write_bytes(key_set(jwk("ec-1")))
    token = signed(None, "ES256", key=private_key("ec-1"))
    assert caller(known(keys), bearer(token)).subject == "alice@example.com"


def test_a_key_is_good_for_its_own_algorithm_only_if_it_names_one(keys: Path) -> None:
    keys.write_bytes(key_set(jwk("rsa-1", alg="RS256"), jwk("ec-1")))
    signers = known(keys)
    assert caller(signers, bearer(signed("rsa-1", "RS256"))).subject == "alice@example.com"
    assert refusal(signers, bearer(signed("rsa-1", "RS512"))).status == 401


def test_keys_that_are_taken_out_of_the_file_count_no_more(signers: Authenticator, keys: Path) -> None:
    header = bearer(signed("rsa-1", "RS256"))
    assert caller(signers, header).subject == "alice@example.com"
    keys.write_bytes(key_set(jwk("rsa-2")))
    assert refusal(signers, header).status == 401
    assert caller(signers, bearer(signed("rsa-2", "RS256"))).subject == "alice@example.com"
    keys.write_bytes(b"{")
    assert refusal(signers, header).status == 503


SETS = MappingProxyType(
    {
        "missing": None,
        "no JSON": b"{",
        "no keys": b"{}",
        "keys are an object": b'{"keys": {}}',
        "a key is a text": b'{"keys": ["x"]}',
        "empty": key_set(),
        "encryption keys alone": key_set({**jwk("rsa-1"), "use": "enc"}),
        "keys for signing, not verifying": key_set({**jwk("rsa-1"), "key_ops": ["sign"]}),
        "another algorithm": key_set({**jwk("rsa-1"), "alg": "RSA-OAEP"}),
        "RSA for an HMAC": key_set({**jwk("rsa-1"), "alg": "HS256"}),
        "another curve": key_set(jwk("k1-1")),
        "another kind": key_set({"kty": "OKP", "crv": "Ed25519", "x": "x", "kid": "x"}),
        "one kid twice": key_set(jwk("rsa-1"), {**jwk("ec-1"), "kid": "rsa-1"}),
        "kid is a number": key_set({**jwk("rsa-1"), "kid": 7}),
        "a short RSA key": key_set(jwk("short-1")),
        "a short secret": key_set({"kty": "oct", "kid": "x", "k": "c2hvcnQ"}),
        "no secret": key_set({"kty": "oct", "kid": "x"}),
        "a private key": key_set({**jwk("rsa-1"), "d": "AQAB"}),
        "a part of a key": key_set({**jwk("rsa-1"), "n": 7}),
        "a point off the curve": key_set({**jwk("ec-1"), "x": jwk("ec-2")["x"]}),
        "more than a hundred": key_set(*({**jwk("oct-1"), "kid": f"{number}"} for number in range(101))),
    }
)


@pytest.mark.parametrize("kind", SETS)
def test_a_gateway_does_not_start_with_keys_that_it_cannot_trust(keys: Path, kind: str) -> None:
    data = SETS[kind]
    if data is None:
        keys.unlink()
    else:
        keys.write_bytes(data)
    with pytest.raises(InvalidInputError, match=r"keys\.json"):
        known(keys)


def test_keys_of_other_kinds_do_not_keep_a_set_from_being_used(keys: Path) -> None:
    others = [{"kty": "OKP", "crv": "Ed25519", "x": "x", "kid": "x"}, {"kty": "new", "kid": "y"}, {}]
    keys.write_bytes(key_set(*others, jwk("rsa-1", use="sig")))
    assert caller(known(keys), bearer(signed("rsa-1", "RS256"))).subject == "alice@example.com"
