"""Amounts, withdrawal credentials, statuses and finality in the form of V2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from beaconframes.derive.chain_tables import View
    from beaconframes.schema import Table

WEI_PER_GWEI = 10**9
ZERO = pl.lit(0, pl.Decimal(28, 0))
ADDRESS_PREFIXES = ("0x01", "0x02")


def gwei_to_wei(gwei: pl.Expr) -> pl.Expr:
    """Return an amount in gwei as exact wei."""
    return (gwei.cast(pl.Int128) * WEI_PER_GWEI).cast(pl.Decimal(28, 0))


def sum_known(name: str) -> pl.Expr:
    """Return the sum of a column, null if one of its values is unknown."""
    column = pl.col(name)
    return pl.when(~column.is_null().any()).then(column.sum()).alias(name)


def find_last_epoch(view: View) -> pl.Expr:
    """Return the last epoch of the day of a row; days are counted back from the finalized epoch.

    Rolling windows consist of such days, so that a day is summed before a window is requested.
    """
    final, size = view.head.finalized_epoch, view.chain.epochs_per_day
    return final - (final - pl.col("epoch")) // size * size


def build_credential_columns() -> dict[str, pl.Expr]:
    """Return type, prefix and address of the column ``withdrawal_credentials``."""
    text = pl.col("withdrawal_credentials")
    prefix = text.str.slice(0, 4)
    by_address = prefix.is_in(ADDRESS_PREFIXES)
    return {
        "withdrawal_type": pl.when(by_address)
        .then(pl.lit("execution_address"))
        .otherwise(pl.lit("bls")),
        "withdrawal_prefix": prefix,
        "withdrawal_address": pl.when(by_address).then("0x" + text.str.slice(26)),
    }


def build_base_status() -> pl.Expr:
    """Return the status of V1 in the column ``status``, without online or offline."""
    return pl.col("status").str.replace("_(online|offline)$", "")


def derive_finality(view: View, epoch: str = "epoch") -> pl.Expr:
    """Return the finality of the epochs in a column."""
    final = pl.col(epoch) <= view.head.finalized_epoch
    return pl.when(final).then(pl.lit("finalized")).otherwise(pl.lit("not_finalized"))


def null_columns(table: type[Table], part: str) -> list[pl.Expr]:
    """Return nulls for all columns in one *part* of the records: an object that is null."""
    return [
        pl.lit(None, column.dtype).alias(column.name)
        for column in table.columns
        if any(path.startswith(part) for path in column.wire_paths)
    ]
