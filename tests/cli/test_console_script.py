"""The console script as a process: its streams, signals and imports."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

SCRIPT = [str(Path(sys.executable).with_name("deermem"))]
MODULE = [sys.executable, "-m", "deermem"]
POSIX = pytest.mark.skipif(os.name == "nt", reason="shells and signals of POSIX")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DEERMEM_")}
    return {**kept, "DEERMEM_DATA_DIR": str(tmp_path / "store")}


def run(
    command: Sequence[str | bytes], environment: Mapping[str, str], **options: object
) -> subprocess.CompletedProcess[bytes]:
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(command, env=environment, check=False, timeout=60, **settings)  # type: ignore[call-overload,no-any-return]  # mypy cannot see into the dictionary


def shell(script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return run(["bash", "-c", f"set -o pipefail\n{script}", "bash", *SCRIPT], environment)


@pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["script", "module"])
def test_the_version_is_that_of_the_package(command: list[str], environment: dict[str, str]) -> None:
    done = run([*command, "--version"], environment)
    assert (done.returncode, done.stdout.decode().strip()) == (0, f"deermem {version('deermem')}")


def test_exit_codes_reach_the_shell(environment: dict[str, str]) -> None:
    done = run([*SCRIPT, "get", "fact_absent"], environment)
    assert done.returncode == 3
    assert done.stderr.startswith(b"Error: ")


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252:strict"},
    ],
    ids=str,
)
def test_output_is_utf_8_whatever_the_locale_says(
    environment: dict[str, str], locale: dict[str, str]
) -> None:
    environment |= locale
    added = run([*SCRIPT, "add", "-", "--id", "fact_1"], environment, stdin=None, input="é 喜 😀".encode())
    assert (added.returncode, added.stderr) == (0, b"")
    done = run([*SCRIPT, "get", "fact_1", "--json"], environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "é 喜 😀" in done.stdout.decode("utf-8")


@POSIX
@pytest.mark.parametrize(
    "arguments", [[b"add", b"\xff"], [b"list", b"--x\xff"], [b"get", b"\xff"], [b"\xff"]], ids=str
)
def test_an_argument_that_is_no_utf_8_is_refused_without_failing(
    environment: dict[str, str], arguments: list[bytes]
) -> None:
    done = run([*SCRIPT, *arguments], environment)
    assert done.returncode == 2
    assert done.stderr.startswith(b"Error: ")
    assert b"Traceback" not in done.stderr


@POSIX
def test_a_path_that_is_no_utf_8_is_told_in_valid_json(environment: dict[str, str]) -> None:
    done = run([*SCRIPT, "path", "--storage-path", b"/nowhere/\xff", "--json"], environment)
    assert (done.returncode, done.stdout) == (0, b'{\n  "path": "/nowhere/\\udcff"\n}\n')


@POSIX
def test_a_reader_that_goes_away_is_no_error(environment: dict[str, str]) -> None:
    added = run([*SCRIPT, "add", "-", "--id", "fact_1"], environment, stdin=None, input=b"x" * 900_000)
    assert added.returncode == 0
    for command in ("get fact_1", "get fact_1 --json", "--help", "list --help"):
        done = shell(f'"$1" {command} | true; echo "${{PIPESTATUS[0]}}"', environment)
        assert (done.stdout, done.stderr) == (b"0\n", b""), command


@POSIX
def test_a_closed_stream_is_no_error(environment: dict[str, str]) -> None:
    assert shell('"$1" add x --id fact_1 >&-', environment).returncode == 0
    assert shell('"$1" list >&- 2>&-', environment).returncode == 0
    assert shell('"$1" get fact_absent 2>&-', environment).returncode == 3
    refused = shell('"$1" add - <&-', environment)
    assert refused.returncode == 2
    assert b"standard input is closed" in refused.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("form", ["", "--json"])
def test_a_result_that_cannot_be_written_is_reported(environment: dict[str, str], form: str) -> None:
    failed = shell(f'"$1" add x --id fact_1 {form} >/dev/full', environment)
    assert failed.returncode == 1
    assert failed.stderr.decode().splitlines() == [
        "Error: No space left on device: standard output",
        "Hint: what the command did stays done",
    ]
    assert shell('"$1" get fact_1', environment).returncode == 0
    assert shell('"$1" get fact_absent 2>/dev/full', environment).returncode == 3


@POSIX
def test_without_a_home_directory_the_storage_path_must_be_given(environment: dict[str, str]) -> None:
    del environment["DEERMEM_DATA_DIR"]
    environment["HOME"] = ""
    refused = run([*SCRIPT, "path"], environment)
    assert refused.returncode == 2
    assert b"no home directory is known" in refused.stderr
    assert run([*SCRIPT, "path", "--storage-path", "/x"], environment).stdout == b"/x\n"


@POSIX
def test_an_interrupt_ends_a_command_with_130(environment: dict[str, str]) -> None:
    reading = subprocess.Popen(
        [*SCRIPT, "add", "-"], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert reading.stdin is not None
    reading.stdin.write(b"x" * 200_000)  # more than a pipe holds: once it is written, the command reads
    reading.send_signal(signal.SIGINT)
    _, errors = reading.communicate(timeout=30)
    assert (reading.returncode, errors) == (130, b"Error: interrupted\n")


def test_without_typer_there_is_one_sentence(environment: dict[str, str]) -> None:
    script = "import sys; sys.modules['typer'] = None; from deermem.cli import main; main()"
    failed = run([sys.executable, "-c", script], environment)
    assert failed.returncode == 1
    assert (
        failed.stderr.decode().strip() == 'The command line needs Typer and Rich: pip install "deermem[cli]"'
    )


def test_another_missing_module_is_not_blamed_on_typer(environment: dict[str, str]) -> None:
    script = "import sys; sys.modules['errno'] = None; from deermem.cli import main; main()"
    failed = run([sys.executable, "-c", script], environment)
    assert failed.returncode == 1
    assert b"errno" in failed.stderr
    assert b"Typer" not in failed.stderr


def test_help_imports_no_store_and_nothing_that_draws(environment: dict[str, str]) -> None:
    script = textwrap.dedent(
        """
        import sys
        from deermem.cli.run import run
        own = set(sys.modules)
        code = run(["--help"])
        late = set(sys.modules) - own
        unwanted = {"fastapi", "starlette", "uvicorn", "mcp", "langgraph", "rich.console", "yaml"}
        print(code, sorted(unwanted & set(sys.modules)), sorted(name for name in late if "deermem" in name))
        """
    )
    done = run([sys.executable, "-c", script], environment)
    assert done.stdout.decode().splitlines()[-1] == "0 [] []"


@POSIX
def test_the_help_of_a_terminal_is_drawn_and_on_a_dumb_one_plain(environment: dict[str, str]) -> None:
    environment |= {"TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    assert b"\x1b[" in in_terminal([*SCRIPT, "--help"], environment)
    assert not re.search(
        rb"\x1b\[[0-9;]*3[0-7]", in_terminal([*SCRIPT, "--help"], {**environment, "NO_COLOR": "1"})
    )
    plain = in_terminal([*SCRIPT, "--help"], {**environment, "TERM": "dumb"})
    assert b"Usage: deermem" in plain
    assert b"\x1b" not in plain


def in_terminal(command: list[str], environment: Mapping[str, str]) -> bytes:
    """Returns what a command prints on a terminal."""
    import pty

    controller, terminal = pty.openpty()
    with subprocess.Popen(
        command, env=environment, stdout=terminal, stderr=terminal, stdin=terminal
    ) as process:
        os.close(terminal)
        printed = b""
        while True:
            try:
                part = os.read(controller, 65_536)
            except OSError:  # Linux says so when the other side is gone
                break
            if not part:
                break
            printed += part
        process.wait(timeout=60)
    os.close(controller)
    return printed
