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

Aggregate = Literal["count", "sum", "min", "max", "distinct"]

# A column of this name stands in the message of the engine, where sums do not fit.
OVERFLOW = "amounts are negative, or add up to more than a chain has"
_GROUP_OF_ALL = "all rows alike"
# No chain has that much: 576 million ether. Sixteen columns whose sums stay below can be added and
# subtracted in 64 bits.
MOST_GWEI = 2.0**59
_UP_TO_64_BITS = 2**4
# What becomes of the results of partitions. Different values are no sum: they are counted later.
_MERGES: dict[Aggregate, Aggregate] = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def get_amount_type(name: str) -> Any:
    """Say what the amounts of a column are kept in: the end of its name is their unit."""
    return nw.Decimal(28, 0) if name.endswith("_wei") else nw.Int64()


def build_overflow_error() -> UsageError:
    """Say that sums do not fit."""
    return UsageError(OVERFLOW, hint="Check that they are gwei and wei, as the loaders give them.")


def aggregate(
    rows: Lazy,
    keys: Sequence[str],
    amounts: Sequence[str],
    change: Callable[[Lazy], Lazy] = lambda part: part,
    /,
    **others: tuple[Aggregate, str],
) -> Lazy:
    """Add up whole *amounts* by *keys*, beside *others*; what does not fit is an error.

    Each of *others* says how to make the column of its name, and of which column. What *change*
    makes of the rows has all amounts, null is none; it needs no more than the row itself. Sums of
    gwei and counts come out as Int64, sums of wei as Decimal(28, 0).
    """
    outputs = {**others, **{name: ("sum", name) for name in amounts}}
    gwei = [name for name in amounts if not name.endswith("_wei")]
    kind = rows.implementation
    wraps = (kind.is_polars() or kind.is_dask()) and gwei
    if wraps:
        outputs[OVERFLOW] = ("sum", OVERFLOW)
    by = list(keys) or [_GROUP_OF_ALL]

    def prepare(part: Lazy) -> Lazy:
        part = change(part)
        if wraps and OVERFLOW not in part.collect_schema():
            part = add_bound(part, [pl.col(name).abs() for name in gwei])
        return part if keys else part.with_columns(nw.lit(1).alias(_GROUP_OF_ALL))

    if kind.is_dask():
        result = _group_partitions(rows, prepare, by, outputs)
    else:
        result = _group(prepare(rows), by, outputs)
    if wraps:
        result = _check_sums(result)
    types = [nw.col(name).cast(get_amount_type(name)) for name in amounts]
    return each_row(result, lambda part: part.select(*keys, *others, *types))


def add_bound(rows: Lazy, amounts: Sequence[pl.Expr]) -> Lazy:
    """Add a number that no amount of a row exceeds, to rows that polars holds; null beside null.

    The bits of all amounts together are as much as the largest, and less than twice as much. They
    are read without a sign: what is negative seems to be too much.
    """
    bits = functools.reduce(operator.or_, amounts).reinterpret(signed=False)
    native: Any = rows.to_native()
    return as_lazy(native.with_columns(bits.cast(pl.Float64).alias(OVERFLOW)))


def is_bound_valid() -> pl.Expr:
    """Tell where the bound is known, and raise where it is too much."""
    # An expression keeps the engine streaming: sixteen times too much is no Int64 any more.
    return (pl.col(OVERFLOW) * _UP_TO_64_BITS).cast(pl.Int64).is_not_null()


def check_row_sums(rows: Lazy, amounts: Sequence[str]) -> Lazy:
    """See that *amounts*, all of them known, can be added within a row; what cannot is an error."""
    kind = rows.implementation
    if not (kind.is_polars() or kind.is_dask()):
        return rows

    def see(part: Lazy) -> Lazy:
        bound = add_bound(part, [pl.col(name).abs() for name in amounts])
        native: Any = bound.to_native()
        return as_lazy(native.filter(is_bound_valid()).drop(OVERFLOW))

    return each_row(rows, see)


def _check_sums(sums: Lazy) -> Lazy:
    """Raise where sums might have run over, at the time that they are computed."""
    native: Any = sums.to_native()
    if isinstance(native, pl.LazyFrame):
        return as_lazy(native.filter(is_bound_valid()))

    def check(part: Any) -> Any:
        if len(part) and float(part[OVERFLOW].max()) >= MOST_GWEI:
            raise build_overflow_error()
        return part

    return as_lazy(native.map_partitions(check))


def _group(rows: Lazy, keys: Sequence[str], outputs: Mapping[str, tuple[Aggregate, str]]) -> Lazy:
    expressions: dict[Aggregate, Callable[[str], nw.Expr]] = {
        "count": lambda _: nw.len(),
        "sum": lambda name: nw.col(name).sum(),
        "min": lambda name: nw.col(name).min(),
        "max": lambda name: nw.col(name).max(),
        "distinct": lambda name: nw.col(name).n_unique(),
    }
    return rows.group_by(*keys).agg(
        *(expressions[how](of).alias(n) for n, (how, of) in outputs.items())
    )


def _group_partitions(
    rows: Lazy,
    prepare: Callable[[Lazy], Lazy],
    keys: Sequence[str],
    outputs: Mapping[str, tuple[Aggregate, str]],
) -> Lazy:
    """Reduce each partition by itself, in polars, and leave to Dask only what comes out of that."""
    distinct = {name: of for name, (how, of) in outputs.items() if how == "distinct"}
    plain = {name: (how, of) for name, (how, of) in outputs.items() if name not in distinct}
    merges: dict[str, tuple[Aggregate, str]] = {
        n: (_MERGES[how], n) for n, (how, _) in plain.items()
    }
    # A value may stand in several partitions. So it is a key, until each stands in one row.
    finer_keys = list(dict.fromkeys([*keys, *distinct.values()]))
    parts = each_row(rows, lambda part: _group(prepare(part), finer_keys, plain))
    sums = _group(parts, finer_keys, merges)
    if not distinct:
        return sums
    return _group(sums, keys, merges | {name: ("count", of) for name, of in distinct.items()})
