"""Amounts and credentials as generation 2 has them."""

from __future__ import annotations

import polars as pl

GWEI = 10**9
ELECTRA_PREFIXES = ("0x01", "0x02")


def wei(gwei: pl.Expr) -> pl.Expr:
    """Return gwei as exact wei."""
    return (gwei.cast(pl.Int128) * GWEI).cast(pl.Decimal(28, 0))


def credentials() -> dict[str, pl.Expr]:
    """Return what withdrawal credentials say, from the bytes in ``withdrawal_credentials``."""
    text = pl.col("withdrawal_credentials")
    prefix = text.str.slice(0, 4)
    by_address = prefix.is_in(ELECTRA_PREFIXES)
    return {
        "withdrawal_type": pl.when(by_address)
        .then(pl.lit("execution_address"))
        .otherwise(pl.lit("bls")),
        "withdrawal_prefix": prefix,
        "withdrawal_address": pl.when(by_address).then("0x" + text.str.slice(26)),
    }
