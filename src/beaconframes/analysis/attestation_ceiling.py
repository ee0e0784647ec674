"""The ceiling of attestation income: what the best decile of comparable validators earned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import check_row_sums
from beaconframes.analysis.engines import collect_sums, move_to_engine
from beaconframes.analysis.income_columns import PENALTIES, REWARDS
from beaconframes.frames import drop_missing, map_rows

if TYPE_CHECKING:
    from beaconframes.analysis.engines import Lazy

CEILING = "attestation_ceiling_gwei"
_OWN = "attestation_income_gwei"
_KEYS = ["validator_index", "epoch"]
_EQUAL = ["epoch", "effective_balance_gwei"]
_BEST_OF = 10


def compute_attestation_ceiling(income_rows: Lazy, balance_rows: Lazy) -> Lazy:
    """Compute attestation income and its ceiling. One row per validator and epoch.

    The ceiling is the smallest income of the best decile: one in ten validators with the same
    effective balance reached it or more in the same epoch. Columns: ``validator_index``, ``epoch``,
    ``attestation_income_gwei``, ``attestation_ceiling_gwei``.
    """
    rewards = REWARDS["attestation_reward_gwei"]
    penalties = PENALTIES["attestation_penalty_gwei"]
    net_income = nw.sum_horizontal(*rewards) - nw.sum_horizontal(*penalties)
    votes = map_rows(
        check_row_sums(
            drop_missing(income_rows, [*_KEYS, *rewards, *penalties]), [*rewards, *penalties]
        ),
        lambda part: part.select(*_KEYS, net_income.alias(_OWN)),
    )
    rows = votes.join(drop_missing(balance_rows, [*_KEYS, _EQUAL[1]]), on=_KEYS, how="inner")
    # Many validators have the same amount, so the counts fit into memory.
    counts = rows.group_by(*_EQUAL, _OWN).agg(nw.len().alias("count"))
    ceilings = move_to_engine(_find_best_decile(collect_sums(counts)), rows)
    joined = rows.join(ceilings, on=_EQUAL, how="inner")
    return joined.select(*_KEYS, _OWN, CEILING)


def _find_best_decile(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the amount that a tenth of the validators, rounded up, reached."""
    count = pl.col("count").cast(pl.Int64)
    reached = count.cum_sum().over(_EQUAL) * _BEST_OF >= count.sum().over(_EQUAL)
    return (
        counts.sort(*_EQUAL, _OWN, descending=[False, False, True])
        .filter(reached)
        .group_by(_EQUAL)
        .agg(pl.col(_OWN).max().alias(CEILING))
    )
