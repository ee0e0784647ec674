"""The columns of an income history, by kind of reward and penalty, and their exact totals."""

from __future__ import annotations

import functools
import operator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import OVERFLOW, add_bound, is_bound_valid
from beaconframes.frames import as_lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.analysis.engines import Lazy

REWARDS = {
    "attestation_reward_gwei": (
        "attestation_head_reward_gwei",
        "attestation_source_reward_gwei",
        "attestation_target_reward_gwei",
    ),
    "proposal_reward_gwei": (
        "proposer_attestation_inclusion_reward_gwei",
        "proposer_slashing_inclusion_reward_gwei",
        "proposer_sync_inclusion_reward_gwei",
    ),
    "sync_committee_reward_gwei": ("sync_committee_reward_gwei",),
    "slashing_reward_gwei": ("slashing_reward_gwei",),
}
"""The rewards of `income`, by column, and the columns of an income history that they add up."""

PENALTIES = {
    "attestation_penalty_gwei": (
        "attestation_source_penalty_gwei",
        "attestation_target_penalty_gwei",
    ),
    "finality_delay_penalty_gwei": ("finality_delay_penalty_gwei",),
    "sync_committee_penalty_gwei": ("sync_committee_penalty_gwei",),
    "slashing_penalty_gwei": ("slashing_penalty_gwei",),
}
"""The penalties of `income`, by column, and the columns that they add up."""

# `proposals_missed` is a count in spite of its place among the amounts: it is never added to them.
PARTS = {**REWARDS, **PENALTIES}
AMOUNTS = [*(column for part in PARTS.values() for column in part), "tx_fee_reward_wei"]
IS_COMPLETE = "no amount is missing"
_WEI_PER_GWEI = 10**9


def group_parts(rows: Lazy, *, checks_rows: bool = True) -> Lazy:
    """Replace the amounts by `PARTS`, their sums by kind, and drop rows with one missing."""
    return mark_parts(rows, checks_rows=checks_rows).filter(nw.col(IS_COMPLETE)).drop(IS_COMPLETE)


def mark_parts(rows: Lazy, *, checks_rows: bool = True) -> Lazy:
    """Replace the amounts by `PARTS`, their sums by kind; `IS_COMPLETE` if none is missing.

    Priority fees may be missing: without an execution node, an index does not have them.
    """
    schema = rows.collect_schema()
    gwei = [name for name in (*AMOUNTS[:-1], "proposals_missed") if name in schema]
    parts = (
        functools.reduce(operator.add, map(nw.col, columns)).alias(part)
        for part, columns in PARTS.items()
        if (part,) != columns
    )
    unchanged = {column for (column, *more) in PARTS.values() if not more}
    marked = mark_complete(rows, gwei, ["epoch", "time"], checks_rows=checks_rows)
    return marked.with_columns(*parts).drop(*(set(AMOUNTS[:-1]) - unchanged))


def mark_complete(
    rows: Lazy, gwei: Sequence[str], others: Sequence[str] = (), *, checks_rows: bool = True
) -> Lazy:
    """Add `IS_COMPLETE`: whether no amount in *gwei*, and none of *others*, is missing.

    Rows in polars also get the bound of `add_bound`. Amounts that are too large to be added raise,
    without *checks_rows* only once `aggregate` adds up their bounds.
    """
    if rows.implementation.is_polars():
        native: Any = add_bound(rows, [pl.col(name) for name in gwei]).to_native()
        # The bound of a row is null where one of its amounts is null.
        is_known = is_bound_valid() if checks_rows else pl.col(OVERFLOW).is_not_null()
        is_complete = is_known.and_(*(pl.col(name).is_not_null() for name in others))
        return as_lazy(native.with_columns(is_complete.alias(IS_COMPLETE)))
    known = (~nw.col(name).is_null() for name in [*others, *gwei])
    return rows.with_columns(nw.all_horizontal(*known, ignore_nulls=False).alias(IS_COMPLETE))


def sum_gwei() -> nw.Expr:
    """Return the expression for rewards minus penalties."""
    total: nw.Expr = nw.sum_horizontal(*REWARDS) - nw.sum_horizontal(*PENALTIES)
    return total


def add_layers(gwei: str, wei: str) -> nw.Expr:
    """Return the expression for the sum, in wei, of a gwei column and a wei column."""
    in_wei: Any = nw.col(gwei).cast(nw.Decimal(19, 0)) * nw.lit(Decimal(_WEI_PER_GWEI))
    both: nw.Expr = (in_wei + nw.col(wei)).cast(nw.Decimal(28, 0))
    return both
