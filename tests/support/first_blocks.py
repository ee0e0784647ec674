"""What the first block of an epoch pays, computed from the tables of a simulated chain."""

from __future__ import annotations

import numpy as np
import polars as pl

KEY = ["validator_index", "epoch"]


def compute_first_blocks(chain):
    """Limits of the income inside the first block, one row per validator and final epoch.

    The sync committee's part follows from the signature bits. A proposer with several blocks in the
    epoch earned between nothing and all of its rewards for included votes.
    """
    blocks = chain.canonical.filter(
        pl.col("proposer_index").is_not_null(), pl.col("epoch") <= chain.finalized
    )
    first = blocks.filter(pl.col("slot") % 32 == 0).join(
        chain.epochs.select("epoch", "eligible_ether_gwei"), "epoch"
    )
    root = pl.col("eligible_ether_gwei").sqrt().floor().cast(pl.Int64)
    per_increment = 10**9 * chain.meta["preset"]["base_reward_factor"] // root
    seat = per_increment * (pl.col("eligible_ether_gwei") // 10**9) * 2 // 64 // 32 // 512
    seats = chain.sync_committees.select("period", "seat", "validator_index")
    signed = first.with_columns(
        period=pl.col("epoch") // 256, share=seat, seat=pl.int_ranges(0, pl.lit(512))
    )
    bits = np.frombuffer(bytes.fromhex("".join(first["sync_aggregate_bits"].str.slice(2))), "u1")
    has_signed = np.unpackbits(bits, bitorder="little").astype(bool)
    duties = (
        signed.select("epoch", "period", "share", "proposer_index", "seat").explode("seat")
        .with_columns(signed=pl.Series(has_signed))
    )  # fmt: skip
    sync = duties.join(seats, ["period", "seat"]).select(
        *KEY, gwei=pl.when("signed").then("share").otherwise(-pl.col("share"))
    )
    shares = duties.filter("signed").select(
        "epoch", validator_index="proposer_index", gwei=pl.col("share") * 8 // 56
    )
    exact = pl.concat([sync, shares.select(*KEY, "gwei")]).group_by(KEY).agg(pl.col("gwei").sum())
    own = blocks.group_by("epoch", validator_index="proposer_index").agg(
        own=pl.len(), is_first=(pl.col("slot") % 32 == 0).any()
    )
    votes = pl.col("proposer_attestation_inclusion_reward_gwei")
    paid = (
        own.filter("is_first")
        .join(chain.income_history, KEY)
        .select(*KEY, least=pl.when(pl.col("own") == 1).then(votes).otherwise(0), most=votes)
    )
    rows = exact.join(paid, KEY, how="full", coalesce=True).with_columns(
        pl.col("gwei", "least", "most").fill_null(0)
    )
    return rows.select(
        *KEY, low=pl.col("gwei") + pl.col("least"), high=pl.col("gwei") + pl.col("most")
    )


def sum_first_withdrawals(chain):
    """Withdrawals in the first block, one row per validator and epoch."""
    rows = chain.withdrawal_events.filter(pl.col("slot") % 32 == 0)
    return rows.select("validator_index", epoch=pl.col("slot") // 32, paid="amount_gwei")


def compute_balances_before(chain, net):
    """Balances before the first block, from those of the first epoch on. One row per key.

    *net* has the income in ``gwei`` by validator and epoch. The rewards of an epoch are paid at its
    end, so that the balance grows by its income and deposits, less its withdrawals.
    """
    epoch = pl.col("slot") // 32
    moved = pl.concat(
        [
            net.select(*KEY, "gwei"),
            chain.deposit_events.select("validator_index", epoch=epoch, gwei="amount_gwei"),
            chain.withdrawal_events.select(
                "validator_index", epoch=epoch, gwei=-pl.col("amount_gwei")
            ),
        ]
    )
    start = (
        chain.balance_history.filter(pl.col("epoch") == chain.first)
        .join(compute_first_blocks(chain), KEY, how="left")
        .join(sum_first_withdrawals(chain), KEY, how="left")
        .select(
            "validator_index",
            pl.col("epoch") - 1,
            # The lower limit is exact here: the first block of a simulation includes no votes.
            gwei=pl.col("balance_gwei") - pl.col("low").fill_null(0) + pl.col("paid").fill_null(0),
        )
    )
    grid = chain.balance_history.select(
        "validator_index", pl.col("epoch") - 1, gwei=pl.lit(0, pl.Int64)
    )
    return (
        pl.concat([moved, start, grid])
        .group_by(KEY)
        .agg(pl.col("gwei").sum())
        .sort(KEY)
        .select(
            "validator_index",
            pl.col("epoch") + 1,
            before=pl.col("gwei").cum_sum().over("validator_index"),
        )
        .filter(pl.col("epoch") <= chain.finalized + 1)
    )
