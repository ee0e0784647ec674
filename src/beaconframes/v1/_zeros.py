"""Validator 0, told from "no validator yet"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw

from beaconframes.client import load
from beaconframes.v1.validators import VALIDATORS

if TYPE_CHECKING:
    import polars as pl

    from beaconframes.client import Explorer, Options


def without_false_zeros(
    rows: pl.DataFrame, explorer: Explorer | None, options: Options
) -> pl.DataFrame:
    """Return *rows* with null for each index 0 beside a key that is not validator 0's.

    Costs a request when there is a 0, and none otherwise.
    """
    frame = nw.from_native(rows, eager_only=True)
    index, pubkey = nw.col("validator_index"), nw.col("pubkey")
    if frame.filter(index == 0).is_empty():
        return rows
    first = load(VALIDATORS, explorer, options, validators=0)["pubkey"].to_list()
    true = (index != 0) | pubkey.is_in(first)
    return frame.with_columns(nw.when(true).then(index).alias("validator_index")).to_native()
