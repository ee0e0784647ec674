"""Exit codes of the command line, by class of error."""

from __future__ import annotations

from beaconframes import errors

SUCCESS = 0
FAILURE = 1
USAGE_ERROR = 2
MISSING_ROWS = 3
PROBLEMS_FOUND = 10
FILE_ERROR = 9
INTERRUPTED = 130
BROKEN_PIPE = 141

EXIT_CODES: tuple[tuple[int, tuple[type[errors.BeaconframesError], ...], str], ...] = (
    (SUCCESS, (), "success; no rows are missing"),
    (FAILURE, (), "any other error, or an unexplained change of balance in index"),
    (
        USAGE_ERROR,
        (errors.UsageError,),
        "invalid command line, setting or key; no request was sent",
    ),
    (
        MISSING_ROWS,
        (errors.MissingRows, errors.UnreconciledRows),
        "rows are missing, or balances do not confirm rows of a node; all other rows were written",
    ),
    (
        4,
        (errors.Unauthorized, errors.TierTooLow),
        "the key is invalid, or its plan does not include this",
    ),
    (5, (errors.RateLimited,), "the rate limit or the quota is used up"),
    (
        6,
        (errors.ConnectionFailed, errors.RequestTimeout, errors.ServerError, errors.ChallengePage),
        "the service did not answer; retry later",
    ),
    (
        7,
        (errors.ServiceError,),
        "the service rejected the request, or does not have the endpoint",
    ),
    (8, (errors.ResponseError,), "the response of the service is invalid"),
    (FILE_ERROR, (errors.DatasetError,), "a file, store or dataset cannot be read or written"),
    (PROBLEMS_FOUND, (), "analyse --exit-code found problems, which were written"),
    (INTERRUPTED, (), "stopped by Ctrl-C"),
    (BROKEN_PIPE, (), "standard output was closed by its reader"),
    (143, (), "stopped by SIGTERM"),
)
"""Exit code, classes of error, meaning. The first entry that matches an error applies."""


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of an error."""
    if isinstance(error, OSError):
        return FILE_ERROR
    return next((code for code, kinds, _ in EXIT_CODES if isinstance(error, kinds)), FAILURE)


def format_epilog() -> str:
    """Return the table of exit codes for the end of the help text."""
    lines = (f"{code:>5}  {meaning}" for code, _, meaning in EXIT_CODES)
    return "\b\nExit codes:\n" + "\n".join(lines)
