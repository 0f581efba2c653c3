"""Files that decide about access: read anew for every request, so that a change counts at once."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from deermem.errors import InvalidInputError
from deermem.gateway.auth.caller import unavailable
from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.port import Directory, UnexpectedFileType

T = TypeVar("T")

MAX_BYTES: Final = 1_000_000
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_READ: Final = stat.S_IRGRP | stat.S_IROTH

_log = logging.getLogger(__name__)


class GuardedFile:
    """Is a file that nobody but its owner may change.

    Args:
        path: Where it is; its folder may be reached through links, the file itself must not be one.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.folder, self.name = os.path.split(self.path)
        self._disk: LocalFileSystem | None = None

    def open_folder(self) -> Directory:
        """Opens the folder of the file; links that lead to it are followed once."""
        if self._disk is None:
            self._disk = LocalFileSystem(self.folder)
        return self._disk.open_root()

    def read(self) -> bytes | None:
        """Returns the bytes; `None` if there is no such file.

        Raises:
            InvalidInputError: It is a link, no regular file, or too large.
            OSError: It is there and cannot be read.
        """
        try:
            with self.open_folder() as folder:
                return folder.read(self.name, MAX_BYTES)[0]
        except FileNotFoundError:
            return None
        except UnexpectedFileType as error:
            raise InvalidInputError(self.path, error.reason) from None

    def check_modes(self, *, secret: bool) -> None:
        """Makes sure that nobody else can change the file, and warns where others can read it.

        Windows keeps access lists instead, which are not looked at.

        Args:
            secret: Whether what others can read is worth a warning.

        Raises:
            InvalidInputError: Others may write to the file, or put another one in its place.
        """
        if os.name == "nt":
            return
        there = os.lstat(self.path)
        mode, owner = there.st_mode, there.st_uid
        if mode & _OTHERS_WRITE:
            raise InvalidInputError(self.path, "can be changed by others than its owner: chmod 600")
        folder = os.stat(self.folder).st_mode
        if folder & _OTHERS_WRITE:
            if not folder & stat.S_ISVTX:
                raise InvalidInputError(self.path, "can be replaced by others: chmod go-w its folder")
            if owner not in (0, os.geteuid()):  # anybody may have put it there while there was none
                raise InvalidInputError(self.path, f"belongs to uid {owner}, in a folder for everybody")
        if secret and mode & _OTHERS_READ:
            _log.warning("%s can be read by others than its owner: chmod 600", self.path)


class Watched(Generic[T]):
    """Is what a guarded file means at this moment.

    The bytes are read for every use and compared: modification times are too coarse on some file systems to
    tell a token that was revoked within the same tick. They are parsed only when they have changed.

    Args:
        file: The file.
        parse: Returns what bytes mean, `None` being those of a missing file; raises InvalidInputError.
        secret: Tells whether others should not read a file that means this.

    Raises:
        InvalidInputError: The file cannot be trusted as it is now.
        OSError: It cannot be read.
    """

    def __init__(
        self, file: GuardedFile, parse: Callable[[bytes | None], T], *, secret: Callable[[T], bool]
    ) -> None:
        self._file = file
        self._parse = parse
        self._secret = secret
        self._told = ""
        self._known = self._parsed(file.read())

    def current(self) -> T:
        """Returns what the file means now.

        Raises:
            AuthenticationFailed: It cannot be read or trusted. What it said before does not count any
                more, or a revocation that went wrong would leave access open.
        """
        try:
            data = self._file.read()
            known = self._known
            if data != known[0]:
                known = self._known = self._parsed(data)
        except (InvalidInputError, OSError) as error:
            self._tell(str(error))
            raise unavailable() from None
        self._told = ""
        return known[1]

    def _parsed(self, data: bytes | None) -> tuple[bytes | None, T]:
        if data is not None:
            self._file.check_modes(secret=False)
        meaning = self._parse(data)
        if data is not None and self._secret(meaning):
            self._file.check_modes(secret=True)
        return data, meaning

    def _tell(self, problem: str) -> None:
        if problem != self._told:
            self._told = problem
            _log.error("nobody can be authenticated: %s", problem)
