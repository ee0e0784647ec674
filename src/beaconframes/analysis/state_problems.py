"""Problems with the state of validators: slashings, exits, credentials and balances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes.analysis.engines import open_frame
from beaconframes.analysis.income_columns import PENALTIES
from beaconframes.frames import collect

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame

(_SLASHING,) = PENALTIES["slashing_penalty_gwei"]
_VOTES = (*PENALTIES["attestation_penalty_gwei"], *PENALTIES["finality_delay_penalty_gwei"])
_WORKING_BALANCE = 31_000_000_000
_COMPOUNDING, _ADDRESS, _BLS = "0x02", "0x01", "0x00"
_ADDRESS_DIGITS = 40
_LARGEST_BALANCE = 2048 * 10**9
"""The largest effective balance of a compounding validator, of the specification since Electra."""
_SHARD_COMMITTEE_PERIOD = 256
"""Epochs of activity after which a validator may exit or be consolidated."""
ADVICE = ["BLS credentials", "consolidation possible", "not compounding"]
"""Kinds of rows that state what is possible, not what was lost."""
PROBLEM_KEYS = ["kind", "validator_index", "first_epoch", "rows"]
"""Columns that identify a problem. Rows of several validators have none: they may repeat."""


def find_states(
    table: pl.DataFrame, income: IntoFrame | None, epoch: int | None, first: int | None = None
) -> list[pl.DataFrame]:
    """Return slashings, pending exits, and credentials and balances that could be better.

    A slashed validator that could withdraw before the *first* epoch has lost nothing since.
    """
    credentials = pl.col("withdrawal_credentials")
    has_exited = pl.col("exit_epoch").is_not_null()
    if epoch is not None:
        has_exited = (pl.col("exit_epoch") <= epoch).fill_null(value=False)
    is_pending = pl.col("exit_epoch").is_not_null() & ~has_exited
    is_active = ~pl.col("status").is_in(["pending", "deposited", "exited"]) & ~has_exited
    evidence = {"table": pl.lit("validators"), "cost_gwei": pl.lit(0)}
    slashed = table.filter("slashed").select(
        "validator_index",
        kind=pl.lit("slashed"),
        first_epoch=None,
        table=pl.lit("validators"),
        detail=pl.format("withdrawable from epoch {}", pl.col("withdrawable_epoch")).fill_null(""),
        avoidable=pl.lit(value=True),
    )
    if income is not None:
        slashed = slashed.drop("first_epoch", "table").join(
            _sum_slashing_penalties(income, table), on="validator_index", how="left"
        )
        slashed = slashed.with_columns(
            pl.col("cost_gwei").fill_null(0), table=pl.lit("income_history")
        )
    elif first is not None:
        has_ended = pl.col("withdrawable_epoch") <= first
        cost = pl.when(has_ended).then(pl.lit(0, pl.Int64))
        ended = table.select("validator_index", cost_gwei=cost)
        slashed = slashed.join(ended, on="validator_index")
    exiting = table.filter(is_pending & ~pl.col("slashed")).select(
        "validator_index",
        kind=pl.lit("exiting"),
        first_epoch="exit_epoch",
        last_epoch="exit_epoch",
        rows=pl.format("validator_index == {}", "validator_index"),
        detail=pl.format("exits in epoch {}", "exit_epoch"),
        **evidence,
    )
    is_low = pl.col("effective_balance_gwei") < _WORKING_BALANCE
    low = table.filter(is_active & is_low).select(
        "validator_index",
        kind=pl.lit("low balance"),
        detail=pl.format("{} ETH effective", pl.col("effective_balance_gwei") // 10**9),
        **evidence,
    )
    return [
        slashed,
        exiting,
        low,
        _sum_states(
            table.filter(credentials.str.starts_with(_BLS) & ~pl.col("status").eq("exited")),
            "BLS credentials",
            f'withdrawal_credentials starts with "{_BLS}"',
            "no withdrawals until they are changed to an address",
        ),
        _find_consolidations(table.filter(is_active & pl.col("exit_epoch").is_null()), epoch),
        _sum_states(
            table.filter(credentials.str.starts_with(_ADDRESS) & is_active),
            "not compounding",
            f'withdrawal_credentials starts with "{_ADDRESS}"',
            "rewards can compound after a change to 0x02",
        ),
    ]


def _sum_states(rows: pl.DataFrame, kind: str, condition: str, detail: str) -> pl.DataFrame:
    """Return one row for all validators of a state; none if there is none."""
    if rows.is_empty():
        return pl.DataFrame()
    index = rows["validator_index"][0] if rows.height == 1 else None
    return pl.DataFrame(
        {
            "kind": [kind],
            "validator_index": [index],
            "validators": [rows.height],
            "count": [rows.height],
            "cost_gwei": [None],
            "table": ["validators"],
            "rows": [condition],
            "detail": [detail],
        },
        schema_overrides={"validator_index": pl.Int64, "cost_gwei": pl.Int64},
    )


def _find_consolidations(active: pl.DataFrame, epoch: int | None) -> pl.DataFrame:
    """Return the withdrawal addresses whose validators fit into fewer. One row per address.

    The protocol only requires a compounding target. Of another address, it would be a gift.
    """
    credentials = pl.col("withdrawal_credentials")
    is_old = pl.lit(value=True)
    if epoch is not None:
        is_old = pl.col("activation_epoch") <= epoch - _SHARD_COMMITTEE_PERIOD
    prefix = credentials.str.slice(0, len(_ADDRESS))
    own = active.filter(prefix.is_in([_ADDRESS, _COMPOUNDING]), is_old.fill_null(value=False))
    by_address = own.group_by(address=credentials.str.slice(-_ADDRESS_DIGITS)).agg(
        validators=pl.len(), stake=pl.sum("effective_balance_gwei")
    )
    age = f", activation_epoch <= {epoch - _SHARD_COMMITTEE_PERIOD}" if epoch is not None else ""
    found = []
    for address, count, stake in by_address.sort("address").iter_rows():
        targets = -(-stake // _LARGEST_BALANCE)
        if targets < count:
            text = f"{count:,} validators with {stake // 10**9:,} ETH fit into {targets:,}"
            found.append(
                {
                    "kind": "consolidation possible",
                    "validators": count,
                    "count": count,
                    "table": "validators",
                    "rows": f'withdrawal_credentials ends with "{address}"{age}',
                    "detail": f"{text}, withdrawal address 0x{address}",
                }
            )
    return pl.DataFrame(found).with_columns(
        validator_index=pl.lit(None, pl.Int64), cost_gwei=pl.lit(None, pl.Int64)
    )


def _sum_slashing_penalties(income: IntoFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Return the penalties for slashings, with those for votes after the exit."""
    columns = ["validator_index", "epoch", _SLASHING, *_VOTES]
    rows = collect(open_frame(income, columns, loader="load_income_history"))
    rows = rows.join(table.select("validator_index", "exit_epoch"), on="validator_index")
    # Before the exit, a vote may be missed for other reasons.
    has_exited = pl.col("epoch") >= pl.col("exit_epoch")
    votes = pl.when(has_exited).then(pl.sum_horizontal(_VOTES)).otherwise(0)
    return (
        rows.with_columns(penalty=pl.col(_SLASHING).fill_null(0) + votes)
        .filter(pl.col("penalty") > 0)
        .group_by("validator_index")
        .agg(
            first_epoch=pl.min("epoch"),
            last_epoch=pl.max("epoch"),
            count=pl.len().cast(pl.Int64),
            cost_gwei=pl.sum("penalty"),
            cost_basis=pl.lit("penalty"),
        )
    )
