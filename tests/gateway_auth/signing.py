"""An identity provider for tests: keys of every family, and tokens signed with them."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, RSAAlgorithm

ISSUER = "https://login.example"
AUDIENCE = "deermem"
SECRET = b"an HMAC secret of at least 64 bytes, which is what HS512 asks for: "


@cache
def private_key(kid: str) -> Any:
    """Returns the key with this id; its kind stands before the dash."""
    kind = kid.partition("-")[0]
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    if kind == "short":
        return rsa.generate_private_key(public_exponent=65_537, key_size=1_024)  # noqa: S505 - to be refused
    if kind == "oct":
        return SECRET
    curve = {"ec": ec.SECP256R1(), "ec384": ec.SECP384R1(), "k1": ec.SECP256K1()}[kind]
    return ec.generate_private_key(curve)


def jwk(kid: str, **more: Any) -> dict[str, Any]:
    """Returns the key with this id as the provider publishes it."""
    key = private_key(kid)
    if isinstance(key, bytes):
        values: dict[str, Any] = HMACAlgorithm.to_jwk(key, as_dict=True)
    elif isinstance(key, rsa.RSAPrivateKey):
        values = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        values = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    values.pop("key_ops", None)
    return {**values, "kid": kid, **more}


def key_set(*keys: dict[str, Any]) -> bytes:
    """Returns the bytes of a key set."""
    return json.dumps({"keys": keys}).encode()


def signed(
    kid: str | None, algorithm: str, *, key: Any = None, header: dict[str, Any] | None = None, **claims: Any
) -> str:
    """Returns a token that is good for a minute, but for the claims that are given; `None` leaves one out."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice@example.com", "exp": now + 60, "iat": now}
    payload = {name: value for name, value in {**good, **claims}.items() if value is not None}
    headers = {**({} if kid is None else {"kid": kid}), **(header or {})}
    if key is None and kid is not None:
        key = private_key(kid)
    return jwt.PyJWS().encode(json.dumps(payload).encode(), key, algorithm=algorithm, headers=headers)
