"""Sums by group on any engine: exact, or an error.

polars and Arrow run over 64 bits without a word, the other engines say so. So beside the amounts of
a row stands a number that none of them exceeds, and where its sum is small no sum ran over.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import as_lazy, each_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Lazy = nw.LazyFrame[Any]

How = Literal["count", "sum", "min", "max", "distinct"]

# A column of this name stands in the message of the engine, where sums do not fit.
TOO_MUCH = "amounts are negative, or add up to more than a chain has"
_ALL = "all rows alike"
# No chain has that much: 576 million ether. Sixteen columns whose sums stay below can be added and
# subtracted in 64 bits.
MOST_GWEI = 2.0**59
_UP_TO_64_BITS = 2**4
# What becomes of the results of partitions. Different values are no sum: they are counted later.
_AGAIN: dict[How, How] = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def amount_type(name: str) -> Any:
    """Say what the amounts of a column are kept in: the end of its name is their unit."""
    return nw.Decimal(28, 0) if name.endswith("_wei") else nw.Int64()


def too_much() -> UsageError:
    """Say that sums do not fit."""
    return UsageError(TOO_MUCH, hint="Check that they are gwei and wei, as the loaders give them.")


def added(
    rows: Lazy,
    keys: Sequence[str],
    amounts: Sequence[str],
    change: Callable[[Lazy], Lazy] = lambda part: part,
    /,
    **others: tuple[How, str],
) -> Lazy:
    """Add up whole *amounts* by *keys*, beside *others*; what does not fit is an error.

    Each of *others* says how to make the column of its name, and of which column. What *change*
    makes of the rows has all amounts, null is none; it needs no more than the row itself. Sums of
    gwei and counts come out as Int64, sums of wei as Decimal(28, 0).
    """
    wanted = {**others, **{name: ("sum", name) for name in amounts}}
    gwei = [name for name in amounts if not name.endswith("_wei")]
    kind = rows.implementation
    silent = (kind.is_polars() or kind.is_dask()) and gwei
    if silent:
        wanted[TOO_MUCH] = ("sum", TOO_MUCH)
    by = list(keys) or [_ALL]

    def ready(part: Lazy) -> Lazy:
        part = change(part)
        if silent and TOO_MUCH not in part.collect_schema():
            part = with_bound(part, [pl.col(name).abs() for name in gwei])
        return part if keys else part.with_columns(nw.lit(1).alias(_ALL))

    if kind.is_dask():
        result = _in_partitions(rows, ready, by, wanted)
    else:
        result = _grouped(ready(rows), by, wanted)
    if silent:
        result = _checked(result)
    types = [nw.col(name).cast(amount_type(name)) for name in amounts]
    return each_row(result, lambda part: part.select(*keys, *others, *types))


def with_bound(rows: Lazy, amounts: Sequence[pl.Expr]) -> Lazy:
    """Add a number that no amount of a row exceeds, to rows that polars holds; null beside null.

    The bits of all amounts together are as much as the largest, and less than twice as much. They
    are read without a sign: what is negative seems to be too much.
    """
    bits = functools.reduce(operator.or_, amounts).reinterpret(signed=False)
    native: Any = rows.to_native()
    return as_lazy(native.with_columns(bits.cast(pl.Float64).alias(TOO_MUCH)))


def bound_fits() -> pl.Expr:
    """Tell where the bound is known, and raise where it is too much."""
    # An expression keeps the engine streaming: sixteen times too much is no Int64 any more.
    return (pl.col(TOO_MUCH) * _UP_TO_64_BITS).cast(pl.Int64).is_not_null()


def fitting(rows: Lazy, amounts: Sequence[str]) -> Lazy:
    """See that *amounts*, all of them known, can be added within a row; what cannot is an error."""
    kind = rows.implementation
    if not (kind.is_polars() or kind.is_dask()):
        return rows

    def see(part: Lazy) -> Lazy:
        bound = with_bound(part, [pl.col(name).abs() for name in amounts])
        native: Any = bound.to_native()
        return as_lazy(native.filter(bound_fits()).drop(TOO_MUCH))

    return each_row(rows, see)


def _checked(sums: Lazy) -> Lazy:
    """Raise where sums might have run over, at the time that they are computed."""
    native: Any = sums.to_native()
    if isinstance(native, pl.LazyFrame):
        return as_lazy(native.filter(bound_fits()))

    def check(part: Any) -> Any:
        if len(part) and float(part[TOO_MUCH].max()) >= MOST_GWEI:
            raise too_much()
        return part

    return as_lazy(native.map_partitions(check))


def _grouped(rows: Lazy, keys: Sequence[str], wanted: Mapping[str, tuple[How, str]]) -> Lazy:
    made: dict[How, Callable[[str], nw.Expr]] = {
        "count": lambda _: nw.len(),
        "sum": lambda name: nw.col(name).sum(),
        "min": lambda name: nw.col(name).min(),
        "max": lambda name: nw.col(name).max(),
        "distinct": lambda name: nw.col(name).n_unique(),
    }
    return rows.group_by(*keys).agg(*(made[how](of).alias(n) for n, (how, of) in wanted.items()))


def _in_partitions(
    rows: Lazy,
    ready: Callable[[Lazy], Lazy],
    keys: Sequence[str],
    wanted: Mapping[str, tuple[How, str]],
) -> Lazy:
    """Reduce each partition by itself, in polars, and leave to Dask only what comes out of that."""
    different = {name: of for name, (how, of) in wanted.items() if how == "distinct"}
    plain = {name: (how, of) for name, (how, of) in wanted.items() if name not in different}
    again: dict[str, tuple[How, str]] = {n: (_AGAIN[how], n) for n, (how, _) in plain.items()}
    # A value may stand in several partitions. So it is a key, until each stands in one row.
    finer = list(dict.fromkeys([*keys, *different.values()]))
    parts = each_row(rows, lambda part: _grouped(ready(part), finer, plain))
    sums = _grouped(parts, finer, again)
    if not different:
        return sums
    return _grouped(sums, keys, again | {name: ("count", of) for name, of in different.items()})
