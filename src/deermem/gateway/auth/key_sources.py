"""Where the keys of JWTs come from: a file, or an https address that is asked in the background.

A request never waits for the network. Keys that were fetched serve while newer ones are on their way, for
`HARD_AGE` at most; a `kid` that nobody knows makes the source ask again, though not more often than every
`COOLDOWN`, since anybody may send one.
"""

from __future__ import annotations

import logging
import ssl
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Final, Protocol
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request

from deermem.gateway.auth.caller import unavailable
from deermem.gateway.auth.files import GuardedFile, Watched
from deermem.gateway.auth.jwks import KeySet, parse_keys
from deermem.gateway.auth.settings import check_https

LIFESPAN: Final = 300.0
HARD_AGE: Final = 3_600.0
COOLDOWN: Final = 10.0
TIMEOUT: Final = 5.0
MAX_SET_BYTES: Final = 262_144

_log = logging.getLogger(__name__)


class KeySource(Protocol):
    """Has the keys of this moment."""

    def current(self) -> KeySet:
        """Returns the keys.

        Raises:
            AuthenticationFailed: There are none that can be trusted.
        """
        ...

    def miss(self) -> None:
        """Is told of a `kid` that the keys do not have."""
        ...


class KeyFile:
    """Has keys in a file, read anew for each use.

    Args:
        path: Where it is.

    Raises:
        InvalidInputError: The file is missing, not a key set, or others can change it.
    """

    def __init__(self, path: str) -> None:
        file = GuardedFile(path)
        self._watched: Watched[KeySet] = Watched(
            file, lambda data: parse_keys(data, file.path, fetched=False), secret=lambda keys: keys.has_secret
        )

    def current(self) -> KeySet:
        """Returns what the file says now."""
        return self._watched.current()

    def miss(self) -> None:
        """Does nothing: the file was read for this very request."""


class FetchedKeys:
    """Has keys that somebody else publishes; the first are fetched at once, if they can be had.

    Args:
        where: The address, for messages.
        fetch: Returns the bytes of the key set; raises OSError.
        clock: Returns seconds that only go forward.
        begin: Runs a call in the background.
    """

    def __init__(
        self,
        where: str,
        fetch: Callable[[], bytes],
        *,
        clock: Callable[[], float] = time.monotonic,
        begin: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._where = where
        self._fetch = fetch
        self._clock = clock
        self._begin = begin or _in_background
        self._known: tuple[KeySet, float] | None = None
        self._asked = clock()
        self._guard = threading.Lock()
        self._under_way = True
        self._ask()

    def current(self) -> KeySet:
        """Returns the keys that were fetched last, and has newer ones fetched if they are old."""
        known = self._known
        age = HARD_AGE if known is None else self._clock() - known[1]
        if age >= LIFESPAN:
            self._refresh()
        if known is None or age >= HARD_AGE:
            raise unavailable()
        return known[0]

    def miss(self) -> None:
        """Has newer keys fetched, if that has not just been tried."""
        self._refresh()

    def _refresh(self) -> None:
        with self._guard:
            if self._under_way or self._clock() - self._asked < COOLDOWN:
                return
            self._under_way = True
            self._asked = self._clock()
        self._begin(self._ask)

    def _ask(self) -> None:
        began = self._clock()
        try:
            keys = parse_keys(self._fetch(), self._where, fetched=True)
        except (OSError, HTTPException, ValueError) as error:
            _log.warning("no new keys from %s: %s", self._where, error)
        else:
            self._known = keys, began
        finally:
            self._under_way = False


def fetcher(url: str, ca_file: str = "", timeout: float = TIMEOUT) -> Callable[[], bytes]:
    """Returns what fetches a key set over https: no other scheme, no redirects, and bounded.

    Args:
        url: The address.
        ca_file: Certificates to trust; empty for the system's.
        timeout: How many seconds all of it may take.

    Raises:
        InvalidInputError: The address is not https.
        OSError: The certificates cannot be read.
    """
    check_https(url)
    context = ssl.create_default_context(cafile=ca_file or None)
    # The usual opener also follows redirects, and reads http, ftp and files.
    opener = OpenerDirector()
    opener.add_handler(ProxyHandler())
    opener.add_handler(HTTPSHandler(context=context))

    def fetch() -> bytes:
        deadline = time.monotonic() + timeout
        request = Request(url, headers={"Accept": "application/json", "User-Agent": "deermem"})  # noqa: S310 - https
        with opener.open(request, timeout=timeout) as answer:
            if answer.status != 200:
                raise OSError(f"status {answer.status}")
            parts, size = [], 0
            while part := answer.read1(65_536):
                parts.append(part)
                size += len(part)
                if size > MAX_SET_BYTES:
                    raise OSError(f"more than {MAX_SET_BYTES:,} bytes")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"not complete within {timeout} s")
        return b"".join(parts)

    return fetch


def _in_background(call: Callable[[], None]) -> None:
    threading.Thread(target=call, name="deermem-keys", daemon=True).start()
