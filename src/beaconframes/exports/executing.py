"""Executors: who does the loading and the writing, and what becomes of one that cannot."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, CancelledError
from typing import TYPE_CHECKING, Any

from beaconframes.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


def checked(executor: Any) -> Any:
    """Return what is an executor, or None; anything else is a UsageError."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise UsageError(
            f"executor={type(executor).__name__} is no executor",
            hint="Give one of concurrent.futures, a Dask Client, or none",
        )
    return executor


def submit(executor: Any, what: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Let an executor call *what*; one that takes nothing more is a UsageError."""
    try:
        return executor.submit(what, *arguments, **named)
    except RuntimeError as error:
        raise UsageError(
            f"the executor takes no work: {error}", hint="Give one that runs, or none"
        ) from error


def result(future: Any) -> Any:
    """Return what was worked out; a DatasetError says that whoever did it has died."""
    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        raise DatasetError(
            f"the executor did not end its work: {str(error) or type(error).__name__}",
            hint="Give another one, or none: the same call goes on where it was",
        ) from error
