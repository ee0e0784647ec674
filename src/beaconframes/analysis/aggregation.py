"""Sums by group on every engine: exact, or an error.

polars and Arrow wrap at 64 bits without an error; the other engines raise. For polars and Dask,
each row therefore also gets a bound: a number no smaller than any of its amounts. If
the sum of the bounds is small, no sum wrapped.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.errors import UsageError
from beaconframes.frames import as_lazy, map_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Lazy = nw.LazyFrame[Any]

Aggregate = Literal["count", "known", "sum", "min", "max", "distinct"]

# A column has this name, because the engine quotes the name when the sums do not fit.
OVERFLOW = "amounts are negative, or add up to more than a chain has"
_GROUP_OF_ALL = "all rows alike"
# 576 million ether, more than any chain has. Sixteen columns whose sums are smaller can be added
# and subtracted in 64 bits.
MOST_GWEI = 2.0**59
_ROWS = "rows of the group"
_KNOWN = "values that are known in "
_UP_TO_64_BITS = 2**4
# How results of partitions are merged. Distinct values cannot be merged: they are counted at the
# end.
_MERGES: dict[Aggregate, Aggregate] = {
    "count": "sum",
    "known": "sum",
    "sum": "sum",
    "min": "min",
    "max": "max",
}


def get_amount_type(name: str) -> Any:
    """Return the type of an amount column: the end of its name is its unit."""
    return nw.Decimal(28, 0) if name.endswith("_wei") else nw.Int64()


def sum_known(amounts: pl.Expr) -> pl.Expr:
    """Return the sum of *amounts* in polars; null if one of them is unknown."""
    return pl.when(~amounts.is_null().any()).then(amounts.sum())


def build_overflow_error() -> UsageError:
    """Return the error for sums that do not fit their type."""
    return UsageError(
        OVERFLOW, hint="Check that they are gwei and wei, as the loaders return them."
    )


def aggregate(
    rows: Lazy,
    keys: Sequence[str],
    amounts: Sequence[str],
    change: Callable[[Lazy], Lazy] = lambda part: part,
    known: Sequence[str] = (),
    /,
    **others: tuple[Aggregate, str],
) -> Lazy:
    """Return the sums of *amounts* and the *others* by *keys*; a sum that does not fit is an error.

    Each of *others* maps a column of the result to an aggregate and its input column. *change*
    prepares the rows: after it, all amounts exist, and a null amount leaves the sum, but a null
    amount in wei, or in a column of *known*, makes it null. *change* may use nothing but the row
    itself. Sums of gwei and counts are Int64, sums of wei Decimal(28, 0).
    """
    wei = [name for name in amounts if name.endswith("_wei")]
    gwei = [name for name in amounts if not name.endswith("_wei")]
    known = [*known, *wei]
    outputs = {**others, **{name: ("sum", name) for name in amounts}}
    count = next((name for name, (how, _) in others.items() if how == "count"), _ROWS)
    if known:
        outputs[count] = ("count", known[0])
        outputs |= {_KNOWN + name: ("known", name) for name in known}
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
    # One expression for many columns: narwhals takes tens of microseconds for each expression.
    sums = [nw.col(*names).cast(get_amount_type(names[0])) for names in (gwei, wei) if names]
    unknown = [
        nw.when(nw.col(_KNOWN + name) == nw.col(count)).then(nw.col(name)).alias(name)
        for name in known
    ]

    def finish(part: Lazy) -> Lazy:
        part = part.with_columns(*sums)
        part = part.with_columns(*unknown) if unknown else part
        return part.select(*keys, *others, *amounts)

    return map_rows(result, finish)


def add_bound(rows: Lazy, amounts: Sequence[pl.Expr]) -> Lazy:
    """Add a bound to rows in polars: a number no smaller than any amount; null where one is null.

    The bound is the bitwise or of all amounts: at least the largest, and less than twice as much.
    The bits are read without a sign, so a negative amount gives a bound that is too large.
    """
    bits = functools.reduce(operator.or_, amounts).reinterpret(signed=False)
    native: Any = rows.to_native()
    return as_lazy(native.with_columns(bits.cast(pl.Float64).alias(OVERFLOW)))


def is_bound_valid() -> pl.Expr:
    """Return the expression for whether a bound is known; it raises where a bound is too large."""
    # An expression keeps polars streaming: sixteen times a bound that is too large overflows Int64.
    return (pl.col(OVERFLOW) * _UP_TO_64_BITS).cast(pl.Int64).is_not_null()


def check_row_sums(rows: Lazy, amounts: Sequence[str]) -> Lazy:
    """Check that *amounts*, none of them null, can be added within a row; raise otherwise."""
    kind = rows.implementation
    if not (kind.is_polars() or kind.is_dask()):
        return rows

    def check(part: Lazy) -> Lazy:
        bound = add_bound(part, [pl.col(name).abs() for name in amounts])
        native: Any = bound.to_native()
        return as_lazy(native.filter(is_bound_valid()).drop(OVERFLOW))

    return map_rows(rows, check)


def _check_sums(sums: Lazy) -> Lazy:
    """Raise, when the sums are computed, if one of them may have wrapped."""
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
        "known": lambda name: nw.col(name).count(),
        "sum": lambda name: nw.col(name).sum(),
        "min": lambda name: nw.col(name).min(),
        "max": lambda name: nw.col(name).max(),
        "distinct": lambda name: nw.col(name).n_unique(),
    }
    added = [name for name, (how, of) in outputs.items() if how == "sum" and of == name]
    return rows.group_by(*keys).agg(
        *([nw.col(*added).sum()] if added else []),
        *(expressions[how](of).alias(n) for n, (how, of) in outputs.items() if n not in added),
    )


def _group_partitions(
    rows: Lazy,
    prepare: Callable[[Lazy], Lazy],
    keys: Sequence[str],
    outputs: Mapping[str, tuple[Aggregate, str]],
) -> Lazy:
    """Aggregate each partition in polars; Dask only merges the results."""
    distinct = {name: of for name, (how, of) in outputs.items() if how == "distinct"}
    plain = {name: (how, of) for name, (how, of) in outputs.items() if name not in distinct}
    merges: dict[str, tuple[Aggregate, str]] = {
        n: (_MERGES[how], n) for n, (how, _) in plain.items()
    }
    # A value may occur in several partitions, so it is a key until each value has one row.
    finer_keys = list(dict.fromkeys([*keys, *distinct.values()]))
    parts = map_rows(rows, lambda part: _group(prepare(part), finer_keys, plain))
    sums = _group(parts, finer_keys, merges)
    if not distinct:
        return sums
    return _group(sums, keys, merges | {name: ("count", of) for name, of in distinct.items()})
