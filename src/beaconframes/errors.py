"""All errors that beaconframes raises: ``except BeaconframesError`` catches every one of them.

::

    BeaconframesError
    ├── UsageError                invalid argument; no request was sent         (also ValueError)
    │   ├── ConfigError               invalid setting, address or key
    │   ├── UsageWarning              accepted, but hardly meant                (also UserWarning)
    │   └── RequestLimitExceeded      more requests are needed than the limit allows
    ├── ServiceError              the request failed
    │   ├── ConnectionFailed          no connection, or it was closed           retryable
    │   ├── RequestTimeout            no complete response before the deadline  retryable
    │   ├── RateLimited               HTTP 429, with retry_after                retryable
    │   │   └── QuotaSpent            the hourly or monthly quota is used up
    │   ├── Unauthorized              the key is missing, invalid or inactive
    │   ├── TierTooLow                the key's plan does not include this
    │   │   └── TooManyIdentifiers    more validators than the plan allows in one request
    │   ├── BadRequest                the service rejected the request
    │   ├── NotFound                  the requested object does not exist
    │   ├── NotServed                 the service does not have this endpoint
    │   │   └── TableNotInDataset         the dataset that is served does not have this table
    │   ├── ServerError               HTTP 5xx, or an error body                retryable
    │   └── ChallengePage             a bot check answered instead of the service
    ├── ResponseError             the response is invalid
    │   ├── ProtocolError             not JSON, wrong envelope, or too large    retryable
    │   ├── SchemaError               a value does not fit its column
    │   ├── PaginationError           the pages do not end
    │   ├── IntegrityError            unrequested, contradicting or missing final rows
    │   ├── SnapshotMoved             the list or the head changed during the load
    │   ├── WindowMoved               pages of one call cover different windows (also UserWarning)
    │   ├── MissingRows               requested rows were not returned          (also UserWarning)
    │   └── UnreconciledRows          balances do not confirm rows of a node    (also UserWarning)
    │       └── UnverifiedRows        its execution node has not verified them  (also UserWarning)
    ├── EndpointDeprecated        the service will remove an endpoint           (also UserWarning)
    ├── DetailReduced             daily statistics instead of every epoch       (also UserWarning)
    └── DatasetError              a file cannot be read or written
        ├── DatasetBusy               locked, or a temporary disk error         retryable
        └── StoreUnavailable          the store cannot be used; loads continue  (also UserWarning)

Every error has the attributes ``category``, ``endpoint``, ``hint``, ``retryable`` and
``retry_after``. No error contains a key, a URL query or a header.

A notebook shows the lines of the user's code that led to an error, and the error. ``%tb Plain``
then shows the whole traceback.
"""

from __future__ import annotations

import sys
from copy import copy
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from beaconframes.column_errors import explain_missing_columns
from beaconframes.text import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Self

    import polars as pl


def require_package(package: str, what: str, install: str | None = None) -> None:
    """Raise a UsageError if a *package* that *what* needs is not installed."""
    if find_spec(package) is None:
        raise build_package_error(package, what, install)


def build_package_error(package: str, what: str, install: str | None = None) -> UsageError:
    """Return the error of a *package* that *what* needs and that is not installed."""
    return UsageError(
        f"{what} needs the package {package}, which is not installed",
        hint=f"pip install {install or package}",
    )


class BeaconframesError(Exception):
    """Base class of all errors of beaconframes."""

    category: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    shows_endpoint: ClassVar[bool] = True
    """Whether the text has the endpoint."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        endpoint: str | None = None,
        retry_after: float | None = None,
        attempts: int | None = None,
    ) -> None:
        """State the problem in *message* and the remedy in *hint*."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.endpoint = endpoint
        self.retry_after = retry_after
        self.attempts = attempts

    def __str__(self) -> str:
        """Return message, endpoint, number of attempts and hint on one line."""
        details = [self.endpoint] if self.endpoint and self.shows_endpoint else []
        if self.attempts and self.attempts > 1:
            details.append(f"{self.attempts} attempts")
        text = f"{self.message} ({', '.join(details)})" if details else self.message
        # The message may quote text from the chain, and terminals show it.
        end = " " if text.endswith("?") else ". "
        return visible(f"{text}{end}{self.hint}" if self.hint else text)

    def __copy__(self) -> Self:
        """Return another object with the same fields.

        tblib, which Dask installs, makes copies of exceptions that share their fields.
        """
        twin = type(self).__new__(type(self), *self.args)
        twin.__dict__.update(self.__dict__)
        return twin

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows."""
        return _render_traceback(self)


def build_interrupt(message: str) -> KeyboardInterrupt:
    """Return the exception for Ctrl-C with a *message*, which IPython shows like an error."""
    # No subclass: Python ends a process by SIGINT only for KeyboardInterrupt itself.
    interrupt = KeyboardInterrupt(message)
    vars(interrupt)["_render_traceback_"] = lambda: _render_traceback(interrupt)
    return interrupt


def _render_traceback(error: BaseException) -> list[str]:
    """Return the user's frames, the error, and how to see all frames, as IPython shows them."""
    formatter = sys.modules["IPython"].get_ipython().InteractiveTB
    kind, traceback = type(error), error.__traceback__
    of_user = select_user_frames(traceback)
    if formatter.mode in _FULL_MODES or of_user is None:
        # The first frame is that of IPython, which runs the cell.
        lines: list[str] = formatter.structured_traceback(kind, error, traceback, tb_offset=1)
        return lines
    # A copy without the errors that led to this one, whose frames would be shown as well.
    lines = formatter.structured_traceback(kind, copy(error), of_user, tb_offset=0)
    return [*lines, f"\n{_FULL_TRACEBACK_HINT}"]


_FULL_MODES = ("Plain", "Verbose")
"""The modes of IPython's ``%xmode`` and ``%tb`` that show all frames."""
_FULL_TRACEBACK_HINT = "For all frames, also those inside beaconframes: %tb Plain"
_NOT_OF_USER = ("IPython.", "ipykernel.", "contextlib", "asyncio.")


def select_user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return the frames before the first one of beaconframes, without those of IPython.

    None if there are none, or if the error was raised outside of beaconframes.
    """
    frames = []
    while traceback is not None:
        module = str(traceback.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] == "beaconframes":
            break
        if not module.startswith(_NOT_OF_USER):
            frames.append(traceback)
        traceback = traceback.tb_next
    if traceback is None:
        return None
    selected = None
    for frame in reversed(frames):
        selected = TracebackType(selected, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return selected


class UsageError(BeaconframesError, ValueError):
    """An argument is invalid; no request was sent."""

    category = "usage"


class ConfigError(UsageError):
    """A setting, an address or a key is invalid."""

    category = "configuration"


class UsageWarning(UsageError, UserWarning):
    """An argument is accepted, but hardly meant: an empty list, or a year instead of an epoch."""


class RequestLimitExceeded(UsageError):
    """The call needs more requests than ``max_requests`` allows, or than the quota has left."""

    category = "request limit"


class ServiceError(BeaconframesError):
    """The request failed: the service returned an error, or nothing."""

    category = "service"


class ConnectionFailed(ServiceError):
    """No connection to the address, or the connection was closed."""

    category = "connection"
    retryable = True


class RequestTimeout(ServiceError):
    """No complete response arrived before the deadline."""

    category = "timeout"
    retryable = True


class RateLimited(ServiceError):
    """Too many requests; ``retry_after`` is the number of seconds to wait."""

    category = "rate limit"
    retryable = True


class QuotaSpent(RateLimited):
    """The hourly or monthly quota is used up; the call does not wait for a new one.

    If `beaconframes.report` raises it, ``report`` is the incomplete report.
    """

    category = "quota"
    retryable = False
    report: Any = None


class Unauthorized(ServiceError):
    """The key is missing, invalid or inactive."""

    category = "authentication"


class TierTooLow(ServiceError):
    """The key's plan does not include this endpoint or parameter."""

    category = "tier"


class TooManyIdentifiers(TierTooLow):
    """The key's plan does not allow so many validators in one request."""


class BadRequest(ServiceError):
    """The service rejected the request."""

    category = "bad request"


class NotFound(ServiceError):
    """The requested object does not exist."""

    category = "not found"


class NotServed(ServiceError):
    """This service does not have the endpoint."""

    category = "not served"


class TableNotInDataset(NotServed):
    """The dataset that is served locally does not have the ``table``, or not enough of it."""

    category = "table not in dataset"
    table: str = ""


class ServerError(ServiceError):
    """The service failed: HTTP 5xx, or an error body instead of data."""

    category = "server error"
    retryable = True


class ChallengePage(ServiceError):
    """A bot check in front of the service answered instead of the service."""

    category = "challenge page"


class ResponseError(BeaconframesError):
    """The response is invalid."""

    category = "response"


class ProtocolError(ResponseError):
    """The response is not JSON, has a wrong envelope, or is too large."""

    category = "protocol"
    retryable = True


class SchemaError(ResponseError):
    """A value does not fit its column; the message has table, row, field and value."""

    category = "schema"


class PaginationError(ResponseError):
    """The pages of a response do not end."""

    category = "pagination"


class IntegrityError(ResponseError):
    """Rows were not requested, contradict each other, or are missing between final rows.

    If rows are missing, the frame ``missing`` lists them and ``rows`` is the frame of all other
    rows, as the loader would have returned it.
    """

    category = "integrity"
    missing: pl.DataFrame | None = None
    rows: Any = None


class SnapshotMoved(ResponseError):
    """The list changed while its pages were read, or replicas disagree about the head."""

    category = "snapshot moved"


class WindowMoved(ResponseError, UserWarning):
    """Pages of one call cover different windows: a warning that names both windows."""

    category = "window moved"


class MissingRows(ResponseError, UserWarning):
    """Requested rows were not returned: a warning, or an error with ``strict=True``.

    The frame ``missing`` lists all of them with the reason, as `beaconframes.missing` does; the
    message lists the first few. An error has the returned rows in ``rows``.
    """

    category = "missing rows"
    shows_endpoint = False
    missing: pl.DataFrame | None = None
    rows: Any = None


class UnreconciledRows(ResponseError, UserWarning):
    """Balances do not confirm rows of a node: a warning, or an error with ``strict=True``.

    The frame ``changes`` has the changes of balance that income, deposits and withdrawals do not
    explain, one row per validator and epoch. An error has the returned rows in ``rows``.
    """

    category = "unreconciled rows"
    shows_endpoint = False
    changes: pl.DataFrame | None = None
    rows: Any = None


class UnverifiedRows(UnreconciledRows):
    """The execution node beside a node has not verified the blocks of rows: they may change."""

    category = "unverified rows"


class EndpointDeprecated(BeaconframesError, UserWarning):
    """The service will remove an endpoint: one warning for each endpoint, with the date."""

    category = "deprecation"


class DetailReduced(BeaconframesError, UserWarning):
    """A report has daily statistics, because every epoch costs too many requests or too long."""

    category = "detail"


class DatasetError(BeaconframesError):
    """A file is damaged, is not a dataset, or cannot be written."""

    category = "dataset"


class DatasetBusy(DatasetError):
    """A file cannot be used now: it is locked, or the disk reports an error."""

    category = "dataset busy"
    retryable = True


class StoreUnavailable(DatasetError, UserWarning):
    """The store cannot be used: one warning; loaders continue and request all rows."""

    category = "store unavailable"


def build_column_error(
    missing: Sequence[str], names: Collection[str], *, loader: str
) -> UsageError:
    """Return the error for the columns *missing* in a frame with the columns *names*."""
    message, hint = explain_missing_columns(missing, names, loader)
    return UsageError(message, hint=hint)


def find_caller_level() -> int:
    """Return the ``stacklevel`` of a warning about the code that called the package."""
    from inspect import currentframe

    level, frame = 0, currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("beaconframes."):
        level, frame = level + 1, frame.f_back
    return level
