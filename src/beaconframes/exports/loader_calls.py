"""Calls of loaders: the function, its arguments and its explorer, as a source of rows."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import polars as pl

from beaconframes.active_periods import NATURAL, REASON
from beaconframes.addresses import is_local_url
from beaconframes.endpoint.cache_policy import CachePolicy
from beaconframes.endpoint.identifiers import check_length
from beaconframes.errors import (
    IntegrityError,
    MissingRows,
    UnreconciledRows,
    UsageError,
    find_caller_level,
)
from beaconframes.exports.result import NOT_FINAL
from beaconframes.v1 import ENDPOINTS
from beaconframes.v2 import ENDPOINTS as ENDPOINTS_V2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beaconframes.client import Explorer
    from beaconframes.endpoint import Endpoint

FINALIZED = "finalized"
"""The column that marks final rows in an export with other rows."""
MAX_TEXT = 200


class LoaderCall:
    """A loader with its arguments, and the explorer that it requests from."""

    def __init__(
        self,
        function: Callable[..., Any],
        endpoint: Endpoint,
        explorer: Explorer,
        arguments: dict[str, Any],
        *,
        unfinalized: bool = False,
    ) -> None:
        """Keep the *arguments* that select rows; the export sets the others itself.

        With *unfinalized*, rows that are not final are exported as well.
        """
        self.unfinalized = unfinalized
        self.function, self.endpoint, self.explorer = function, endpoint, explorer
        for name, value in arguments.items():
            if isinstance(value, range):  # The manifest lists its numbers before they are loaded.
                check_length(name, value)
        self.arguments = {
            name: value
            for name, value in arguments.items()
            if name not in ("explorer", "strict", "lazy", "frame")
        }
        self.values = {name: self.arguments.get(name) for name in endpoint.arguments}
        self.chain_head = explorer.chain_head_of(endpoint)
        self.gaps: list[dict[str, Any]] = []

    def load(self, **changes: Any) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
        """Return the rows, with *changes* to the arguments, and the gaps."""
        arguments = {**self.arguments, **changes}
        gaps: list[dict[str, Any]] = []
        try:
            frame = self.function(**arguments, explorer=self.explorer, strict=True, frame="polars")
        except UnreconciledRows as error:
            warnings.warn(error, stacklevel=find_caller_level())
            frame = error.rows
        except (MissingRows, IntegrityError) as error:
            if error.rows is None or error.missing is None:
                raise
            frame = error.rows
            # Rows that cannot exist are no gaps.
            missing = error.missing.filter(~pl.col(REASON).is_in(NATURAL))
            gaps = [
                {name: value for name, value in row.items() if value is not None}
                for row in missing.iter_rows(named=True)
            ]
        return frame.cast(self.endpoint.table.schema()), gaps

    def load_all(self) -> Iterator[pl.DataFrame]:
        """Yield all rows, loaded in one call. Rows that are not final are gaps."""
        rows, gaps = self.load()
        self.gaps += gaps
        policy = CachePolicy.of(self.endpoint)
        unit, last = "slot", self.chain_head.latest("slot", finalized=True)
        # A `slot` that the table does not declare may be that of a future duty.
        if unit not in self.endpoint.table.schema() and policy is not None and policy.unit_name:
            unit = policy.unit_column
            finalized = self.chain_head.latest("epoch", finalized=True)
            last = policy.final_until(self.chain_head, finalized)
        if unit in self.endpoint.table.schema():
            is_late = pl.col(unit) > last
            if self.unfinalized:
                yield self.mark_final(rows, ~is_late)
                return
            subjects = [
                name for name in ("validator_index", "block_number") if name in rows.columns
            ]
            late = rows.filter(is_late).select(*subjects, unit, reason=pl.lit(NOT_FINAL))
            self.gaps += late.to_dicts()
            rows = rows.filter(~is_late.fill_null(value=False))
        yield rows

    def mark_final(self, rows: pl.DataFrame, is_final: pl.Expr) -> pl.DataFrame:
        """Return *rows* with a column that marks final rows, if they have none."""
        if FINALIZED in rows.columns or not self.unfinalized:
            return rows
        return rows.with_columns(is_final.alias(FINALIZED))

    def describe_arguments(self) -> dict[str, Any]:
        """Return the arguments as the manifest shows them."""
        arguments = {
            name: value if isinstance(value, str | int | float | bool) else abbreviate(value)
            for name, value in self.arguments.items()
            if value is not None
        }
        return {**arguments, "unfinalized": True} if self.unfinalized else arguments

    def describe_service(self) -> dict[str, Any]:
        """Return the service and whether its chain is simulated, for the manifest."""
        about = self.explorer.about
        url = urlsplit(self.explorer.url)
        is_local = is_local_url(self.explorer.url)
        # The port of a local service changes, and a path may contain a secret.
        service = "a service on this machine" if is_local else f"{url.scheme}://{url.netloc}"
        return {
            "service": about.get("service", service),
            "simulated": about.get("simulated", None if is_local else False),
        }


def bind_arguments(
    function: Callable[..., Any], arguments: dict[str, Any]
) -> tuple[Callable[..., Any], inspect.BoundArguments]:
    """Return the function without any `functools.partial` around it, and all its arguments.

    One-time iterators become lists, because a loader is called several times.
    """
    positional: tuple[Any, ...] = ()
    while isinstance(function, functools.partial):
        positional = (*function.args, *positional)
        arguments = {**function.keywords, **arguments}
        function = function.func
    try:
        bound = inspect.signature(function).bind(*positional, **arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{get_function_name(function)}() does not accept these arguments: {error}",
            hint="Give the arguments of the loader by name, beside those of export()",
        ) from None
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        if isinstance(value, Iterator):
            bound.arguments[name] = [*value]
    return function, bound


def get_function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class of a callable object."""
    return str(getattr(function, "__name__", type(function).__name__))


def find_endpoint(function: Callable[..., Any]) -> Endpoint | None:
    """Return the endpoint of a loader; None if *function* is not a loader."""
    module, name = getattr(function, "__module__", None) or "", get_function_name(function)
    if not module.startswith(("beaconframes.v1", "beaconframes.v2")):
        return None
    endpoints = ENDPOINTS_V2 if module.startswith("beaconframes.v2") else ENDPOINTS
    return next((e for e in endpoints if f"load_{e.name}" == name), None)


def abbreviate(value: Any) -> str:
    """Return a list as text; a long list as its length and hash."""
    try:
        items = [str(item) for item in value]
    except TypeError:
        return str(value)
    return join_items(items)


def join_items(items: Iterable[str]) -> str:
    """Return *items* joined by commas, or their number and hash if that is too long."""
    listed = [*items]
    text = ",".join(listed)
    if len(text) <= MAX_TEXT:
        return text
    return f"{len(listed)} of them, sha256 {sha256(text.encode()).hexdigest()[:16]}"
