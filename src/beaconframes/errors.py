"""The errors of beaconframes: one family, so that one ``except`` catches all of it.

::

    BeaconframesError
    ├── UsageError          bad input, found here: nothing was sent            (also ValueError)
    │   ├── ConfigError     a setting, an address or a key that cannot work
    │   └── RequestLimitExceeded       the call takes more requests than ``max_requests``
    ├── ServiceError        the service was asked and did not give the answer
    │   ├── ConnectionFailed    nobody answered, or the line was cut           retryable
    │   ├── RequestTimeout            no complete answer within the deadline         retryable
    │   ├── RateLimited         429, with retry_after                          retryable
    │   │   └── QuotaSpent      the hour's or month's allowance is used up
    │   ├── Unauthorized        the key is missing, wrong or no longer active
    │   ├── TierTooLow          the key's plan does not include this
    │   │   └── TooManyIdentifiers  ... so many validators in one request
    │   ├── BadRequest          the service refused what was asked
    │   ├── NotFound            the thing asked for does not exist
    │   ├── NotServed           this service does not have the endpoint
    │   ├── ServerError         5xx, or an error where data should be          retryable
    │   └── ChallengePage       a bot check in front of the service answered
    ├── ResponseError         an answer came, and it cannot be trusted
    │   ├── ProtocolError       not JSON, not the envelope, too large          retryable
    │   ├── SchemaError         a field has a value its column cannot hold
    │   ├── PaginationError     the pages do not come to an end
    │   ├── IntegrityError      foreign, contradicting or impossibly missing rows
    │   ├── SnapshotMoved       what was being read slid away while reading
    │   ├── WindowMoved         pages of one call are of different windows     (also UserWarning)
    │   └── MissingRows         rows that did not come back                    (also UserWarning)
    ├── EndpointDeprecated    the service announced the end of an endpoint (also UserWarning)
    └── DatasetError        files at rest: damaged, foreign or unwritable
        ├── DatasetBusy         perhaps sound, but not to be used now              retryable
        └── StoreUnavailable    the store cannot be used; loads go on      (also UserWarning)

Every error carries facts, not only text: ``category``, ``endpoint``, ``hint``, ``retryable``
and ``retry_after``. None carries a key, a URL query or a header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from beaconframes.text import visible

if TYPE_CHECKING:
    import polars as pl


class BeaconframesError(Exception):
    """Anything that beaconframes raises on purpose."""

    category: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        endpoint: str | None = None,
        retry_after: float | None = None,
        attempts: int | None = None,
    ) -> None:
        """Say what happened in *message* and what to do about it in *hint*."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.endpoint = endpoint
        self.retry_after = retry_after
        self.attempts = attempts

    def __str__(self) -> str:
        """Return the whole story in a few words: where, what, how often, what to do."""
        text = f"{self.endpoint}: {self.message}" if self.endpoint else self.message
        if self.attempts and self.attempts > 1:
            text += f" (after {self.attempts} attempts)"
        # It may quote what a stranger wrote, and is shown in terminals.
        return visible(f"{text}. {self.hint}" if self.hint else text)


class UsageError(BeaconframesError, ValueError):
    """An argument that cannot work; found before anything was sent."""

    category = "usage"


class ConfigError(UsageError):
    """A setting, an address or a key that cannot work."""

    category = "configuration"


class RequestLimitExceeded(UsageError):
    """A call that takes more requests than ``max_requests`` permits."""

    category = "cost"


class ServiceError(BeaconframesError):
    """The service was asked and did not give the answer."""

    category = "service"


class ConnectionFailed(ServiceError):
    """Nobody answered at the address, or the line was cut."""

    category = "connection"
    retryable = True


class RequestTimeout(ServiceError):
    """No complete answer within the deadline."""

    category = "timeout"
    retryable = True


class RateLimited(ServiceError):
    """Too many requests; ``retry_after`` says in how many seconds to come back."""

    category = "rate limit"
    retryable = True


class QuotaSpent(RateLimited):
    """The allowance of the hour or month is used up: waiting inside a call will not help."""

    category = "quota"
    retryable = False


class Unauthorized(ServiceError):
    """The key is missing, wrong or no longer active."""

    category = "authentication"


class TierTooLow(ServiceError):
    """The key's plan does not include this endpoint or selector."""

    category = "tier"


class TooManyIdentifiers(TierTooLow):
    """The key's plan does not allow so many validators in one request."""


class BadRequest(ServiceError):
    """The service refused what was asked."""

    category = "bad request"


class NotFound(ServiceError):
    """The thing asked for does not exist."""

    category = "not found"


class NotServed(ServiceError):
    """This service does not have the endpoint."""

    category = "not served"


class ServerError(ServiceError):
    """The service failed: a 5xx status, or an error where the data should be."""

    category = "server fault"
    retryable = True


class ChallengePage(ServiceError):
    """A bot check in front of the service answered instead of the service."""

    category = "challenge page"


class ResponseError(BeaconframesError):
    """An answer came, and it cannot be trusted."""

    category = "answer"


class ProtocolError(ResponseError):
    """The answer is not JSON, has not the envelope of the API, or is too large."""

    category = "protocol"
    retryable = True


class SchemaError(ResponseError):
    """A field has a value that its column cannot hold; names table, row, field and value."""

    category = "schema"


class PaginationError(ResponseError):
    """The pages of an answer do not come to an end."""

    category = "pagination"


class IntegrityError(ResponseError):
    """Rows that nobody asked for, rows that contradict each other, or a hole between final rows.

    Of a hole, ``missing`` is a frame that names all that did not come back, and ``rows`` is the
    frame that did: as the loader would have returned it.
    """

    category = "integrity"
    missing: pl.DataFrame | None = None
    rows: Any = None


class SnapshotMoved(ResponseError):
    """What was being read slid out of the service's window while it was read."""

    category = "snapshot moved"


class WindowMoved(ResponseError, UserWarning):
    """Pages that belong together are of different windows: a warning that names both."""

    category = "window moved"


class MissingRows(ResponseError, UserWarning):
    """Rows that were asked for and did not come back: a warning, or an error when strict.

    ``missing`` is a frame that names them all; the message names the first few. An error has what
    did come back in ``rows``.
    """

    category = "missing rows"
    missing: pl.DataFrame | None = None
    rows: Any = None


class EndpointDeprecated(BeaconframesError, UserWarning):
    """The service announced the end of an endpoint: a warning, once for each, with the date."""

    category = "endpoint ends"


class DatasetError(BeaconframesError):
    """Files at rest that are damaged or foreign, or cannot be written."""

    category = "dataset"


class DatasetBusy(DatasetError):
    """Files at rest that may be sound and cannot be used now: locked, or a failing disk."""

    category = "dataset busy"
    retryable = True


class StoreUnavailable(DatasetError, UserWarning):
    """The store cannot be used: a warning, once; loaders go on, and ask for everything again."""

    category = "not kept"
