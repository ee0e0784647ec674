"""Possible causes of balance changes that income and known transfers do not explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import open_frame
from beaconframes.analysis.events import read_amounts
from beaconframes.frames import collect

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.calendar import Chain

_ROW = ["validator_index", "epoch"]
_QUEUE = {"deposits": "processed_deposits_wei", "consolidations": "processed_consolidations_wei"}
_WEI_PER_GWEI = 10**9


def add_possible_causes(
    rows: pl.DataFrame,
    chain: Chain,
    *,
    deposits: IntoFrame | None,
    queue_events: IntoFrame | None,
    validators: IntoFrame | None,
) -> pl.DataFrame:
    """Replace the limits of rows by ``possible_cause``: candidates for an unexplained amount."""
    unexplained = rows.filter(pl.col("unexplained_gwei") != 0)
    causes = [_find_consolidations(unexplained)]
    if deposits is not None:
        causes.append(_find_deposits(unexplained, deposits, validators, chain))
    if queue_events is not None:
        causes.append(_find_queue_events(unexplained, queue_events, chain))
    texts = (
        pl.concat(causes)
        .sort(*_ROW, "possible_cause")
        .group_by(_ROW)
        .agg(pl.col("possible_cause").unique(maintain_order=True).str.join("; "))
    )
    return rows.drop("min_gwei", "max_gwei").join(texts, _ROW, how="left", maintain_order="left")


def _find_consolidations(unexplained: pl.DataFrame) -> pl.DataFrame:
    """Find opposite amounts of two validators at one time: one consolidated into the other."""
    amount = pl.col("unexplained_gwei")
    others = unexplained.select(
        -amount,
        other="validator_index",
        since="epoch",
        until="until_epoch",
    )
    pairs = unexplained.join(others, "unexplained_gwei").filter(
        pl.col("epoch") <= pl.col("until"), pl.col("since") <= pl.col("until_epoch")
    )
    direction = pl.when(amount > 0).then(pl.lit("from")).otherwise(pl.lit("into"))
    text = pl.format("consolidation {} validator {}", direction, "other")
    return pairs.select(*_ROW, text.alias("possible_cause"))


def _find_deposits(
    unexplained: pl.DataFrame, deposits: IntoFrame, validators: IntoFrame | None, chain: Chain
) -> pl.DataFrame:
    """Find deposits of the same amount that were made before: alone, or several at one time."""
    made = read_amounts(deposits, ["time"], loader="load_deposits", validators=validators)
    key = ["validator_index", "time"]
    made = pl.concat(
        [made.select(*key, "amount_gwei"), made.group_by(key).agg(pl.col("amount_gwei").sum())]
    )
    remainder = pl.col("ends_gwei") + pl.col("unexplained_gwei")
    end = chain.time_expr("epoch", pl.col("until_epoch") + 1)
    pairs = unexplained.join(made.unique(), "validator_index").filter(
        (remainder - pl.col("amount_gwei")).is_between("min_gwei", "max_gwei"),
        pl.col("time") <= end,
    )
    text = pl.format("deposit of {}", pl.col("time").dt.to_string("%Y-%m-%d %H:%M:%S"))
    return pairs.select(*_ROW, text.alias("possible_cause"))


def _find_queue_events(
    unexplained: pl.DataFrame, queue_events: IntoFrame, chain: Chain
) -> pl.DataFrame:
    """Find slots of a row's epochs in which at least the same amount was processed."""
    slots = collect(open_frame(queue_events, ["slot", *_QUEUE.values()], loader="v2.load_slot"))
    epochs = unexplained.with_columns(
        epoch_of_slot=pl.int_ranges("epoch", pl.col("until_epoch") + 2)
    ).explode("epoch_of_slot")
    amount = pl.col("unexplained_gwei")
    size = {"deposits": amount, "consolidations": amount.abs()}
    parts = []
    for kind, column in _QUEUE.items():
        processed = slots.select(
            "slot",
            gwei=(pl.col(column).cast(pl.Int128) // _WEI_PER_GWEI).cast(pl.Int64),
            epoch_of_slot=pl.col("slot") // chain.slots_per_epoch,
        )
        pairs = epochs.join(processed, "epoch_of_slot").filter(
            size[kind].is_between(1, pl.col("gwei"))
        )
        text = pl.format(f"{kind} processed in slot {{}}", "slot")
        parts.append(pairs.select(*_ROW, text.alias("possible_cause")))
    return pl.concat(parts)
