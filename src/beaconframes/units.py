"""Conversion between wei, gwei and ether: amounts change their unit nowhere else.

The unit is the end of a column's name and determines its type: ``_wei`` is ``Decimal(28, 0)``,
``_gwei`` is ``Int64``, ``_eth`` is ``Float64`` for plots and statistics, or ``Decimal(38, 18)``
when exact. 1 ether is 10^9 gwei or 10^18 wei. Only ``to_eth`` without ``exact=True`` uses floats.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from beaconframes.errors import UsageError, build_column_error
from beaconframes.pandas_frames import build_type_error, is_pandas, to_pandas

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    import polars as pl

Frame = TypeVar("Frame")

_TOKEN_COLUMNS = ("balance", "decimals")

# Powers of ten: one ether is 10^18 wei.
_PLACES = {"wei": 0, "gwei": 9, "eth": 18}


def to_eth(frame: Frame, *, exact: bool = False) -> Frame:
    """Return the frame with every ``_gwei`` and ``_wei`` column converted to ``_eth``, in place.

    The columns become ``Float64``, accurate to about fifteen digits; with ``exact=True`` they
    become ``Decimal(38, 18)`` without loss. ``_eth`` columns get the same type; with ``exact=True``
    a float ``_eth`` column is a ``UsageError``, and so is a frame without any amount.

    Takes a polars frame, eager or lazy, a pandas frame, or a Series whose name ends in a unit, and
    returns the same kind; pandas results are as `to_pandas` returns them.
    """
    converted: Frame = _convert_frame(frame, "eth", exact=exact)
    return converted


def to_gwei(frame: Frame) -> Frame:
    """Return the frame with every ``_wei`` and ``_eth`` column converted to ``_gwei``, exactly.

    The columns become ``Int64``. An amount that is not a whole number of gwei is a ``UsageError``
    (for a lazy frame: when it is collected), and so is a float column, whose digits are already
    lost.
    """
    converted: Frame = _convert_frame(frame, "gwei", exact=True)
    return converted


def to_wei(frame: Frame) -> Frame:
    """Return the frame with every ``_gwei`` and ``_eth`` column converted to ``_wei``, exactly.

    The columns become ``Decimal(28, 0)``. A float column is a ``UsageError``, because its digits
    are already lost.
    """
    converted: Frame = _convert_frame(frame, "wei", exact=True)
    return converted


def to_tokens(frame: Frame) -> Frame:
    """Return the frame with the token balances in ``balance`` as exact numbers instead of text.

    Takes the frame of ``load_token_balances`` or ``load_address_balances``, in polars or pandas,
    and returns the same kind; a lazy frame is computed eagerly. The column becomes
    ``Decimal(38, d)``, where d is the largest of ``decimals``; null, the balance of ether, stays
    null. Balances that need more than 38 digits are a ``UsageError``.
    """
    import polars as pl

    native: Any = frame
    if isinstance(native, pl.LazyFrame):
        converted: Any = to_tokens(native.collect()).lazy()
        return cast("Frame", converted)
    if not isinstance(native, pl.DataFrame) and not (is_pandas(native) and native.ndim == 2):
        raise build_type_error(frame)
    if missing := [name for name in _TOKEN_COLUMNS if name not in native.columns]:
        raise build_column_error(missing, list(native.columns), loader="load_token_balances")
    texts, places = (_read_column(native[name]) for name in _TOKEN_COLUMNS)
    numbers = _parse_tokens(texts.cast(pl.String), places.cast(pl.Int64))
    if isinstance(native, pl.DataFrame):
        return cast("Frame", native.with_columns(numbers))
    copy = native.copy(deep=False)
    copy["balance"] = to_pandas(numbers).set_axis(native.index)
    return cast("Frame", copy)


def _read_column(column: Any) -> pl.Series:
    """Convert a column of text or counts, of polars or pandas, to polars."""
    import polars as pl

    return column if isinstance(column, pl.Series) else pl.from_pandas(column, nan_to_null=True)


def _parse_tokens(texts: pl.Series, places: pl.Series) -> pl.Series:
    """Return the numbers of *texts*, each with at most as many decimal places as *places* has."""
    import polars as pl

    scale: Any = places.max() or 0
    parts = texts.str.extract_groups(r"^(-?[0-9]+)(?:\.([0-9]+))?$")
    whole, rest = parts.struct.field("1"), parts.struct.field("2").fill_null("")
    digits = whole.str.strip_chars_start("-0").str.len_chars() + scale
    invalid = (
        whole.is_null() | (rest.str.len_chars() > places).fill_null(value=True) | (digits > 38)
    )
    _check_tokens(texts, invalid & texts.is_not_null(), scale)
    return texts.cast(pl.Decimal(38, scale)).rename("balance")


def _check_tokens(texts: pl.Series, invalid: pl.Series, scale: int) -> None:
    """Raise for the first balance that has no exact number with *scale* decimal places."""
    if invalid.any():
        raise UsageError(
            f"the balance {texts.filter(invalid)[0]} has no exact number of 38 digits, of which "
            f"{scale} are decimal places ({invalid.sum()} such balances)",
            hint="Leave out such tokens, or convert fewer tokens in one call",
        )


def _convert_frame(frame: Any, unit: str, *, exact: bool) -> Any:
    import polars as pl

    change = partial(_convert_amounts, unit=unit, exact=exact)
    if isinstance(frame, pl.Series):
        return _convert_frame(_check_name(frame).to_frame(), unit, exact=exact).to_series()
    if isinstance(frame, pl.LazyFrame):
        schema = frame.collect_schema()
        names = _rename_columns(schema, unit)
        for name in names:
            _check_type(name, schema[name], exact=exact)
        dtype = _get_exact_type(unit) if exact else pl.Float64()
        return frame.select(
            pl.col(name)
            .map_batches(change, return_dtype=dtype, is_elementwise=True)
            .alias(names[name])
            if name in names
            else pl.col(name)
            for name in schema
        )
    if isinstance(frame, pl.DataFrame):
        names = _rename_columns(frame.columns, unit)
        changed = [
            change(column).rename(names[column.name]) if column.name in names else column
            for column in frame
        ]
        return pl.DataFrame(changed)
    if not is_pandas(frame):
        raise build_type_error(frame)
    if frame.ndim == 1:
        return _convert_frame(_check_name(frame).to_frame(), unit, exact=exact).iloc[:, 0]
    names = _rename_columns(frame.columns, unit)
    copy = frame.copy(deep=False)
    for name in names:
        copy[name] = to_pandas(change(_read_pandas_column(frame[name]))).set_axis(frame.index)
    return copy.rename(columns=names)


def _rename_columns(names: Iterable[Any], unit: str) -> dict[str, str]:
    """Return the new name of every amount column; raise where two would have the same name."""
    columns = list(names)
    if not any(map(_find_unit, columns)):
        tokens = set(_TOKEN_COLUMNS) <= set(columns)
        raise UsageError(
            "the frame has nothing to convert: no column ends in _wei, _gwei or _eth",
            hint="bf.to_tokens(frame) converts balances of tokens"
            if tokens
            else "Convert a frame with amounts: the end of a column's name is its unit",
        )
    new = {name: f"{name.rpartition('_')[0]}_{unit}" for name in columns if _find_unit(name)}
    taken = Counter(new.get(name, name) for name in columns)
    for result in new.values():
        if taken[result] > 1:
            same = [name for name in columns if new.get(name, name) == result]
            raise UsageError(
                f"the columns {', '.join(same)} would all become {result}",
                hint="Rename or drop all but one of them",
            )
    return new


def _find_unit(name: object) -> str | None:
    """Return the unit that a column's name ends in; None for other columns."""
    stem, _, end = name.rpartition("_") if isinstance(name, str) else ("", "", "")
    return end if stem and end in _PLACES else None


def _convert_amounts(column: pl.Series, *, unit: str, exact: bool) -> pl.Series:
    """Convert the amounts of one column to another unit."""
    import polars as pl

    name, own_unit = column.name, _find_unit(column.name)
    assert own_unit is not None
    _check_type(name, column.dtype, exact=exact)
    if not exact:
        # Polars multiplies by the inverse of a single divisor, which is not correctly rounded.
        divisor = 10.0 ** (_PLACES[unit] - _PLACES[own_unit])
        return column.cast(pl.Float64) / pl.repeat(divisor, len(column), eager=True)
    target = _get_exact_type(unit)
    if own_unit == unit and column.dtype == target:
        return column
    try:
        wei = _convert_to_wei(column, _PLACES[own_unit])
        if unit == "eth":
            return wei * Decimal("1e-18")
        if unit == "gwei":
            _check_exact(column, wei % 10**9 != 0, "not a whole number of gwei")
            wei = wei // 10**9
        return wei.cast(target)
    except pl.exceptions.PolarsError:
        raise UsageError(
            f"{name} holds amounts too large for {target} {unit}", hint="Check their unit"
        ) from None


def _convert_to_wei(column: pl.Series, places: int) -> pl.Series:
    """Convert the amounts to wei; arithmetic on decimals raises where integers would wrap."""
    import polars as pl

    scale = column.dtype.scale if isinstance(column.dtype, pl.Decimal) else 0
    if not scale:
        return column.cast(pl.Decimal(38, 0)) * Decimal(10**places)
    # In two parts, because wei with as many decimal places would exceed 38 digits.
    whole = column.cast(pl.Int128)
    part = (column - whole.cast(pl.Decimal(38, scale))) * Decimal(10**places)
    rest = part.cast(pl.Int128)
    _check_exact(column, part != rest.cast(pl.Decimal(38, scale)), "not a whole number of wei")
    return whole.cast(pl.Decimal(38, 0)) * Decimal(10**places) + rest.cast(pl.Decimal(38, 0))


def _read_pandas_column(column: pd.Series[Any]) -> pl.Series:
    """Convert a pandas column of amounts, of any type, to polars."""
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped]

    name = str(column.name)
    # Without any value, the type of a pandas column is arbitrary.
    if column.isna().all():
        return pl.Series(name, [None] * len(column), pl.Null)
    decimals = (pa.decimal128(38, 0), pa.decimal128(38, 18))
    for arrow_type in decimals if column.dtype == object else (None,):
        try:
            amounts = pa.array(column, arrow_type, from_pandas=True)
            if pa.types.is_decimal256(amounts.type):
                amounts = amounts.cast(pa.decimal128(38, amounts.type.scale))
        except pa.ArrowException:
            continue
        return pl.Series(name, amounts)
    raise UsageError(
        f"{name} holds values that are not amounts or exceed 38 digits",
        hint="Keep amounts as int or Decimal",
    )


def _get_exact_type(unit: str) -> pl.DataType:
    import polars as pl

    types = {"wei": pl.Decimal(28, 0), "gwei": pl.Int64(), "eth": pl.Decimal(38, 18)}
    return types[unit]


def _check_type(name: str, dtype: pl.DataType, *, exact: bool) -> None:
    import polars as pl

    if dtype.is_float() and exact:
        raise UsageError(
            f"{name} is {dtype}, which has lost digits, so it cannot be converted exactly",
            hint="Start from wei or gwei; to_eth(frame, exact=True) keeps every digit of ether",
        )
    if not dtype.is_numeric() and dtype != pl.Null:
        raise UsageError(
            f"{name} is {dtype}, which is not a type of amounts", hint="Cast or rename the column"
        )


def _check_exact(column: pl.Series, inexact: pl.Series, problem: str) -> None:
    """Raise where a value of the column cannot be converted exactly, with the first such value."""
    if inexact.any():
        raise UsageError(
            f"{column.name} holds {column.filter(inexact)[0]}, which is {problem} "
            f"({inexact.sum()} such values)",
            hint="Use to_eth(frame, exact=True) to keep every digit",
        )


def _check_name(series: Any) -> Any:
    if _find_unit(series.name) is None:
        raise UsageError(
            f"the name of the series, {series.name!r}, does not end in _wei, _gwei or _eth",
            hint="Rename it: the end of the name is the unit",
        )
    return series
