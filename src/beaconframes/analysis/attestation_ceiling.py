"""The ceiling of attestation income: what the best decile of comparable validators earned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.engines import collect_sums, move_to_engine
from beaconframes.analysis.income_columns import IS_COMPLETE, PENALTIES, REWARDS, mark_complete

if TYPE_CHECKING:
    from beaconframes.analysis.engines import Lazy

CEILING = "attestation_ceiling_gwei"
ATTESTED = "attestation_income_gwei"
_EQUAL = ["epoch", "effective_balance_gwei"]
_BEST_OF = 10


def add_attestation_income(income_rows: Lazy) -> Lazy:
    """Add ``attestation_income_gwei``; null where one of its amounts is missing."""
    rewards = REWARDS["attestation_reward_gwei"]
    penalties = PENALTIES["attestation_penalty_gwei"]
    net_income = nw.sum_horizontal(*rewards) - nw.sum_horizontal(*penalties)
    marked = mark_complete(income_rows, [*rewards, *penalties])
    return marked.with_columns(nw.when(nw.col(IS_COMPLETE)).then(net_income).alias(ATTESTED))


def add_attestation_ceiling(rows: Lazy) -> Lazy:
    """Select attestation income, and add its ceiling. One row per validator and epoch.

    The ceiling is the smallest income of the best decile: one in ten validators with the same
    effective balance reached it or more in the same epoch. *rows* have attestation income and
    effective balances; rows without attestation income are left out.
    """
    votes = rows.select("validator_index", *_EQUAL, ATTESTED).filter(~nw.col(ATTESTED).is_null())
    # Many validators have the same amount, so the counts fit into memory.
    counts = votes.group_by(*_EQUAL, ATTESTED).agg(nw.len().alias("count"))
    ceilings = move_to_engine(_find_best_decile(collect_sums(counts)), votes)
    # Every row has a ceiling. polars reorders inner joins, which here multiplies the rows.
    return votes.join(ceilings, on=_EQUAL, how="left")


def _find_best_decile(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the amount that a tenth of the validators, rounded up, reached."""
    count = pl.col("count").cast(pl.Int64)
    reached = count.cum_sum().over(_EQUAL) * _BEST_OF >= count.sum().over(_EQUAL)
    return (
        counts.sort(*_EQUAL, ATTESTED, descending=[False, False, True])
        .filter(reached)
        .group_by(_EQUAL)
        .agg(pl.col(ATTESTED).max().alias(CEILING))
    )
