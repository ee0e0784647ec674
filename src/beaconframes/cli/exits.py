"""Exit statuses: the one place that says with which number the command ends."""

from __future__ import annotations

from beaconframes import errors

DONE = 0
FAILED = 1
MISUSED = 2
PARTIAL = 3
FILES = 9
PIPE_CLOSED = 141
INTERRUPTED = 130

EXITS: tuple[tuple[int, tuple[type[errors.BeaconframesError], ...], str], ...] = (
    (
        MISUSED,
        (errors.UsageError,),
        "the command line, a setting or the key cannot work; nothing was sent",
    ),
    (PARTIAL, (errors.MissingRows,), "rows are missing; what did come was written"),
    (
        4,
        (errors.Unauthorized, errors.TierTooLow),
        "the key is refused, or its plan does not include this",
    ),
    (5, (errors.RateLimited,), "the rate or the allowance is used up"),
    (
        6,
        (errors.ConnectionFailed, errors.RequestTimeout, errors.ServerError, errors.ChallengePage),
        "the service did not answer; later it may",
    ),
    (7, (errors.ServiceError,), "the service refused this, or does not have it"),
    (8, (errors.ResponseError,), "an answer came that cannot be trusted"),
    (FILES, (errors.DatasetError,), "a file, a store or a dataset cannot be read or written"),
)
"""Which error ends the command with which status; the first that fits counts."""

OTHERS = (
    (DONE, "done, and complete"),
    (FAILED, "anything else"),
    (INTERRUPTED, "stopped by Ctrl-C"),
    (PIPE_CLOSED, "nobody reads the output any more"),
    (143, "stopped by SIGTERM"),
)
"""The statuses that no error of ours has."""


def status_of(error: BaseException) -> int:
    """Return the exit status for an error."""
    if isinstance(error, OSError):
        return FILES
    return next((status for status, kinds, _ in EXITS if isinstance(error, kinds)), FAILED)


def table() -> list[tuple[int, str, str]]:
    """Return every status with the errors that have it and what it means, in order."""
    ours = [(status, ", ".join(k.__name__ for k in kinds), why) for status, kinds, why in EXITS]
    return sorted([*ours, *((status, "", why) for status, why in OTHERS)])


def epilog() -> str:
    """Return the table for the end of the help."""
    return "\b\nExit status:\n" + "\n".join(f"{status:>5}  {why}" for status, _, why in table())
