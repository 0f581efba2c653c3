"""Runs the image's command as a container engine would: not as root, with a read-only root and a volume.

There is no engine here. The kernel's own means do what one would do: the process is number 1 of a namespace,
its root has the directories of this Python and of the repository, read-only, or is that of an unpacked image
(`DEERMEM_IMAGE_ROOT`), and only the volume and `/tmp` can be written.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.packaging.dockerfile import REPOSITORY, stages

IMAGE = stages()[-1]
USER = IMAGE.one("USER").rest
UNPACKED = os.environ.get("DEERMEM_IMAGE_ROOT", "")

# $1 is an empty directory, $2 the volume, $3 how it is mounted, $4 the secrets; the rest is the command.
_SCRIPT = """
set -e
root=$1 volume=$2 how=$3 secrets=$4; shift 4
mount -t tmpfs -o mode=755 tmpfs "$root"
mirror() { mkdir -p "$root$1"; mount --bind "$1" "$root$1"; mount -o remount,bind,ro "$root$1"; }
if [ -n "$UNPACKED" ]; then
    mkdir "$root/image"; mount --bind "$UNPACKED" "$root/image"; root=$root/image
else
    for each in $MIRRORED; do mirror "$each"; done
    mkdir -p "$root/data" "$root/tmp" "$root/proc" "$root/run/secrets" "$root/dev"
    touch "$root/dev/null" "$root/dev/urandom"
fi
for each in null urandom; do touch "$root/dev/$each"; mount --bind "/dev/$each" "$root/dev/$each"; done
mount --bind "$volume" "$root/data"; mount -o "remount,bind,$how" "$root/data"
mkdir -p "$root/run/secrets"; mount --bind "$secrets" "$root/run/secrets"
mount -o remount,bind,ro "$root/run/secrets"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root" 2>/dev/null || mount -o remount,ro "$root"
exec chroot --userspec="$USERSPEC" --groups= "$root" "$@"
"""


def mirrored() -> list[str]:
    """Returns the directories that this Python needs, each once."""
    wanted = ["/usr", "/bin", "/lib", "/lib64", "/etc", sys.base_prefix, sys.prefix, str(REPOSITORY)]
    kept: list[str] = []
    for path in sorted({path for path in wanted if Path(path).exists()}, key=len):
        if not any(path.startswith(f"{each}/") for each in kept):
            kept.append(path)
    return kept


@dataclass(slots=True)
class Container:
    """A container that has not been started: its volume and what is said to it.

    Args:
        folder: Empty, for what is mounted.
        uid: Whose the volume is.
        variables: Settings, beside those of the image.
        mounted: `rw`, or `ro` for a volume that cannot be written.
    """

    folder: Path
    uid: int
    variables: dict[str, str] = field(default_factory=dict)
    mounted: str = "rw"

    def __post_init__(self) -> None:
        for each in (self.folder, self.volume, self.secrets, self.folder / "root"):
            each.mkdir(exist_ok=True)
        self.own(self.uid)

    @property
    def volume(self) -> Path:
        """The volume, as the host sees it."""
        return self.folder / "volume"

    @property
    def secrets(self) -> Path:
        """What is mounted at `/run/secrets`."""
        return self.folder / "secrets"

    def own(self, uid: int) -> None:
        """Gives the volume to a uid, with all that is in it."""
        self.uid = uid
        for path in (self.volume, *self.volume.rglob("*")):
            os.chown(path, uid, uid)
        self.volume.chmod(0o700)

    def start(self, *arguments: str, entry: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Starts a command of `deermem`, or another program; without arguments what the image starts."""
        entry = entry or self._python("-m", *IMAGE.one("ENTRYPOINT").command)
        rest = list(arguments) or IMAGE.one("CMD").command
        environment = {**IMAGE.environment, "PATH": self._path(), **self.variables}
        if not UNPACKED:
            environment["PYTHONPATH"] = str(REPOSITORY / "src")
        settings = [f"{name}={value}" for name, value in environment.items()]
        places = [str(self.folder / "root"), str(self.volume), self.mounted, str(self.secrets)]
        command = ["sh", "-c", _SCRIPT, "container", *places, "env", "-i", *settings, *entry, *rest]
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", *command],
            env={
                **os.environ,
                "USERSPEC": USER,
                "UNPACKED": UNPACKED,
                "MIRRORED": shlex.join(mirrored()),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs a command in a container of its own, with the same volume."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()  # and what it runs, if it has not come to its end
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def health(self) -> subprocess.CompletedProcess[str]:
        """Runs the health check of the image."""
        command = IMAGE.one("HEALTHCHECK").command
        return self.run(*command[1:], entry=self._python())

    def _python(self, *arguments: str) -> tuple[str, ...]:
        return ("python" if UNPACKED else sys.executable, *arguments)

    def _path(self) -> str:
        return (
            f"{'/opt/deermem/bin' if UNPACKED else Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        )


def stop(process: subprocess.Popen[str]) -> int:
    """Sends the image's stop signal to process 1 of the container, and returns the exit code."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()
    os.kill(int(children[0]), getattr(signal, IMAGE.one("STOPSIGNAL").rest))
    return process.wait(timeout=30)
