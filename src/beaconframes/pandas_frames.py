"""Frames of any library as pandas frames, without the loss of a digit or a null."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from beaconframes.errors import UsageError, require_package

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

DtypeBackend: TypeAlias = Literal["pyarrow", "numpy_nullable"]


@overload
def to_pandas(
    frame: pl.Series | pd.Series[Any], *, dtype_backend: DtypeBackend | None = None
) -> pd.Series[Any]: ...
@overload
def to_pandas(
    frame: pl.DataFrame | pl.LazyFrame | pd.DataFrame, *, dtype_backend: DtypeBackend | None = None
) -> pd.DataFrame: ...
def to_pandas(frame: Any, *, dtype_backend: DtypeBackend | None = None) -> Any:
    """Return the frame as a pandas frame, without the loss of a digit or a null.

    Times are ``datetime64[us, UTC]`` and days ``datetime64[us]``, as pandas itself reads them, so
    ``merge_asof``, ``resample`` and ``.loc["2026-10-01"]`` work. Everything else has the types of
    *dtype_backend*. A lazy frame is collected. A pandas frame is returned unchanged, unless
    *dtype_backend* is given. Frames of DuckDB, Dask, PySpark and Arrow are computed; their own
    conversions to pandas turn wei into floats or objects.

    Parameters
    ----------
    frame
        A frame or Series of polars or pandas, or a frame of another engine.
    dtype_backend
        As in ``pandas.read_parquet``. ``"pyarrow"``, the default: integers, decimals and text
        are Arrow-backed, which is compact and fast. ``"numpy_nullable"``: integers are
        ``Int64``, and amounts in wei are ``decimal.Decimal`` objects, which also have what Arrow
        does not offer, such as ``cumsum``, but are slow. Both keep every digit.
    """
    import polars as pl

    if dtype_backend not in (None, "pyarrow", "numpy_nullable"):
        raise UsageError(
            f"dtype_backend={dtype_backend!r} is not valid",
            hint='Choose one of "pyarrow", "numpy_nullable".',
        )
    if is_pandas(frame):
        if dtype_backend is None:
            return frame
        converted = to_pandas(_read_pandas(frame), dtype_backend=dtype_backend)
        converted.attrs.update(frame.attrs)
        return converted.set_axis(frame.index, axis=0)
    if isinstance(frame, pl.Series):
        return to_pandas(frame.to_frame(), dtype_backend=dtype_backend).iloc[:, 0]
    attributes = getattr(frame, "attrs", {})
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        frame = _collect_frame(frame)
    for package in ("pandas", "pyarrow"):
        require_package(package, "a pandas frame")
    portable = frame.with_columns(
        # Arrow has no integers of 128 bits, and pandas has no type for days.
        pl.col(pl.Int128, pl.UInt128).cast(pl.Decimal(38, 0)),
        pl.col(pl.Date).cast(pl.Datetime("us")),
    )
    is_nullable = dtype_backend == "numpy_nullable"
    map_type = _find_nullable_type if is_nullable else _find_arrow_type
    result = portable.to_arrow().to_pandas(types_mapper=map_type)
    result.attrs.update(attributes)
    return result


def _read_pandas(frame: Any) -> pl.DataFrame:
    """Convert a pandas frame to polars; its integers may exceed 64 bits."""
    import polars as pl

    try:
        objects = frame.select_dtypes("object")
        # Amounts in wei: Arrow has no integers of more than 64 bits.
        whole = [name for name in objects if objects[name].dropna().map(type).eq(int).all()]
        exact = {name: frame[name].map(Decimal, na_action="ignore") for name in whole}
        table: pl.DataFrame = pl.from_pandas(frame.assign(**exact) if exact else frame)
    except (ValueError, OverflowError, TypeError) as error:
        raise UsageError(f"the frame cannot be read: {error}") from error
    return table


def _collect_frame(frame: Any) -> pl.DataFrame:
    """Compute a frame of another engine, with times in UTC."""
    import narwhals.stable.v2 as nw
    import polars as pl

    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise build_type_error(frame) from None
    table: pl.DataFrame = wrapped.lazy().collect("polars").to_native()
    times = pl.selectors.datetime(time_zone="*")
    return table.with_columns(times.dt.convert_time_zone("UTC").dt.cast_time_unit("us"))


def _find_arrow_type(arrow_type: Any) -> Any:
    """Return the pandas type of an Arrow type; None for the type that pandas chooses."""
    import pandas as pd
    import pyarrow as pa  # type: ignore[import-untyped]

    return None if pa.types.is_timestamp(arrow_type) else pd.ArrowDtype(arrow_type)


def _find_nullable_type(arrow_type: Any) -> Any:
    """Return the nullable pandas type of an Arrow type; None for the type that pandas chooses."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_integer(arrow_type):
        prefix = "UInt" if pa.types.is_unsigned_integer(arrow_type) else "Int"
        return pd.api.types.pandas_dtype(f"{prefix}{arrow_type.bit_width}")
    if pa.types.is_floating(arrow_type):
        return pd.Float64Dtype() if arrow_type.bit_width == 64 else pd.Float32Dtype()
    if pa.types.is_boolean(arrow_type):
        return pd.BooleanDtype()
    return pd.StringDtype() if pa.types.is_large_string(arrow_type) else None


def is_pandas(frame: object) -> bool:
    """Return whether *frame* is a frame or a Series of pandas."""
    import narwhals.stable.v2 as nw

    check = nw.dependencies
    return check.is_pandas_dataframe(frame) or check.is_pandas_series(frame)


def build_type_error(frame: object) -> UsageError:
    """Return the error for an argument that is no frame."""
    hint = "Pass a polars or pandas frame or Series; bf.to_pandas converts frames of other engines"
    if isinstance(frame, int | float | Decimal):
        hint += ". A number has no unit: one ether is 10**9 gwei, or 10**18 wei"
    return UsageError(f"{type(frame).__name__} is not a frame", hint=hint)
