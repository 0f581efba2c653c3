"""How callers are identified: settings, checked, so that none of them is overlooked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Self
from urllib.parse import urlsplit

from deermem.asgi.naming import check_names, check_variables, told_by_variable, variables_of
from deermem.errors import InvalidInputError
from deermem.gateway.auth.subjects import ACTING_HEADERS
from deermem.model.identity import safe_user_id

PREFIX: Final = "DEERMEM_AUTH_"
TOKEN_FILE_NAME: Final = ".gateway-tokens.json"  # noqa: S105 - a name
MAX_LEEWAY: Final = 300
MIN_SECRET: Final = 32

_HEADER_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


class Mode(StrEnum):
    """Is a way to identify callers."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - the name of a mode
    JWT = "jwt"
    PROXY = "proxy"


def _of(mode: Mode, default: Any, **more: Any) -> Any:
    return field(default=default, metadata={"mode": mode}, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """Says how callers are identified; settings of another mode than the chosen one are refused.

    Args:
        mode: `none`, `token`, `jwt` or `proxy`.
        user: The one user of mode `none`.
        token_file: The file with the hashes of the tokens.
        issuer: The `iss` that a JWT must have.
        audience: The `aud` that a JWT must have, at least one of these.
        jwks_file: A file with the keys that sign JWTs.
        jwks_url: An https address of those keys.
        jwks_ca_file: Certificates to trust for that address; empty for the system's.
        role_claim: The claim of a JWT that names the role; empty: everybody is a user.
        leeway: How many seconds clocks may differ.
        proxy_header: The header in which the proxy names the user.
        proxy_secret: What the proxy proves itself with.
        proxy_secret_file: A file with that.
        proxy_secret_header: The header in which the proxy sends it.
        proxy_role_header: The header in which the proxy names the role; empty: everybody is a user.

    Raises:
        InvalidInputError: Names the setting that breaks its rule.
    """

    mode: Mode = Mode.NONE
    user: str = _of(Mode.NONE, "default")
    token_file: str = _of(Mode.TOKEN, "")
    issuer: str = _of(Mode.JWT, "")
    audience: tuple[str, ...] = _of(Mode.JWT, ())
    jwks_file: str = _of(Mode.JWT, "")
    jwks_url: str = _of(Mode.JWT, "")
    jwks_ca_file: str = _of(Mode.JWT, "")
    role_claim: str = _of(Mode.JWT, "")
    leeway: int = _of(Mode.JWT, 30)
    proxy_header: str = _of(Mode.PROXY, "X-Forwarded-User")
    proxy_secret: str = _of(Mode.PROXY, "", repr=False)
    proxy_secret_file: str = _of(Mode.PROXY, "")
    proxy_secret_header: str = _of(Mode.PROXY, "X-DeerMem-Proxy-Secret")
    proxy_role_header: str = _of(Mode.PROXY, "")

    def __post_init__(self) -> None:
        for each in fields(self):
            is_other = each.name != "mode" and each.metadata["mode"] is not self.mode
            if is_other and getattr(self, each.name) != each.default:
                raise InvalidInputError(f"auth.{each.name}", f"has no meaning in mode {self.mode}")
        _CHECKS[self.mode](self)

    @classmethod
    def load(
        cls,
        table: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        storage_root: str = "",
    ) -> Self:
        """Takes settings from the table of a settings file and from variables, which win.

        Args:
            table: The settings by their names.
            environment: Variables, `DEERMEM_AUTH_MODE` and the like; others are left alone.
            storage_root: Where the file of tokens is in mode `token` if none is named.

        Raises:
            InvalidInputError: Names the setting, or the variable, that breaks its rule or does not exist.
        """
        variables = variables_of(PREFIX, environment)
        given = {**(table or {}), **{name: (environment or {})[each] for name, each in variables.items()}}
        if given.get("mode") == Mode.TOKEN and not given.get("token_file") and storage_root:
            given["token_file"] = default_token_file(storage_root)
        check_variables(PREFIX, variables, [each.name for each in fields(cls)])
        with told_by_variable("auth", variables):
            return cls.from_mapping(given)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Self:
        """Takes settings by their names; numbers may be text, and a list may be text with commas.

        Raises:
            InvalidInputError: Names the setting that breaks its rule, or does not exist.
        """
        kinds = {each.name: type(each.default) for each in fields(cls)}
        check_names("auth", given, kinds)
        return cls(**{name: _parsed(name, value, kinds[name]) for name, value in given.items()})


def default_token_file(storage_root: str) -> str:
    """Returns where the tokens of a store are if no other file is named."""
    return f"{storage_root}/{TOKEN_FILE_NAME}"


def _parsed(name: str, value: Any, kind: type) -> Any:
    if kind is Mode:
        if value not in list(Mode):
            raise InvalidInputError("auth.mode", f"must be one of {', '.join(Mode)}")
        return Mode(value)
    if kind is int:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInputError(f"auth.{name}", "must be a whole number")
        return value
    if kind is tuple and isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if kind is tuple and isinstance(value, list | tuple):
        if not all(isinstance(part, str) and part for part in value):
            raise InvalidInputError(f"auth.{name}", "must be a list of texts")
        return tuple(value)
    if kind is not str or not isinstance(value, str):
        raise InvalidInputError(
            f"auth.{name}", "must be a list of texts" if kind is tuple else "must be text"
        )
    return value


def _check_none(settings: AuthSettings) -> None:
    try:
        safe_user_id(settings.user)
    except InvalidInputError as error:
        raise InvalidInputError("auth.user", error.reason) from None


def _check_token(settings: AuthSettings) -> None:
    if not settings.token_file:
        raise InvalidInputError("auth.token_file", "must name a file")


def _given(value: str) -> str:
    """Says what is wrong with the first of two settings of which exactly one must be given."""
    return "is not alone" if value else "is missing"


def _check_jwt(settings: AuthSettings) -> None:
    if not settings.issuer:
        raise InvalidInputError("auth.issuer", "must be given: the `iss` of the tokens")
    if not settings.audience:
        raise InvalidInputError("auth.audience", "must be given: the `aud` of the tokens")
    if bool(settings.jwks_file) == bool(settings.jwks_url):
        raise InvalidInputError(
            "auth.jwks_file",
            f"{_given(settings.jwks_file)}: exactly one of jwks_file and jwks_url must be given",
        )
    if settings.jwks_url:
        check_https(settings.jwks_url)
    if settings.jwks_ca_file and not settings.jwks_url:
        raise InvalidInputError("auth.jwks_ca_file", "has no meaning without jwks_url")
    if not 0 <= settings.leeway <= MAX_LEEWAY:
        raise InvalidInputError("auth.leeway", f"must be from 0 to {MAX_LEEWAY} seconds")


def check_https(url: str) -> None:
    """Makes sure that keys come from a server that proves who it is.

    Raises:
        InvalidInputError: The address is not https, or has credentials in it.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInputError("auth.jwks_url", "is no address") from None
    if parts.scheme != "https" or not parts.hostname or port == 0 or "@" in parts.netloc:
        raise InvalidInputError("auth.jwks_url", "must be an https address without a user")


def _check_proxy(settings: AuthSettings) -> None:
    names = [settings.proxy_header, settings.proxy_secret_header]
    names += [settings.proxy_role_header] if settings.proxy_role_header else []
    for name in names:
        if not name or not _HEADER_CHARACTERS.issuperset(name):
            raise InvalidInputError(
                "auth.proxy_header", "each header's name must be of letters, digits and '-'"
            )
    names += ACTING_HEADERS
    if len({name.lower() for name in names}) < len(names):
        raise InvalidInputError(
            "auth.proxy_header", f"the headers must have different names, none of {names[-2:]}"
        )
    if bool(settings.proxy_secret) == bool(settings.proxy_secret_file):
        raise InvalidInputError(
            "auth.proxy_secret",
            f"{_given(settings.proxy_secret)}: exactly one of proxy_secret and proxy_secret_file "
            "must be given",
        )
    if settings.proxy_secret:
        check_secret(settings.proxy_secret)


def check_secret(secret: str) -> None:
    """Makes sure that a shared secret can be sent in a header and not be guessed.

    Raises:
        InvalidInputError: It is too short, or not of printable ASCII without blanks.
    """
    if len(secret) < MIN_SECRET or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InvalidInputError(
            "auth.proxy_secret", f"must be at least {MIN_SECRET} printable ASCII characters without blanks"
        )


_CHECKS: Final = {
    Mode.NONE: _check_none,
    Mode.TOKEN: _check_token,
    Mode.JWT: _check_jwt,
    Mode.PROXY: _check_proxy,
}
