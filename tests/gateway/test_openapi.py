"""The gateway does what its own OpenAPI document says, whatever is sent."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deermem import MemoryRepository
from deermem.asgi.limits import LimitSettings
from deermem.gateway.auth import AuthSettings, Mode
from deermem.gateway.auth.caller import Role
from deermem.gateway.auth.token_file import TokenFile
from tests.gateway.servers import Client, body_of, manager_at, running

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
TOOL = Path(sys.executable).with_name("schemathesis")
SECONDS = 1_500


def explore(url: str, root: Path, examples: int, *options: str) -> None:
    """Lets Schemathesis send all kinds of requests, and fails with what it found."""
    done = subprocess.run(
        [
            TOOL,
            f"--config-file={CONFIGURATION}",
            "run",
            f"{url}/openapi.json",
            "--checks=all",
            f"--max-examples={examples}",
            "--generation-deterministic",
            "--no-color",
            *options,
        ],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr


def explore_without_callers(root: Path, examples: int) -> None:
    """Explores a gateway that asks nobody, and looks at its store."""
    with running(manager_at(root / "store")) as gateway:
        explore(gateway.url, root, examples)
    assert users_of(root / "store") <= {"default"}


def explore_with_tokens(root: Path, examples: int, *options: str) -> None:
    """Explores a gateway that asks for tokens, with and without one, and looks at its store."""
    path = root / "tokens.json"
    token, _ = TokenFile(str(path)).create("alice", Role.USER, "2026-07-19T00:00:00Z")
    auth = AuthSettings(mode=Mode.TOKEN, token_file=str(path))
    limits = LimitSettings(requests_per_minute=1_000_000, burst=1_000_000)
    with running(manager_at(root / "store"), auth=auth, limits=limits) as gateway:
        explore(gateway.url, root, examples, f"--header=Authorization: Bearer {token}", *options)
    assert users_of(root / "store") <= {"alice"}


def users_of(root: Path) -> set[str]:
    """Returns the buckets of a store."""
    with MemoryRepository(root) as repository:
        return set(repository.list_users())


def test_the_gateway_keeps_to_its_document(tmp_path: Path) -> None:
    explore_without_callers(tmp_path, 2)


def test_the_gateway_keeps_to_its_document_where_callers_are_known(tmp_path: Path) -> None:
    explore_with_tokens(tmp_path, 3, "--phases=fuzzing")


@pytest.mark.stress
@pytest.mark.parametrize("explore_mode", [explore_without_callers, explore_with_tokens])
def test_the_gateway_keeps_to_its_document_whatever_is_sent(
    tmp_path: Path, explore_mode: Callable[[Path, int], None]
) -> None:
    explore_mode(tmp_path, 200)


def test_the_document_names_every_route_of_the_api(local: Client) -> None:
    paths = body_of(local.get("/openapi.json"))["paths"]
    told = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert told == {
        "GET /api/memory",
        "DELETE /api/memory",
        "GET /api/memory/export",
        "POST /api/memory/reload",
        "POST /api/memory/import",
        "PATCH /api/memory/summaries",
        "GET /api/memory/config",
        "GET /api/memory/status",
        "GET /api/memory/facts",
        "POST /api/memory/facts",
        "POST /api/memory/facts/batch",
        "POST /api/memory/facts/batch-delete",
        "GET /api/memory/facts/{fact_id}",
        "PATCH /api/memory/facts/{fact_id}",
        "DELETE /api/memory/facts/{fact_id}",
        "GET /api/agents",
        "DELETE /api/agents/{name}",
        "GET /healthz",
        "GET /readyz",
    }


def test_every_route_of_a_memory_takes_an_agent(local: Client) -> None:
    for path, methods in body_of(local.get("/openapi.json"))["paths"].items():
        for operation in methods.values():
            names = {parameter["name"] for parameter in operation.get("parameters", ())}
            assert ("agent" in names) == path.startswith("/api/memory"), path


def test_each_success_is_described_in_words_of_its_own(local: Client) -> None:
    for path, methods in body_of(local.get("/openapi.json"))["paths"].items():
        for method, operation in methods.items():
            (told,) = [
                answer for status, answer in operation["responses"].items() if status in ("200", "204")
            ]
            assert told["description"] not in ("", "Successful Response"), f"{method} {path}"


def test_a_creation_tells_where_the_new_fact_is(local: Client) -> None:
    told = body_of(local.get("/openapi.json"))["paths"]["/api/memory/facts"]["post"]["responses"]["200"]
    assert list(told["headers"]) == ["Location"]


def test_the_page_for_a_reader_shows_code_as_code(local: Client) -> None:
    page = local.get("/docs").text
    assert "<code>nextCursor</code>" in page
    assert "`" not in page


def test_the_document_is_the_same_every_time(local: Client) -> None:
    first = json.dumps(body_of(local.get("/openapi.json")))
    assert json.dumps(body_of(local.get("/openapi.json"))) == first


def test_no_request_changes_what_the_process_warns_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework does so while it builds routes; gateways in other threads would get its setting."""
    changed_by: list[str] = []
    original = warnings.catch_warnings.__enter__

    def enter(context: warnings.catch_warnings[Any]) -> object:
        changed_by.append(threading.current_thread().name)
        return original(context)

    with running(manager_at(tmp_path)) as gateway, gateway.client() as client, monkeypatch.context() as patch:
        patch.setattr(warnings.catch_warnings, "__enter__", enter)
        for path, operations in body_of(client.get("/openapi.json"))["paths"].items():
            for method in operations:
                assert client.request(method, path).status_code < 500
    assert not changed_by


def test_a_path_that_knows_other_methods_names_them(local: Client) -> None:
    answer = local.put("/api/memory/facts/f", json={})
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, PATCH")
    answer = local.request("OPTIONS", "/api/memory/facts/batch")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
