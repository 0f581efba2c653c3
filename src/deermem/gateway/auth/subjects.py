"""From an authenticated subject to the user whose memory it opens: no two subjects to one bucket."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from deermem.errors import InvalidInputError
from deermem.gateway.auth.caller import (
    NO_SUCH_USER,
    OTHER_ROLE,
    AuthenticationFailed,
    Caller,
    Connection,
    Role,
)
from deermem.gateway.auth.headers import name_of
from deermem.model.identity import MAX_USER_ID, is_bucket_name, looks_encoded, safe_user_id

USER_HEADER: Final = "X-DeerMem-User"
BUCKET_HEADER: Final = "X-DeerMem-Bucket"
ACTING_HEADERS: Final = (USER_HEADER, BUCKET_HEADER)


def user_id_of(subject: str) -> str:
    """Returns the user id that a subject has in the store.

    The store takes an id that looks encoded for the name of a bucket, so a subject that looks like that is
    encoded here: nobody can call themselves `bob-x-com-` and the digest of `bob@x.com` and be `bob@x.com`.
    Two subjects have different buckets as long as nobody finds a text with a given 64-bit digest.

    Raises:
        InvalidInputError: The subject is empty, too long, or no text that UTF-8 can hold.
    """
    if len(subject) > MAX_USER_ID:
        raise InvalidInputError("user_id", f"is longer than {MAX_USER_ID} characters")
    safe_user_id(subject)
    return f"{subject}-{sha256(subject.encode()).hexdigest()[:16]}" if looks_encoded(subject) else subject


def identified(request: Connection, subject: str, role: Role) -> Caller:
    """Returns the caller for proven credentials, with the user that the request acts for.

    Raises:
        AuthenticationFailed: The subject cannot have a memory, or the role may not act for another.
    """
    user = name_of(request, USER_HEADER)
    bucket = name_of(request, BUCKET_HEADER)
    if (bucket is not None and role is not Role.ADMINISTRATOR) or (user is not None and role is Role.USER):
        raise AuthenticationFailed(403, OTHER_ROLE)
    if bucket is not None:
        if user is not None or not is_bucket_name(bucket):
            raise AuthenticationFailed(400, f"The header {BUCKET_HEADER} is not valid.")
        return Caller(subject, role, bucket)
    try:
        return Caller(subject, role, user_id_of(subject if user is None else user))
    except InvalidInputError:
        raise AuthenticationFailed(403, NO_SUCH_USER) from None
