from __future__ import annotations

from typing import Any

import pytest

from deermem.errors import InvalidInputError
from deermem.gateway.auth import AuthSettings, Mode, make_authenticator

JWT = {"mode": "jwt", "issuer": "i", "audience": "a", "jwks_file": "k"}
PROXY = {"mode": "proxy", "proxy_secret": "s" * 32}


def test_without_settings_nobody_is_asked() -> None:
    assert AuthSettings.load() == AuthSettings(mode=Mode.NONE, user="default")


def test_variables_win_over_the_file_and_others_are_left_alone() -> None:
    environment = {
        "DEERMEM_AUTH_AUDIENCE": "one, two,",
        "DEERMEM_AUTH_LEEWAY": "5",
        "DEERMEM_AUTH_ROLE_CLAIM": "",
        "DEERMEM_DATA_DIR": "x",
        "PATH": "y",
    }
    settings = AuthSettings.load({**JWT, "leeway": 9, "role_claim": "r"}, environment)
    assert (settings.audience, settings.leeway, settings.role_claim) == (("one", "two"), 5, "r")


def test_tokens_are_in_the_storage_root_if_no_file_is_named() -> None:
    assert AuthSettings.load({"mode": "token"}, {}, "root").token_file == "root/.gateway-tokens.json"  # noqa: S105
    assert AuthSettings.load({"mode": "token", "token_file": "t"}, {}, "root").token_file == "t"  # noqa: S105


def test_a_secret_is_not_shown() -> None:
    assert "s" * 32 not in repr(AuthSettings.from_mapping(PROXY))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"mode": "basic"}, "auth.mode"),
        ({"mode": ["token"]}, "auth.mode"),
        ({"mode": "None"}, "auth.mode"),
        ({"audiance": "a"}, "auth.audiance"),
        ({"mode": "token"}, "auth.token_file"),
        ({"mode": "none", "issuer": "i"}, "auth.issuer"),
        ({"token_file": "t"}, "auth.token_file"),
        ({"user": ""}, "auth.user"),
        ({"user": "a" * 201}, "auth.user"),
        ({**JWT, "user": "alice"}, "auth.user"),
        ({**JWT, "issuer": ""}, "auth.issuer"),
        ({**JWT, "issuer": 7}, "auth.issuer"),
        ({**JWT, "audience": []}, "auth.audience"),
        ({**JWT, "audience": [7]}, "auth.audience"),
        ({**JWT, "audience": 7}, "auth.audience"),
        ({**JWT, "audience": ","}, "auth.audience"),
        ({**JWT, "jwks_file": ""}, "auth.jwks_file"),
        ({**JWT, "jwks_url": "https://x.example/"}, "auth.jwks_file"),
        ({**JWT, "jwks_file": "", "jwks_url": "http://x.example/"}, "auth.jwks_url"),
        ({**JWT, "jwks_ca_file": "c"}, "auth.jwks_ca_file"),
        ({**JWT, "leeway": 301}, "auth.leeway"),
        ({**JWT, "leeway": -1}, "auth.leeway"),
        ({**JWT, "leeway": "1e3"}, "auth.leeway"),
        ({**JWT, "leeway": True}, "auth.leeway"),
        ({**JWT, "leeway": "9" * 5_000}, "auth.leeway"),
        ({"mode": "proxy"}, "auth.proxy_secret"),
        ({**PROXY, "proxy_secret_file": "f"}, "auth.proxy_secret"),
        ({**PROXY, "proxy_secret": "s" * 31}, "auth.proxy_secret"),
        ({**PROXY, "proxy_secret": "ä" * 40}, "auth.proxy_secret"),
        ({**PROXY, "proxy_header": ""}, "auth.proxy_header"),
        ({**PROXY, "proxy_header": "X User"}, "auth.proxy_header"),
        ({**PROXY, "proxy_header": "x-deermem-user"}, "auth.proxy_header"),
        ({**PROXY, "proxy_role_header": "X-DeerMem-Bucket"}, "auth.proxy_header"),
        ({**PROXY, "proxy_role_header": "x-forwarded-user"}, "auth.proxy_header"),
    ],
)
def test_a_setting_that_breaks_its_rule_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        AuthSettings.from_mapping(given)
    assert caught.value.field == named


def test_a_setting_that_came_from_a_variable_is_told_by_its_name() -> None:
    with pytest.raises(InvalidInputError) as caught:
        AuthSettings.load({"mode": "none"}, {"DEERMEM_AUTH_ISSUER": "i"})
    assert caught.value.field == "DEERMEM_AUTH_ISSUER"


@pytest.mark.parametrize("name", ["issuer", "audience"])
def test_what_a_jwt_must_have_is_said_to_be_missing(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        AuthSettings.from_mapping({**JWT, name: ""})
    assert "must be given" in caught.value.reason


def test_beyond_this_machine_the_modes_to_choose_from_are_told() -> None:
    with pytest.raises(InvalidInputError, match="token, jwt or proxy"):
        make_authenticator(AuthSettings()).allows_listening_on("0.0.0.0")  # noqa: S104 - refused
