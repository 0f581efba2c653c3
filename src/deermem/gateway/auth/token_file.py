"""The file of tokens as it is changed: one writer at a time, whole files only, durable before it counts."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TypeVar

from deermem.errors import InvalidInputError, LockTimeout
from deermem.gateway.auth.caller import Role
from deermem.gateway.auth.files import MAX_BYTES, GuardedFile
from deermem.gateway.auth.subjects import user_id_of
from deermem.gateway.auth.token_list import (
    MAX_NOTE,
    TokenEntry,
    TokenList,
    hash_of,
    parse_tokens,
    token_of,
)
from deermem.storage.filesystem import LocalFileSystem
from deermem.storage.port import Directory

T = TypeVar("T")

DEFAULT_PATIENCE: Final = 10.0


class TokenFile:
    """Is the list of tokens on the disk; made with mode 0600 by the first token.

    Args:
        path: Where it is.
        patience: How many seconds to wait while another process changes it.
    """

    def __init__(self, path: str, patience: float = DEFAULT_PATIENCE) -> None:
        self.file = GuardedFile(path)
        self._patience = patience

    def read(self) -> TokenList:
        """Returns the list as it is now.

        Raises:
            InvalidInputError: The file is not a list of tokens, or others can change it.
        """
        data = self.file.read()
        if data is not None:
            self.file.check_modes(secret=True)
        return parse_tokens(data, self.file.path)

    def create(self, user: str, role: Role, created: str, note: str = "") -> tuple[str, TokenEntry]:
        """Makes a token; returns it with what is kept of it. It cannot be had a second time.

        Args:
            user: Whose it is, by the raw id.
            role: What it allows.
            created: The time.
            note: What it is for.

        Raises:
            InvalidInputError: The user cannot have a memory, or the note or the list is too long.
            LockTimeout: Another process changes the file.
        """
        user_id_of(user)
        if len(note) > MAX_NOTE or not (note.isprintable() or not note):
            raise InvalidInputError("note", f"must be printable, and at most {MAX_NOTE} characters")

        def add(tokens: TokenList) -> tuple[TokenList, tuple[str, TokenEntry]]:
            token_id = secrets.token_hex(8)
            token = token_of(token_id, secrets.token_hex(32))
            entry = TokenEntry(token_id, hash_of(token), user, role, created, note)
            return tokens.with_entry(entry), (token, entry)

        return self._change(add)

    def revoke(self, token_ids: Iterable[str]) -> tuple[TokenEntry, ...]:
        """Takes tokens off the list; no request that begins after this is let in by them.

        Returns:
            What was known of them; ids that are not in the list are left out.

        Raises:
            LockTimeout: Another process changes the file.
        """
        wanted = frozenset(token_ids)

        def remove(tokens: TokenList) -> tuple[TokenList, tuple[TokenEntry, ...]]:
            gone = tuple(entry for entry in tokens.entries.values() if entry.id in wanted)
            return tokens.without(wanted), gone

        return self._change(remove)

    def _change(self, change: Callable[[TokenList], tuple[TokenList, T]]) -> T:
        LocalFileSystem(self.file.folder).make_root()
        self._check_owner()
        with self.file.open_folder() as folder:
            lock = folder.lock_file(f"{self.file.name}.lock")
            try:
                if not lock.acquire(self._patience):
                    raise LockTimeout(f"{self.file.path}.lock", self._patience, lock.holder())
                before = self.read()
                after, result = change(before)
                if after != before:
                    self._replace(folder, after.dump())
            finally:
                lock.close()
        return result

    def _replace(self, folder: Directory, data: bytes) -> None:
        if len(data) > MAX_BYTES:
            raise InvalidInputError(self.file.path, f"would be larger than {MAX_BYTES:,} bytes")
        # One name is enough under the lock, and nothing piles up where a process dies.
        new = f"{self.file.name}.new"
        with suppress(FileNotFoundError):
            folder.unlink(new)
        folder.create(new, data)
        folder.rename(new, folder, self.file.name)
        folder.sync()

    def _check_owner(self) -> None:
        """Refuses to make a file that the gateway could not read, as root would for a service's user."""
        if os.name == "nt":
            return
        there = self.file.path if os.path.lexists(self.file.path) else self.file.folder
        owner = os.lstat(there).st_uid
        if owner != os.geteuid():
            raise InvalidInputError(self.file.path, f"belongs to uid {owner}: run this as that user")
