"""Calls of loaders as sources: what is asked for comes piece by piece, in the order of time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import polars as pl

from beaconframes.config import is_loopback
from beaconframes.errors import IntegrityError, MissingRows, UsageError
from beaconframes.exports.active_periods import ActivePeriods
from beaconframes.frames import to_polars
from beaconframes.v1 import ENDPOINTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.client import Explorer
    from beaconframes.endpoint import Endpoint


NOT_YET = "not final yet"


def repeatable(what: Any, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return both with a list for every iterator, which gives what it has only once."""
    if isinstance(what, functools.partial):
        arguments = {**what.keywords, **arguments}
        what = functools.partial(what.func, *map(lasting, what.args))
    return what, {name: lasting(value) for name, value in arguments.items()}


def lasting(value: Any) -> Any:
    """Return a list of what an iterator gives, and anything else as it is."""
    return [*value] if isinstance(value, Iterator) else value


def unwrapped(
    what: Callable[..., Any], arguments: dict[str, Any]
) -> tuple[Callable[..., Any], inspect.BoundArguments]:
    """Return the function that *what* is in the end, and all that it is called with."""
    positional: tuple[Any, ...] = ()
    while isinstance(what, functools.partial):
        positional = (*what.args, *positional)
        arguments = {**what.keywords, **arguments}
        what = what.func
    try:
        bound = inspect.signature(what).bind(*positional, **arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{called(what)}() cannot be called so: {error}",
            hint="Give the arguments of the loader by name, beside those of export()",
        ) from None
    bound.apply_defaults()
    return what, bound


def called(function: Callable[..., Any]) -> str:
    """Return what a function is called, or an object that is called like one."""
    return str(getattr(function, "__name__", type(function).__name__))


def endpoint_of(function: Callable[..., Any]) -> Endpoint | None:
    """Return the endpoint that a loader asks; None if *function* is no loader."""
    module, name = getattr(function, "__module__", None) or "", called(function)
    if not module.startswith(("beaconframes.v1", "beaconframes.v2")):
        return None
    known = ENDPOINTS_V2 if module.startswith("beaconframes.v2") else ENDPOINTS
    return next((e for e in known if f"load_{e.name}" == name), None)


class LoaderCall:
    """One loader, whom it asks, and for what."""

    def __init__(
        self,
        function: Callable[..., Any],
        endpoint: Endpoint,
        explorer: Explorer,
        given: dict[str, Any],
    ) -> None:
        """Take everything that was given; *explorer* is the one that is asked."""
        self.function, self.endpoint, self.explorer = function, endpoint, explorer
        self.given = {
            name: value
            for name, value in given.items()
            if name not in ("explorer", "strict", "lazy", "frame")
        }
        self.values = {name: self.given.get(name) for name in endpoint.arguments}
        self.chain_head = explorer.chain_head_of(endpoint)
        self.gaps: list[dict[str, Any]] = []
        self.lives = ActivePeriods(explorer, second=endpoint in ENDPOINTS_V2)

    def load(self, **instead: Any) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
        """Return the rows of the call, with some arguments *instead*, and what did not come.

        Epochs outside of a validator's active life are none that did not come.
        """
        rows, gaps = load(self.function, self.explorer, {**self.given, **instead})
        return rows.cast(self.endpoint.table.schema()), self.lives.within(gaps) if gaps else []

    def everything(self) -> Iterator[pl.DataFrame]:
        """Yield all rows, loaded at once; what happened in a slot that is not final is a gap."""
        rows, gaps = self.load()
        self.gaps += gaps
        # Where a table declares no slot, one that comes may be of a duty that lies ahead.
        if "slot" in self.endpoint.table.schema():
            late = pl.col("slot") > self.chain_head.latest("slot", finalized=True)
            subjects = [
                name for name in ("validator_index", "block_number") if name in rows.columns
            ]
            named = rows.filter(late).select(*subjects, "slot", reason=pl.lit(NOT_YET))
            self.gaps += named.to_dicts()
            rows = rows.filter(~late.fill_null(value=False))
        yield rows

    def others(self) -> dict[str, Any]:
        """Return the arguments as the manifest has them."""
        plain = (str, int, float, bool)
        return {
            name: value if isinstance(value, plain) else short(value)
            for name, value in self.given.items()
            if value is not None
        }

    def facts(self) -> dict[str, Any]:
        """Return whose data it is."""
        about = self.explorer.about
        url = urlsplit(self.explorer.url)
        here = is_loopback(url.hostname or "")
        # The port of a local service is another one each time, and a path may hold a secret.
        service = "a service on this machine" if here else f"{url.scheme}://{url.netloc}"
        return {
            "service": about.get("service", service),
            "simulated": about.get("simulated", None if here else False),
        }


def load(
    function: Callable[..., Any], explorer: Explorer, arguments: dict[str, Any]
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Call a loader; return the rows that came, and what did not."""
    try:
        frame, gaps = function(**arguments, explorer=explorer, strict=True), []
    except (MissingRows, IntegrityError) as error:
        if error.rows is None or error.missing is None:
            raise
        frame, gaps = error.rows, gaps_in(error)
    return frame if isinstance(frame, pl.DataFrame) else to_polars(frame), gaps


def gaps_in(error: MissingRows | IntegrityError) -> list[dict[str, Any]]:
    """Return what did not come, one entry per gap."""
    assert error.missing is not None
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in error.missing.iter_rows(named=True)
    ]


def short(value: Any) -> str:
    """Return a list of things in the fewest words that still tell it from any other."""
    try:
        items = [str(item) for item in value]
    except TypeError:
        return str(value)
    text = ",".join(items)
    if len(text) <= 200:
        return text
    from hashlib import sha256

    return f"{len(items)} of them, sha256 {sha256(text.encode()).hexdigest()[:16]}"
