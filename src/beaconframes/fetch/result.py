"""What a call of a loader came to, before it becomes the frame that the user wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from beaconframes.endpoint import Endpoint


@dataclass
class LoadResult:
    """The rows, those that are lost, and what is to be said of them."""

    rows: pl.DataFrame | pl.LazyFrame
    lost: pl.DataFrame
    notices: list[Warning] = field(default_factory=list)
    ordered: bool = False
    """Whether they certainly are in order, each once."""

    def as_frame(self, endpoint: Endpoint, values: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows sorted by key, each once."""
        if isinstance(self.rows, pl.DataFrame):
            rows = self.rows
        else:
            rows = read(self.rows)
            if not self.ordered and not in_order(rows, endpoint.table.key()):
                rows = endpoint.table.arrange(rows)
        for parameter in endpoint.all_parameters:
            rows = parameter.finish(rows, values)
        return rows

    def as_lazy(self, endpoint: Endpoint, values: Mapping[str, Any]) -> pl.LazyFrame:
        """Return the rows as a LazyFrame; in memory only where they are not in the store."""
        kinds = {type(parameter).finish for parameter in endpoint.all_parameters}
        if isinstance(self.rows, pl.DataFrame) or len(kinds) > 1:
            return self.as_frame(endpoint, values).lazy()
        return self.rows


def read(rows: pl.LazyFrame) -> pl.DataFrame:
    """Return *rows* of the store; what goes wrong is an error of ours."""
    try:
        return rows.collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DatasetError(
            f"the store cannot be read: {str(error).splitlines()[0]}",
            hint="Run bf.store().verify(), and bf.store().mend()",
        ) from error


def in_order(rows: pl.DataFrame, key: Sequence[str]) -> bool:
    """Tell whether *rows* are sorted by *key* and each is there once."""

    def rises(ahead: pl.Expr, name: str) -> pl.Expr:
        here, before = pl.col(name), pl.col(name).shift(1)
        return (before < here) | ((before == here) & ahead)

    if rows.height < 2:
        return True
    sorted_by = reduce(rises, reversed(key), pl.lit(value=False))
    # Nulls are not compared: sorting knows where they belong.
    return bool(rows.select(sorted_by.slice(1).all(ignore_nulls=False)).item())
