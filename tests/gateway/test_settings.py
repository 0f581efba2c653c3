"""Settings of the gateway come from a file, from variables and from options, and are checked."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deermem import InvalidInputError
from deermem.gateway.settings import GatewaySettings


def test_without_settings_a_gateway_listens_on_this_machine_alone() -> None:
    settings = GatewaySettings.load()
    assert (settings.host, settings.read_only, settings.trusted_proxies) == ("127.0.0.1", False, ())


def test_variables_win_over_the_file_and_empty_ones_count_as_none() -> None:
    table = {"port": 1, "host": "::1", "allowed_origins": ["https://a.example"], "patience": 2}
    variables = {
        "DEERMEM_GATEWAY_PORT": "2",
        "DEERMEM_GATEWAY_HOST": "",
        "DEERMEM_GATEWAY_READ_ONLY": "Yes",
        "DEERMEM_GATEWAY_TRUSTED_PROXIES": "10.0.0.1, 10.1.0.0/16",
        "DEERMEM_DATA_DIR": "/elsewhere",
    }
    settings = GatewaySettings.load(table, variables)
    assert (settings.port, settings.host, settings.read_only, settings.patience) == (2, "::1", True, 2.0)
    assert settings.allowed_origins == ("https://a.example",)
    assert settings.trusted_proxies == ("10.0.0.1", "10.1.0.0/16")


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ({"prot": 1}, "prot"),
        ({"port": "x"}, "port"),
        ({"port": 70_000}, "port"),
        ({"port": 1.5}, "port"),
        ({"port": True}, "port"),
        ({"port": None}, "port"),
        ({"port": "nan"}, "port"),
        ({"patience": float("inf")}, "patience"),
        ({"threads": 0}, "threads"),
        ({"read_only": "maybe"}, "read_only"),
        ({"read_only": 1}, "read_only"),
        ({"host": ""}, "host"),
        ({"host": 1}, "host"),
        ({"allowed_origins": [1]}, "allowed_origins"),
        ({"trusted_proxies": 1}, "trusted_proxies"),
    ],
)
def test_a_setting_that_breaks_its_rule_is_named(table: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        GatewaySettings.load(table)
    assert caught.value.field == f"gateway.{name}"


@pytest.mark.parametrize(
    "text", ["10.0.0.256", "10.0.0.1/8", "10.0.0.0/33", "proxy.example", "*", "fe80::/200"]
)
def test_a_trusted_proxy_that_is_no_address_and_no_network_is_named(text: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(repr(text))) as caught:
        GatewaySettings(trusted_proxies=("127.0.0.1", "fd00::/8", text))
    assert caught.value.field == "gateway.trusted_proxies"


@pytest.mark.parametrize(
    "text", ["memory.example", "https://memory.example/", "https://memory.example/x", "null", "*", "https://"]
)
def test_an_allowed_origin_that_is_none_is_named(text: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(repr(text))) as caught:
        GatewaySettings(allowed_origins=("https://memory.example:8443", "http://[::1]:3000", text))
    assert caught.value.field == "gateway.allowed_origins"


@pytest.mark.parametrize(
    ("name", "text"), [("PORT", "70000"), ("THREADS", "x"), ("TRUSTED_PROXIES", "x"), ("PROT", "1")]
)
def test_a_value_that_came_from_a_variable_is_told_by_its_name(name: str, text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        GatewaySettings.load({}, {f"DEERMEM_GATEWAY_{name}": text})
    assert caught.value.field == f"DEERMEM_GATEWAY_{name}"


def test_a_value_of_the_file_is_told_by_its_name_there_though_there_are_variables() -> None:
    with pytest.raises(InvalidInputError) as caught:
        GatewaySettings.load({"threads": 0}, {"DEERMEM_GATEWAY_PORT": "1"})
    assert caught.value.field == "gateway.threads"


@pytest.mark.parametrize(
    ("name", "near"), [("prot", "port"), ("trusted_proxy", "trusted_proxies"), ("xyzzy", "")]
)
def test_a_name_that_is_no_setting_is_told_with_those_that_are_called_nearly_so(name: str, near: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        GatewaySettings.load({name: 1})
    assert caught.value.reason == (f"is no setting; there is {near}" if near else "is no setting")
