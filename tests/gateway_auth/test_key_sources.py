from __future__ import annotations

import ipaddress
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from deermem.errors import InvalidInputError
from deermem.gateway.auth import AuthenticationFailed, AuthSettings, Mode, make_authenticator
from deermem.gateway.auth.jwt_mode import SignedTokens
from deermem.gateway.auth.key_sources import COOLDOWN, HARD_AGE, LIFESPAN, FetchedKeys, fetcher
from tests.gateway_auth.calls import bearer, caller, refusal
from tests.gateway_auth.signing import AUDIENCE, ISSUER, jwk, key_set, private_key, signed

SETTINGS = AuthSettings(
    mode=Mode.JWT, issuer=ISSUER, audience=(AUDIENCE,), jwks_url="https://login.example/keys"
)


class Provider:
    """Publishes keys, on a clock that a test moves; what it is asked in the background waits for `run`."""

    def __init__(self, *kids: str) -> None:
        self.now = 1_000.0
        self.asked = 0
        self.answer: Callable[[], bytes]
        if kids:
            self.publishes(*kids)
        else:
            self.fails(OSError("unreachable"))
        self._waiting: list[Callable[[], None]] = []
        self.source = FetchedKeys("keys", self._fetch, clock=lambda: self.now, begin=self._waiting.append)
        self.signers = SignedTokens(SETTINGS, self.source)

    def _fetch(self) -> bytes:
        self.asked += 1
        return self.answer()

    def publishes(self, *kids: str) -> None:
        """Changes the keys."""
        self.answer = lambda: key_set(*map(jwk, kids))

    def fails(self, error: Exception) -> None:
        """Becomes unreachable."""

        def answer() -> bytes:
            raise error

        self.answer = answer

    def run(self) -> None:
        """Lets what is under way in the background end."""
        waiting, self._waiting[:] = list(self._waiting), []
        for call in waiting:
            call()

    def status(self, kid: str) -> int:
        """Returns how a token is answered."""
        try:
            caller(self.signers, bearer(signed(kid, "ES256")))
        except AuthenticationFailed as failed:
            return failed.status
        return 200


def test_keys_are_fetched_at_the_start_and_then_kept() -> None:
    provider = Provider("ec-1")
    for _ in range(5):
        provider.now += LIFESPAN / 10
        assert provider.status("ec-1") == 200
    provider.run()
    assert provider.asked == 1


def test_a_request_does_not_wait_for_newer_keys() -> None:
    provider = Provider("ec-1")
    provider.now += LIFESPAN
    provider.publishes("ec-2")
    assert provider.status("ec-1") == 200
    assert provider.asked == 1
    provider.run()
    assert provider.asked == 2
    assert (provider.status("ec-1"), provider.status("ec-2")) == (401, 200)


def test_a_new_key_is_learnt_of_by_its_first_token() -> None:
    provider = Provider("ec-1")
    provider.now += COOLDOWN
    provider.publishes("ec-1", "ec-2")
    assert provider.status("ec-2") == 401
    provider.run()
    assert provider.status("ec-2") == 200


def test_unknown_keys_do_not_make_the_gateway_ask_all_the_time() -> None:
    provider = Provider("ec-1")
    for _ in range(100):
        provider.now += COOLDOWN / 50
        assert provider.status("ec-2") == 401
        provider.run()
    assert provider.asked <= 4


def test_one_question_is_under_way_at_most() -> None:
    provider = Provider("ec-1")
    for _ in range(10):
        provider.now += COOLDOWN * 2
        provider.status("ec-2")
    provider.run()
    assert provider.asked == 2


@pytest.mark.parametrize("error", [OSError("unreachable"), TimeoutError(), ValueError("x")])
def test_keys_outlive_an_outage_of_their_provider_for_a_bounded_time(error: Exception) -> None:
    provider = Provider("ec-1")
    provider.fails(error)
    provider.now += HARD_AGE - 1
    assert provider.status("ec-1") == 200
    provider.run()
    assert provider.status("ec-1") == 200
    provider.now += 1
    assert provider.status("ec-1") == 503
    provider.now += COOLDOWN
    provider.publishes("ec-1")
    assert provider.status("ec-1") == 503
    provider.run()
    assert provider.status("ec-1") == 200


@pytest.mark.parametrize("data", [b"", b"<html>", b'{"keys": []}', key_set(jwk("oct-1"))])
def test_an_answer_that_is_no_key_set_changes_nothing(data: bytes) -> None:
    provider = Provider("ec-1")
    provider.answer = lambda: data
    provider.now += LIFESPAN
    provider.status("ec-1")
    provider.run()
    assert provider.asked == 2
    assert provider.status("ec-1") == 200


def test_a_gateway_that_starts_before_its_provider_lets_people_in_later() -> None:
    provider = Provider()
    assert provider.status("ec-1") == 503
    provider.publishes("ec-1")
    provider.now += COOLDOWN
    assert provider.status("ec-1") == 503
    provider.run()
    assert provider.status("ec-1") == 200


@pytest.mark.parametrize(
    "url",
    ["http://login.example/keys", "file:///etc/keys.json", "https://", "login.example", "https://a:b@x.example/",
     "ftp://x.example/k", "https://x.example:99999/", "HTTP://x.example/"],
)  # fmt: skip
def test_keys_are_fetched_over_https_alone(url: str) -> None:
    with pytest.raises(InvalidInputError, match="jwks_url"):
        fetcher(url)


class Answers(BaseHTTPRequestHandler):
    """Answers with what the path asks for."""

    def do_GET(self) -> None:
        status, body = {
            "/keys": (200, key_set(jwk("ec-1"))),
            "/moved": (302, b""),
            "/large": (200, b" " * 300_000),
            "/error": (500, b"{}"),
        }.get(self.path, (404, b""))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/keys")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def certificate(folder: Path) -> tuple[Path, Path]:
    """Returns a certificate for the loopback address and its key."""
    key, name = private_key("ec-9"), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """A server on the loopback interface: its address, and the certificate to trust for it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"https://127.0.0.1:{listening.server_address[1]}", str(cert)
        finally:
            listening.shutdown()
            thread.join()


def test_a_gateway_gets_its_keys_from_a_server_that_proves_who_it_is(server: tuple[str, str]) -> None:
    url, ca_file = server
    given = {"mode": "jwt", "issuer": ISSUER, "audience": AUDIENCE, "jwks_url": f"{url}/keys"}
    signers = make_authenticator(AuthSettings.from_mapping({**given, "jwks_ca_file": ca_file}))
    assert caller(signers, bearer(signed("ec-1", "ES256"))).subject == "alice@example.com"
    strangers = make_authenticator(AuthSettings.from_mapping(given))
    assert refusal(strangers, bearer(signed("ec-1", "ES256"))).status == 503


PROBLEMS = MappingProxyType({"/moved": "302", "/large": "262,144", "/error": "500", "/absent": "404"})


@pytest.mark.parametrize("path", PROBLEMS)
def test_what_is_no_plain_answer_is_an_error(server: tuple[str, str], path: str) -> None:
    url, ca_file = server
    with pytest.raises(OSError, match=PROBLEMS[path]):
        fetcher(url + path, ca_file)()


def test_a_server_that_does_not_answer_is_given_up(server: tuple[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/keys"
        with pytest.raises(OSError, match="timed out"):
            fetcher(url, server[1], timeout=0.05)()


def key_file(path: Path, *keys: dict[str, str]) -> AuthSettings:
    path.write_bytes(key_set(*keys))
    path.chmod(0o644)
    return AuthSettings(mode=Mode.JWT, issuer=ISSUER, audience=(AUDIENCE,), jwks_file=str(path))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps access lists")
@pytest.mark.parametrize(
    ("kids", "warned"), [(["ec-1", "rsa-1"], False), (["ec-1", "oct-1"], True), (["ec-1", "unused"], True)]
)
def test_keys_that_others_can_read_are_warned_of_where_one_is_a_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kids: list[str], warned: bool
) -> None:
    unused = {**jwk("ec-2"), "use": "enc", "d": "x"}
    keys = [unused if kid == "unused" else jwk(kid) for kid in kids]
    make_authenticator(key_file(tmp_path / "keys.json", *keys))
    assert ("can be read by others" in caplog.text) == warned


def test_a_key_file_that_is_missing_is_told_with_its_setting(tmp_path: Path) -> None:
    settings = key_file(tmp_path / "keys.json", jwk("ec-1"))
    (tmp_path / "keys.json").unlink()
    with pytest.raises(InvalidInputError, match=r"keys\.json is missing") as caught:
        make_authenticator(settings)
    assert caught.value.field == "auth.jwks_file"
