"""What all commands share that serve memories to other programs: settings, the log, and where they listen."""

from __future__ import annotations

import errno
import logging
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

from deermem.cli.exits import CannotListen
from deermem.cli.options import StoreOptions
from deermem.cli.output import one_line
from deermem.cli.settings_file import told_by_file

if TYPE_CHECKING:
    from deermem.config import DeerMemConfig

_LOG_LINE: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_OF_SOCKETS: Final = frozenset([errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES])


class _OneLine(logging.Formatter):
    """Writes each record as one line, whatever the name of a user has in it; a traceback has its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in the standard library
        return one_line(super().formatMessage(record))


def log_to_standard_error(*quiet: str) -> None:
    """Begins a log on standard error; loggers that are `quiet` tell no more than warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(_LOG_LINE))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    for name in quiet:
        logging.getLogger(name).setLevel(logging.WARNING)


def memory_settings(options: StoreOptions, path: str | None) -> DeerMemConfig:
    """Reads the settings of the memory: options win over variables, and those over the file."""
    from deermem.asgi.naming import told_by_variable
    from deermem.config import DeerMemConfig

    variables = {each.name: f"DEERMEM_{each.name.upper()}" for each in fields(DeerMemConfig)}
    with (
        told_by_file(path),
        told_by_variable("", {name: each for name, each in variables.items() if os.environ.get(each)}),
    ):
        memory = DeerMemConfig.load(path)
    if options.storage_path is not None:
        memory = replace(memory, storage_path=options.storage_root)
    return memory


def note_missing_tokens(options: StoreOptions, token_file: str) -> None:
    """Tells who starts a server that lets nobody in how to change that: it may look for tokens elsewhere."""
    from deermem.gateway.auth.token_file import TokenFile

    path = os.path.abspath(token_file)
    if not TokenFile(path).read().entries:
        options.out.note(f"There are no tokens in {path}: every request will be refused.")
        options.out.hint(f"`deermem token create --token-file {shlex.quote(path)}` makes one")


@contextmanager
def listening_on(host: str, port: int) -> Iterator[None]:
    """Tells an error of the socket, inside, from those of the store.

    Raises:
        CannotListen: The address cannot be had.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_SOCKETS and not isinstance(error, socket.gaierror):
            raise
        raise CannotListen(error.errno, error.strerror, f"{host}:{port}") from None
