"""Net income of validators: per epoch, or per day, week or month of the UTC calendar."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Literal, get_args

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.adding import MOST_GWEI, added, bound_fits, too_much, with_bound
from beaconframes.analysis.engines import collected, give_moved, opened
from beaconframes.frames import as_lazy, choose, known

if TYPE_CHECKING:
    from datetime import datetime

    from narwhals.stable.v2.typing import IntoFrameT

    from beaconframes.analysis.engines import Lazy

Every = Literal["epoch", "day", "week", "month"]

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
PENALTIES = {
    "attestation_penalty_gwei": (
        "attestation_source_penalty_gwei",
        "attestation_target_penalty_gwei",
    ),
    "finality_delay_penalty_gwei": ("finality_delay_penalty_gwei",),
    "sync_committee_penalty_gwei": ("sync_committee_penalty_gwei",),
    "slashing_penalty_gwei": ("slashing_penalty_gwei",),
}
# `proposals_missed` stands among the amounts on the wire, and is a count: it is never added.
PARTS = {**REWARDS, **PENALTIES}
AMOUNTS = [*(column for part in PARTS.values() for column in part), "tx_fee_reward_wei"]
_UNITS = {"day": "1d", "week": "1w", "month": "1mo"}


def net_income(
    frame: IntoFrameT, *, every: Every = "day", per_validator: bool = False
) -> IntoFrameT:
    """Add up an income history.

    One row per epoch, day, week or month; with *per_validator* per that and validator.

    ``consensus_income_gwei`` is rewards minus penalties, ``execution_income_wei`` the fees of
    proposed blocks, ``net_income_wei`` both; penalties stay positive amounts. ``time`` is the start
    of the row's epoch or of its UTC calendar unit (weeks begin on Monday). ``epochs`` counts the
    epochs that went into the row, from ``first_epoch`` to ``last_epoch``, and ``complete`` tells
    whether they are all that begin in it. Rows of *frame* without a time, or with an amount
    missing, are left out. This computes at once.
    """
    choose("every", every, get_args(Every))
    who = ["validator_index"] if per_validator else []
    columns = ["epoch", "time", *who]
    opener = opened(frame, [*columns, *AMOUNTS], loader="load_income_history")
    start = nw.col("time") if every == "epoch" else nw.col("time").dt.truncate("1d")
    # The engine of the frame reduces to days at most; weeks and months are made of those.
    sums = added(
        known(opener, columns),
        ["start", *who],
        [*PARTS, "tx_fee_reward_wei"],
        lambda part: known_in_parts(part).with_columns(start.alias("start")),
        epochs=("distinct", "epoch"),
        first_epoch=("min", "epoch"),
        last_epoch=("max", "epoch"),
        first_time=("min", "time"),
        last_time=("max", "time"),
    )
    days = collected(sums)
    # What each day holds alone may be too much for a month, or for rewards and penalties together.
    whole = days.select(pl.col(*PARTS).cast(pl.Int128).abs().sum())
    if any(amount >= MOST_GWEI for amount in whole.row(0)):
        raise too_much()
    rows = days.with_columns(
        pl.col("epochs", "first_epoch", "last_epoch").cast(pl.Int64),
        execution_income_wei=pl.col("tx_fee_reward_wei").cast(pl.Decimal(38, 0)),
    )
    if every in {"week", "month"}:
        rows = (
            rows.with_columns(pl.col("start").dt.truncate(_UNITS[every]))
            .group_by("start", *who)
            .agg(
                pl.col("first_epoch", "first_time").min(),
                pl.col("last_epoch", "last_time").max(),
                pl.col("epochs", *PARTS, "execution_income_wei").sum(),
            )
        )
    rows = rows.rename({"start": "time"}).with_columns(_complete(rows, every))
    return give_moved(_with_totals(rows, who).sort("time", *who), opener, frame)


def known_in_parts(rows: Lazy) -> Lazy:
    """Put the columns that people speak of together in place of their parts; keep rows with all."""
    schema = rows.collect_schema()
    gwei = [name for name in (*AMOUNTS[:-1], "proposals_missed") if name in schema]
    parts = (
        functools.reduce(operator.add, map(nw.col, columns)).alias(part)
        for part, columns in PARTS.items()
        if (part,) != columns
    )
    there = ["epoch", "time", AMOUNTS[-1]]
    if rows.implementation.is_polars():
        # The bound of a row is not known where one of its amounts is not.
        rows = with_bound(rows, [pl.col(name) for name in gwei])
        rows = as_lazy(rows.to_native().filter(bound_fits()))
    else:
        there += gwei
    known_rows = rows.filter(*(~nw.col(name).is_null() for name in there))
    single = {column for (column, *more) in PARTS.values() if not more}
    return known_rows.with_columns(*parts).drop(*(set(AMOUNTS[:-1]) - single))


def _with_totals(rows: pl.DataFrame, who: list[str]) -> pl.DataFrame:
    """Add income of the two layers up, exactly, and put the columns in order."""
    consensus = pl.sum_horizontal(*REWARDS) - pl.sum_horizontal(*PENALTIES)
    wei_per_gwei = pl.lit(10**9, pl.Decimal(38, 0))
    return rows.with_columns(consensus.alias("consensus_income_gwei")).select(
        "time",
        *who,
        "first_epoch",
        "last_epoch",
        "epochs",
        "complete",
        *PARTS,
        "consensus_income_gwei",
        pl.col("execution_income_wei").cast(pl.Decimal(28, 0)),
        (
            pl.col("consensus_income_gwei").cast(pl.Decimal(38, 0)) * wei_per_gwei
            + pl.col("execution_income_wei")
        )
        .cast(pl.Decimal(28, 0))
        .alias("net_income_wei"),
    )


def _complete(rows: pl.DataFrame, every: Every) -> pl.Series:
    """Tell of each row whether it has every epoch that begins in its calendar unit."""
    if every == "epoch" or rows.is_empty():
        return pl.Series("complete", [True] * rows.height, pl.Boolean)
    first = rows.row(rows["first_epoch"].arg_min() or 0, named=True)
    last = rows.row(rows["last_epoch"].arg_max() or 0, named=True)
    span = last["last_epoch"] - first["first_epoch"]
    if span == 0:  # One epoch does not tell how long epochs are; no calendar unit is one epoch.
        return pl.Series("complete", [False] * rows.height, pl.Boolean)
    epoch: int = first["first_epoch"]
    begin: datetime = first["first_time"]
    length = (last["last_time"] - begin) / span
    starts = rows.select("start", end=pl.col("start").dt.offset_by(_UNITS[every])).unique()

    def epoch_from(moment: datetime) -> int:
        """Give the first epoch that begins at *moment* or later; none is before epoch 0."""
        before: int = (begin - moment) // length
        return max(0, epoch - before)

    expected = {start: epoch_from(end) - epoch_from(start) for start, end in starts.iter_rows()}
    return pl.Series(
        "complete",
        [seen == expected[start] for start, seen in rows.select("start", "epochs").iter_rows()],
        pl.Boolean,
    )
