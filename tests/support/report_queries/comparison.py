"""Income beside that of average validators: parts that add up to the difference, in whole wei."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from .problems import ADVICE, query_problems

if TYPE_CHECKING:
    from .source import Source

VOTES = ("offline", "missed votes", "late votes")


def query_comparison(source: Source) -> pl.DataFrame | None:
    """The index pays by effective balance: 54 of 64 parts for votes, 8 for blocks, 2 for sync."""
    if source.index is None or source.income["fees"].null_count():
        return None
    index = {row["day"]: row for row in source.index.iter_rows(named=True)}
    periods = source.validators.select("validator_index", "activation_epoch", "exit_epoch")
    is_active = (pl.col("activation_epoch") <= pl.col("epoch")) & (
        pl.col("exit_epoch").is_null() | (pl.col("exit_epoch") > pl.col("epoch"))
    )
    days = (
        source.staked.join(periods, on="validator_index")
        .with_columns(day=pl.col("epoch") // source.day, active=is_active)
        .group_by("day")
        .agg(
            stake=pl.col("effective_balance_gwei").filter("active").sum(),
            cl=pl.sum("cl"),
            votes=pl.sum_horizontal(
                f"attestation_{vote}_reward_gwei" for vote in ("head", "source", "target")
            )
            .filter("active")
            .sum()
            - pl.sum_horizontal(f"attestation_{vote}_penalty_gwei" for vote in ("source", "target"))
            .filter("active")
            .sum(),
            sync=pl.sum_horizontal(
                "sync_committee_reward_gwei", "sync_committee_penalty_gwei"
            ).sum(),
            fees=pl.col("fees").sum(),
            el=pl.col("el").sum(),
        )
    )
    by_day = source.blocks.group_by(day=pl.col("epoch") // source.day)
    counts = dict(by_day.len().iter_rows())
    in_chain = dict(by_day.agg((pl.col("status") == "proposed").sum()).iter_rows())
    slots = source.day * source.slots
    sums = dict.fromkeys(
        ("average", "rewards", "votes", "block", "sync", "fees", "made", "tips", "mean"), 0
    )
    estimated = 0
    for row in days.iter_rows(named=True):
        nearest = min(index, key=lambda day: abs(day - row["day"]))
        estimated += nearest != row["day"]
        rewards = int(index[nearest]["consensus_rewards_sum_wei"])
        fees = int(index[nearest]["tx_fees_sum_wei"])
        whole = int(index[nearest]["effective_balances_sum_wei"]) * source.day
        amounts = {
            "average": rewards + fees,
            "rewards": rewards,
            "votes": rewards * 54 // 64,
            "block": rewards * 8 // 64,
            "sync": rewards * 2 // 64,
            "fees": fees,
        }
        for name, amount in amounts.items():
            sums[name] += amount * row["stake"] * 10**9 // whole
        sums["made"] += counts.get(row["day"], 0) * (rewards * 8 // 64 // slots)
        sums["tips"] += counts.get(row["day"], 0) * (fees // slots)
        # What missed proposals would have received is in their cost.
        sums["mean"] += in_chain.get(row["day"], 0) * (fees // slots)
    costs = query_problems(source).filter(~pl.col("kind").is_in(ADVICE))
    lost = costs.filter(pl.col("kind").is_in(VOTES))["cost_gwei"]
    full = (days["votes"].sum() + lost.sum()) * 10**9
    avoidable = pl.col("avoidable")
    missed = {
        f"missed_{name}_wei": -costs.filter(chosen)["cost_gwei"].sum() * 10**9
        for name, chosen in (
            ("avoidable", avoidable),
            ("unavoidable", ~avoidable),
            ("unknown", avoidable.is_null()),
        )
    }
    scaled = {
        name: sums[name] * full // sums["votes"] for name in ("rewards", "block", "sync", "made")
    }
    earned = days["cl"].sum() * 10**9 + days["fees"].sum()
    parts = {
        **missed,
        "average_missed_wei": scaled["rewards"] - sums["rewards"],
        "proposal_luck_wei": scaled["made"] - scaled["block"] + sums["tips"] - sums["fees"],
        "sync_luck_wei": days["sync"].sum() * 10**9 - scaled["sync"],
        "execution_wei": days["fees"].sum() - sums["mean"],
    }
    difference = earned - sums["average"]
    amounts = {
        "earned_wei": earned,
        "average_wei": sums["average"],
        "difference_wei": difference,
        **parts,
        "unexplained_wei": difference - sum(parts.values()),
        "builder_payments_wei": days["el"].sum() - days["fees"].sum(),
    }
    return pl.DataFrame(
        {
            **{name: [Decimal(wei)] for name, wei in amounts.items()},
            "days": [days.height],
            "days_estimated": [estimated],
            "consensus_only": [False],
        }
    )
