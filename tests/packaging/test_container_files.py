"""The Dockerfile and the compose file: what they promise, read from them."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deermem.config import DeerMemConfig, parse_environment
from tests.packaging.dockerfile import REPOSITORY, Stage, stages

COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "compose.yaml").read_text("utf-8"))
GATEWAY: dict[str, Any] = COMPOSE["services"]["gateway"]
STAGES = stages()
IMAGE = STAGES[-1]


def program(name: str) -> str:
    """Returns a program that was installed with this Python, or skips."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"needs {name}, which is not installed")


def test_the_linter_has_nothing_to_say() -> None:
    command = [program("hadolint"), "--no-color", "Dockerfile"]
    linted = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, "")


def test_the_linter_finds_a_planted_fault(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN pip install deermem\n", "utf-8")
    command = [program("hadolint"), "--no-color", str(tmp_path / "Dockerfile")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("stage", STAGES, ids=lambda each: each.base)
def test_every_base_is_slim_and_pinned_by_its_tag(stage: Stage) -> None:
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+( AS \w+)?", stage.base)


def test_everything_is_installed_from_a_hashed_lock_or_from_the_source() -> None:
    installs = [
        line
        for stage in STAGES
        for run in stage.all("RUN")
        for line in run.rest.split("&&")
        if "pip install" in line
    ]
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-index" in each for each in installs)


def test_what_the_dockerfile_copies_is_there_and_is_sent_to_the_builder() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines()
    sent = [line[1:] for line in lines if line.startswith("!")]
    sources = [
        source
        for stage in STAGES
        for copy in stage.all("COPY")
        if "--from" not in copy.rest
        for source in copy.rest.split()[:-1]
    ]
    assert sorted(sources) == sorted(sent)
    assert [each for each in sources if not (REPOSITORY / each).exists()] == []
    assert not any(fnmatch.fnmatch(".git", each) for each in sent)


def test_the_process_is_started_without_a_shell_and_not_as_root() -> None:
    user, _, group = IMAGE.one("USER").rest.partition(":")
    assert int(user) == int(group) > 1_000
    assert IMAGE.one("ENTRYPOINT").command == ["deermem"]
    assert IMAGE.one("CMD").command == ["serve"]
    assert IMAGE.one("HEALTHCHECK").command == ["python", "-m", "deermem.gateway.health"]
    assert IMAGE.one("STOPSIGNAL").rest == "SIGTERM"
    assert IMAGE.instructions.index(IMAGE.one("USER")) < IMAGE.instructions.index(IMAGE.one("VOLUME"))


def test_the_settings_of_the_image_mean_its_volume_its_port_and_its_time_to_stop() -> None:
    pytest.importorskip("uvicorn")
    from deermem.gateway.settings import GatewaySettings

    settings = GatewaySettings.load({}, IMAGE.environment)
    volume = IMAGE.one("VOLUME").rest
    assert parse_environment(IMAGE.environment, None).storage_path() == volume
    assert DeerMemConfig.load(None, IMAGE.environment).storage_path == ""
    assert (settings.host, f"{settings.port}") == ("0.0.0.0", IMAGE.one("EXPOSE").rest)  # noqa: S104
    assert settings.shutdown_seconds < 10, "an engine kills after 10 s, unless it is told otherwise"


def test_the_compose_file_leaves_the_container_no_right_that_it_does_not_need() -> None:
    assert GATEWAY["read_only"] is True
    assert GATEWAY["cap_drop"] == ["ALL"]
    assert GATEWAY["security_opt"] == ["no-new-privileges:true"]
    assert [each.split(":")[0] for each in GATEWAY["tmpfs"]] == ["/tmp"]  # noqa: S108 - inside the container
    assert "privileged" not in GATEWAY
    assert set(GATEWAY["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert all(port.startswith("127.0.0.1:") for port in GATEWAY["ports"])


def test_the_compose_file_mounts_a_named_volume_where_the_image_stores() -> None:
    names = {volume.partition(":")[0]: volume.partition(":")[2] for volume in GATEWAY["volumes"]}
    assert names == {"memory": IMAGE.one("VOLUME").rest}
    assert list(COMPOSE["volumes"]) == ["memory"]


def test_the_compose_file_asks_for_health_as_the_image_does_and_waits_longer_than_a_stop_takes() -> None:
    assert GATEWAY["healthcheck"]["test"] == ["CMD", *IMAGE.one("HEALTHCHECK").command]
    grace = int(GATEWAY["stop_grace_period"].removesuffix("s"))
    assert grace > int(IMAGE.environment["DEERMEM_GATEWAY_SHUTDOWN_SECONDS"]) + 10


def test_the_compose_file_needs_a_way_to_know_callers() -> None:
    assert GATEWAY["environment"] == {"DEERMEM_AUTH_MODE": "${DEERMEM_AUTH_MODE:-token}"}


@pytest.mark.skipif(not os.environ.get("COMPOSE"), reason="needs COMPOSE, a command such as `docker compose`")
def test_the_compose_file_is_one_for_the_engine() -> None:
    command = [*os.environ["COMPOSE"].split(), "config", "--quiet"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
