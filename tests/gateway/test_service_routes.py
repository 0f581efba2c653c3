"""What whoever runs a gateway looks at: is it alive, is it ready, what did it count, what does it offer."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from deermem.asgi.limits import LimitSettings
from deermem.gateway.auth import AuthSettings, Caller, Mode, Role
from deermem.gateway.auth.caller import Connection
from tests.gateway.conftest import SECRET
from tests.gateway.servers import PATIENCE, Client, Running, body_of, manager_at, refused, running
from tests.manager.managers import watched_manager
from tests.support.threads import in_thread
from tests.support.watched import Call

OTHER_ROLE = "This needs another role."


def test_a_gateway_that_serves_is_alive_and_ready_to_anybody(local: Client, shared: Running) -> None:
    with shared.client() as stranger:
        for client in (local, stranger):
            assert body_of(client.get("/healthz")) == {"status": "ok"}
            assert body_of(client.get("/readyz")) == {"status": "ready"}


def test_a_gateway_whose_storage_cannot_be_read_is_alive_but_not_ready(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    manager.create_fact("a fact", user_id="default")
    with running(manager) as gateway, gateway.client() as client:
        disk.fail(lambda _: True, errno.EIO)
        assert body_of(client.get("/readyz"), 503) == {"status": "not ready"}
        assert client.get("/healthz").status_code == 200
        disk.heal()
        assert client.get("/readyz").status_code == 200


def test_a_corrupt_memory_does_not_make_a_gateway_unready(tmp_path: Path) -> None:
    manager_at(tmp_path).create_fact("a fact", user_id="default")
    (tmp_path / "users" / "default" / "memory.json").write_text("{")
    with running(manager_at(tmp_path)) as gateway, gateway.client() as client:
        assert client.get("/readyz").status_code == 200
        assert client.get("/api/memory").status_code == 500


class Hanging:
    """Knows nobody before it is told to."""

    identifying_headers = ("Authorization",)

    def __init__(self) -> None:
        self.told = threading.Event()

    def authenticate(self, _: Connection, /) -> Caller:
        assert self.told.wait(PATIENCE)
        return Caller("alice", Role.USER, "alice")

    def allows_listening_on(self, host: str, /) -> None:
        raise AssertionError(host)


def test_a_disk_that_hangs_with_the_credentials_is_not_waited_for_without_end(tmp_path: Path) -> None:
    hanging = Hanging()
    limits = LimitSettings(request_seconds=1)
    with running(manager_at(tmp_path), auth=hanging, limits=limits) as gateway, gateway.client() as client:
        try:
            assert client.get("/api/memory").status_code == 504
            assert client.get("/healthz").status_code == 200
        finally:
            hanging.told.set()
        assert client.get("/api/memory").status_code == 200


def test_a_gateway_is_not_ready_where_no_memory_can_be_read(tmp_path: Path) -> None:
    users = tmp_path / "users"
    manager_at(tmp_path).create_fact("a fact", user_id="alice")
    with running(manager_at(tmp_path)) as gateway, gateway.client() as client:
        users.rename(tmp_path / "elsewhere")
        users.symlink_to("elsewhere")
        assert client.get("/readyz").status_code == 503
        users.unlink()
        (tmp_path / "elsewhere").rename(users)
        assert client.get("/readyz").status_code == 200


def test_a_memory_that_cannot_be_read_does_not_make_a_gateway_unready(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    manager.create_fact("a fact", user_id="default")
    with running(manager) as gateway, gateway.client() as client:
        disk.fail(lambda call: call.path.startswith("users/default"), errno.EIO)
        assert client.get("/readyz").status_code == 200
        assert client.get("/api/memory").status_code == 500


def test_a_disk_that_hangs_does_not_stop_the_gateway(tmp_path: Path) -> None:
    manager, disk = watched_manager(tmp_path)
    hanging, released = threading.Event(), threading.Event()

    def hang(_: Call) -> None:
        hanging.set()
        assert released.wait(60)

    with running(manager) as gateway, gateway.client() as client, gateway.client() as patient:
        disk.on_call = hang
        with in_thread(patient.document):
            assert hanging.wait(60)
            assert body_of(client.get("/healthz")) == {"status": "ok"}
            assert metric(client, "deermem_store_calls") == 1
            released.set()


def metric(client: Client, name: str) -> float:
    """Returns the value of a metric without or with its labels."""
    lines = client.get("/metrics").text.splitlines()
    (value,) = [line.rpartition(" ")[2] for line in lines if line.rpartition(" ")[0] == name]
    return float(value)


def test_requests_are_counted_by_route_and_never_by_id(local: Client) -> None:
    fact_id = local.create("a fact")
    local.get(f"/api/memory/facts/{fact_id}")
    local.get("/api/memory/facts/fact_other")
    local.get("/no/such/route")
    local.request("BREW", "/api/memory")
    text = local.get("/metrics").text
    assert fact_id not in text
    assert "such" not in text
    assert "BREW" not in text
    route = 'route="/api/memory/facts/{fact_id}"'
    assert metric(local, f'deermem_http_requests_total{{method="GET",{route},status="200"}}') == 1
    assert metric(local, f'deermem_http_requests_total{{method="GET",{route},status="404"}}') == 1
    assert metric(local, 'deermem_http_requests_total{method="GET",route="other",status="404"}') == 1
    assert metric(local, f"deermem_http_request_seconds_count{{{route}}}") == 2


def test_each_metric_says_what_it_counts_and_none_when_it_was_made(local: Client) -> None:
    local.create("a fact")
    lines = local.get("/metrics").text.splitlines()
    told = {line.split(" ", 3)[2]: line.split(" ", 3)[3] for line in lines if line.startswith("# HELP ")}
    counters = {line.partition(" ")[0] for line in lines if line.startswith("deermem_") and "_total" in line}
    assert {"deermem_commits_total", "deermem_cache_hits_total"} <= counters
    for name, text in told.items():
        plain = name.removeprefix("deermem_").removesuffix("_total").replace("_", " ")
        assert text.rstrip(".").lower() not in (plain, "counted by the store"), name
    assert "_created" not in "".join(lines)


def test_the_store_is_counted(local: Client) -> None:
    fact_id = local.create("a fact")
    tag = local.get(f"/api/memory/facts/{fact_id}").headers["etag"]
    local.patch(f"/api/memory/facts/{fact_id}", json={"content": "changed"})
    before = metric(local, "deermem_cache_hits_total")
    local.document()
    local.document()
    assert metric(local, "deermem_cache_hits_total") >= before + 2
    assert metric(local, "deermem_commits_total") == 2
    for name in ("conflicts", "recoveries", "lock_waits", "lock_timeouts", "cache_misses"):
        assert metric(local, f"deermem_{name}_total") >= 0
    assert local.delete(f"/api/memory/facts/{fact_id}", headers={"If-Match": tag}).status_code == 409


@pytest.mark.parametrize(
    ("role", "path", "status"),
    [
        (Role.USER, "/metrics", 403),
        (Role.SERVICE, "/metrics", 200),
        (Role.ADMINISTRATOR, "/metrics", 200),
        (Role.USER, "/docs", 200),
        (Role.USER, "/openapi.json", 200),
        (None, "/metrics", 401),
        (None, "/docs", 401),
        (None, "/openapi.json", 401),
        (None, "/api/memory", 401),
        (None, "/no/such/route", 401),
    ],
)
def test_where_callers_are_known_the_pages_about_the_gateway_need_one(
    tmp_path: Path, role: Role | None, path: str, status: int
) -> None:
    auth = AuthSettings(mode=Mode.PROXY, proxy_secret=SECRET, proxy_role_header="X-Role")
    headers = {"X_Forwarded_User": "alice", "X_DeerMem_Proxy_Secret": SECRET, "X_Role": role} if role else {}
    with running(manager_at(tmp_path), auth=auth) as gateway, gateway.client(**headers) as client:
        answer = client.get(path)
        assert answer.status_code == status
        if status == 403:
            refused(answer, 403, OTHER_ROLE)


def test_the_document_of_a_gateway_with_tokens_tells_how_to_send_them(tmp_path: Path) -> None:
    from deermem.gateway.auth.token_file import TokenFile

    path = tmp_path / "tokens.json"
    token, _ = TokenFile(str(path)).create("alice", Role.USER, "2026-07-19T00:00:00Z")
    auth = AuthSettings(mode=Mode.TOKEN, token_file=str(path))
    with (
        running(manager_at(tmp_path / "store"), auth=auth) as gateway,
        gateway.client(Authorization=f"Bearer {token}") as client,
    ):
        document = body_of(client.get("/openapi.json"))
    assert document["components"]["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    assert document["paths"]["/api/memory"]["get"]["security"] == [{"bearer": []}, {"key": []}]
    assert "security" not in document["paths"]["/healthz"]["get"]
