"""Execution income: priority fees, or what the proposers received for their blocks.

A relay's builder keeps the priority fees of its block and pays the proposer another amount, which
no income history has. Frames of blocks have it.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.engines import check_distinct, check_indices, move_to_engine, open_frame
from beaconframes.analysis.income_columns import REWARDS
from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, map_rows, select_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame

    from beaconframes.analysis.engines import Lazy

BASIS = "execution_income_basis"
"""The column of results that states what their execution income is: one of these texts."""
FEES_ONLY = "priority fees, relay payments not included"
RECEIVED = "received by the proposer"
UNKNOWN = "unknown, because priority fees are missing"

FEES = "tx_fee_reward_wei"
PRIORITY_FEES = "priority_fees_wei"
_KEYS = ["validator_index", "epoch"]
_PROPOSERS = ("proposer_index", "validator_index")
_AMOUNTS = ("producer_reward_wei", "total_reward_wei")
_WEI = pl.Decimal(38, 0)
_MAX_BLOCKS = 4  # Blocks of one validator in one epoch, where only their fees identify them.
_HINT = (
    "Pass blocks=bf.load_produced_blocks(validators), bf.v2.load_block_rewards(...), or proposals "
    "joined with one of them."
)


def describe_basis(blocks: object) -> str:
    """Return what execution income is, with and without a frame of blocks."""
    return FEES_ONLY if blocks is None else RECEIVED


def build_basis(blocks: object, amount: str) -> nw.Expr:
    """Return the column `BASIS` of rows with an *amount* of execution income, null if unknown."""
    basis = nw.when(nw.col(amount).is_null()).then(nw.lit(UNKNOWN))
    return basis.otherwise(nw.lit(describe_basis(blocks))).alias(BASIS)


def open_income(
    income: IntoFrame,
    columns: Sequence[str],
    blocks: IntoFrame | None,
    groups: Sequence[str] = (),
) -> Lazy:
    """Open an income history; with *blocks*, its fees become what the proposers received.

    Then `PRIORITY_FEES` are the fees. An amount received that is not in *blocks* is an error, and
    so are two rows of one validator and epoch in the same of the user's *groups*.
    """
    inclusion = REWARDS["proposal_reward_gwei"]
    needed = [*_KEYS, *inclusion, FEES]
    used = columns if blocks is None else [*columns, *needed]
    rows = open_frame(income, used, loader="load_income_history")
    check_indices(rows)
    check_distinct(income, _KEYS, groups, loader="load_income_history")
    if blocks is None:
        return rows
    has_block = nw.any_horizontal(*(nw.col(name) > 0 for name in needed[2:]), ignore_nulls=True)
    proposed = collect(map_rows(rows, lambda part: part.select(*needed).filter(has_block)))
    received = _sum_received(read_blocks(blocks), proposed)
    unknown = proposed.filter(pl.col(FEES) > 0).join(received, on=_KEYS, how="anti").sort(_KEYS)
    if unknown.height:
        validator, epoch = unknown.row(0)[:2]
        raise UsageError(
            f"blocks has no block of validator {validator} in epoch {epoch}, which has priority "
            f"fees ({unknown.height:,} of {proposed.height:,} proposals have no block)",
            hint="Load the blocks of all validators of the income, with their proposers. " + _HINT,
        )
    return map_rows(rows.join(move_to_engine(received, rows), on=_KEYS, how="left"), _replace_fees)


def _replace_fees(rows: Lazy) -> Lazy:
    received = nw.when(nw.col("received_wei").is_null()).then(nw.col(FEES))
    return rows.with_columns(
        nw.col(FEES).alias(PRIORITY_FEES), received.otherwise(nw.col("received_wei")).alias(FEES)
    ).drop("received_wei")


def read_blocks(blocks: Any) -> pl.DataFrame:
    """Read proposer (null if unknown), epoch, fees and amount received of each proposed block."""
    loader = "load_produced_blocks"
    try:
        select_columns(blocks, ["epoch"], loader=loader)
    except UsageError as error:
        raise UsageError(f"blocks: {error.message}", hint=error.hint) from None
    names = nw.from_native(blocks).collect_schema().names()
    amount = next((name for name in _AMOUNTS if name in names), None)
    proposer = next((name for name in _PROPOSERS if name in names), None)
    if amount is None or (proposer is None and PRIORITY_FEES not in names):
        raise UsageError(
            f"blocks has no column {' or '.join(_PROPOSERS if amount else _AMOUNTS)}",
            hint=f"{_HINT} Frames of load_epoch_slots have no rewards: performance takes slots=.",
        )
    identity = [name for name in ("slot", "block_number") if name in names][:1]
    optional = [name for name in ("status", PRIORITY_FEES) if name in names]
    columns = ["epoch", amount, *identity, *optional, *([proposer] if proposer else [])]
    # Only orphaned blocks, and those before the merge, have no epoch.
    rows = collect(drop_missing(open_frame(blocks, columns, loader=loader), ["epoch"]))
    if "status" in names:
        rows = rows.filter(pl.col("status") == "proposed")
    rows = rows.unique(identity) if identity else rows
    empty = pl.lit(None, pl.Int64)
    return rows.select(
        (pl.col(proposer) if proposer else empty).cast(pl.Int64).alias("validator_index"),
        pl.col("epoch").cast(pl.Int64),
        (pl.col(PRIORITY_FEES) if PRIORITY_FEES in names else empty).cast(_WEI).alias(FEES),
        pl.col(amount).cast(_WEI).alias("received_wei"),
    )


def _sum_received(blocks: pl.DataFrame, proposed: pl.DataFrame) -> pl.DataFrame:
    """Sum what each validator received in each epoch; a block without an amount leaves no sum."""
    known = blocks.filter(pl.col("validator_index").is_not_null())
    unknown = blocks.filter(pl.col("validator_index").is_null(), pl.col(FEES).is_not_null())
    found = _find_proposers(unknown, proposed) if unknown.height else unknown
    amount = pl.col("received_wei")
    return (
        pl.concat([known, found])
        .group_by(pl.col(_KEYS))
        .agg(amount.sum(), is_known=amount.is_not_null().all())
        .filter("is_known")
        .select(
            *(pl.col(key).cast(proposed.schema[key]) for key in _KEYS),
            amount.cast(pl.Decimal(28, 0)),
        )
    )


def _find_proposers(blocks: pl.DataFrame, proposed: pl.DataFrame) -> pl.DataFrame:
    """Find the proposers of blocks of V2, which do not name them, by epoch and priority fees.

    The fees of an income row are those of one block, or of several in the same epoch.
    """
    rows = proposed.select(*_KEYS, pl.col(FEES).cast(_WEI)).join(
        blocks.select("epoch").unique(), on="epoch", how="semi"
    )
    by_epoch = {epoch: group.rows(named=True) for (epoch,), group in blocks.group_by("epoch")}
    found = []
    for row in rows.sort(FEES).iter_rows(named=True):
        left = by_epoch[row["epoch"]]
        sizes = range(1, min(len(left), _MAX_BLOCKS) + 1)
        subsets = (subset for size in sizes for subset in combinations(left, size))
        match = next((s for s in subsets if sum(b[FEES] for b in s) == row[FEES]), ())
        same_fees = {block["received_wei"] for block in left if block[FEES] == row[FEES]}
        if len(match) == 1 and len(same_fees) > 1:
            raise UsageError(
                f"several blocks of epoch {row['epoch']} have {row[FEES]} wei of priority fees",
                hint="Join their proposers: a column proposer_index, as load_proposals has it.",
            )
        by_epoch[row["epoch"]] = [block for block in left if block not in match]
        found += [block | {"validator_index": row["validator_index"]} for block in match]
    return pl.DataFrame(found, schema=blocks.schema, orient="row")
