"""JSON Web Key Sets (RFC 7517): each key is good for one family of algorithms, whatever a token says.

| `kty` | algorithms | refused |
| --- | --- | --- |
| `oct` | HS256, HS384, HS512, as far as the key is as long as the hash | shorter than 32 bytes; fetched |
| `RSA` | RS256, RS384, RS512 | shorter than 2048 bits |
| `EC` | ES256, ES384 or ES512, by the curve | other curves |

A key's own `alg` narrows that to one. Keys of other kinds, or not meant for signatures,
are left out.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from deermem.errors import Corruption, InvalidInputError
from deermem.format.strict_json import load_object

MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2_048
_OF_CURVE: Final[Mapping[Any, str]] = MappingProxyType({"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"})
_RS: Final = ("RS256", "RS384", "RS512")
_HS: Final = (("HS256", 32), ("HS384", 48), ("HS512", 64))
_PRIVATE: Final = "d"
_SECRETS: Final = frozenset(["k", _PRIVATE])


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Is a key, with one ready form for each algorithm that it may be used with."""

    by_algorithm: Mapping[str, PyJWK]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Is the keys that may sign tokens, by their `kid`; a key without one has `None`.

    `has_secret` tells whether what they were read from has a secret in it, be it of a key that is left out.
    """

    keys: Mapping[str | None, SigningKey]
    has_secret: bool

    def key_for(self, kid: object, algorithm: object) -> PyJWK | None:
        """Returns the key that a token's header names, if it may be used with that algorithm.

        A token without a `kid` can only mean the key of a set of one.
        """
        if kid is None and len(self.keys) == 1:
            key = next(iter(self.keys.values()))
        else:
            found = self.keys.get(kid) if isinstance(kid, str) else None
            if found is None:
                return None
            key = found
        return key.by_algorithm.get(algorithm) if isinstance(algorithm, str) else None

    def knows(self, kid: object) -> bool:
        """Tells whether a token's `kid` is that of a key."""
        return kid is None or (isinstance(kid, str) and kid in self.keys)


def parse_keys(data: bytes | None, where: str, *, fetched: bool) -> KeySet:
    """Reads a key set.

    Args:
        data: Its bytes; `None` if there are none.
        where: What it was read from, for messages.
        fetched: Whether it came over the network, where a secret key would be one no longer.

    Raises:
        InvalidInputError: The bytes are no key set, or no key of it can be used.
    """
    if data is None:
        raise InvalidInputError("auth.jwks_file", f"{where} is missing")
    try:
        listed = load_object(data, where).get("keys")
    except Corruption as error:
        raise InvalidInputError(where, error.reason) from None
    if not isinstance(listed, list) or not all(isinstance(values, dict) for values in listed):
        raise InvalidInputError(where, "has no list of keys")
    if len(listed) > MAX_KEYS:
        raise InvalidInputError(where, f"has more than {MAX_KEYS} keys")
    keys: dict[str | None, SigningKey] = {}
    for position, values in enumerate(listed, start=1):
        key = _key(values, f"{where}, key {position}", fetched=fetched)
        if key is None:
            continue
        kid = values.get("kid")
        if kid in keys or not (kid is None or isinstance(kid, str)):
            raise InvalidInputError(where, f"key {position} needs a kid of its own")
        keys[kid] = key
    if not keys:
        raise InvalidInputError(where, "has no key for HS, RS or ES signatures")
    return KeySet(MappingProxyType(keys), any(_SECRETS & values.keys() for values in listed))


def _key(values: dict[str, Any], where: str, *, fetched: bool) -> SigningKey | None:
    operations = values.get("key_ops")
    if values.get("use", "sig") != "sig" or not (
        operations is None or (isinstance(operations, list) and "verify" in operations)
    ):
        return None
    algorithms = _algorithms(values, where)
    if "alg" in values:
        algorithms = [algorithm for algorithm in algorithms if algorithm == values["alg"]]
    if not algorithms:
        return None
    if values["kty"] == "oct" and fetched:
        raise InvalidInputError(where, "is a secret, which must not be fetched")
    if values["kty"] != "oct" and _PRIVATE in values:
        raise InvalidInputError(where, "is a private key; only its public part belongs here")
    try:
        ready = {algorithm: PyJWK(values, algorithm) for algorithm in algorithms}
    except (PyJWTError, ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(where, f"cannot be used: {type(error).__name__}") from None
    if values["kty"] == "RSA" and ready[algorithms[0]].key.key_size < _MIN_RSA_BITS:
        raise InvalidInputError(where, f"is shorter than {_MIN_RSA_BITS} bits")
    return SigningKey(MappingProxyType(ready))


def _algorithms(values: dict[str, Any], where: str) -> list[str]:
    kind = values.get("kty")
    if kind == "RSA":
        return list(_RS)
    if kind == "EC":
        curve = values.get("crv")
        return [_OF_CURVE[curve]] if isinstance(curve, str) and curve in _OF_CURVE else []
    if kind != "oct":
        return []
    algorithms = [name for name, needed in _HS if _secret_length(values, where) >= needed]
    if not algorithms:
        raise InvalidInputError(where, "is a secret of fewer than 32 bytes")
    return algorithms


def _secret_length(values: dict[str, Any], where: str) -> int:
    encoded: Any = values.get("k")
    try:
        return len(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (TypeError, ValueError):
        raise InvalidInputError(where, "has no secret in base64url") from None
