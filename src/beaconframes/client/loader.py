"""The arguments that all loaders share, their types, and the function behind every loader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Required, TypeAlias, TypedDict

import polars as pl

from beaconframes.calendar import Moment, to_integer
from beaconframes.client.connection import get_explorer
from beaconframes.client.explorer import Explorer

if TYPE_CHECKING:
    import pandas as pd

    from beaconframes.endpoint import Endpoint

    Frame: TypeAlias = pl.DataFrame | pl.LazyFrame | pd.DataFrame
else:
    # Importing pandas takes half a second: it is imported only when a pandas frame is made.
    Frame = pl.DataFrame | pl.LazyFrame

Subjects: TypeAlias = int | str | Iterable[int | str]
"""An index or a public key, or a list, range, array or Series of them, mixed.

A text may be a list with ranges, as on the command line: ``"1,2,100-199"``.
"""


class LoadOptions(TypedDict, total=False):
    """Arguments that every loader takes besides its own."""

    explorer: Explorer | None
    strict: bool | None
    max_requests: int | None


class Eager(LoadOptions, total=False):
    """Options of a call that returns a polars DataFrame."""

    lazy: Literal[False]
    frame: Literal["polars"] | None


class Lazy(LoadOptions, total=False):
    """Options of a call that returns a polars LazyFrame."""

    lazy: Required[Literal[True]]
    frame: Literal["polars"] | None


class Pandas(LoadOptions, total=False):
    """Options of a call that returns a pandas DataFrame."""

    lazy: Literal[False]
    frame: Required[Literal["pandas"]]


class Range(TypedDict, total=False):
    """The range of a loader that takes one."""

    since: Moment | None
    until: Moment | None


class EagerRange(Eager, Range, total=False):
    """Range and options of a call that returns a polars DataFrame."""


class LazyRange(Lazy, Range, total=False):
    """Range and options of a call that returns a polars LazyFrame."""


class PandasRange(Pandas, Range, total=False):
    """Range and options of a call that returns a pandas DataFrame."""


def load(
    endpoint: Endpoint,
    values: Mapping[str, Any],
    *,
    explorer: Explorer | None = None,
    strict: bool | None = None,
    lazy: bool = False,
    frame: Literal["polars", "pandas"] | None = None,
    max_requests: int | None = None,
) -> Frame:
    """Load the rows of *endpoint* that *values* select, from *explorer* or the connected one."""
    used_explorer = explorer if isinstance(explorer, Explorer) else get_explorer(explorer)
    for bound in ("since", "until"):
        # From here on, every number is an int, numpy's included.
        if (number := to_integer(values.get(bound))) is not None:
            values = {**values, bound: number}
    rows: Frame = used_explorer.load(
        endpoint, values, strict=strict, lazy=lazy, frame=frame, max_requests=max_requests
    )
    return rows
