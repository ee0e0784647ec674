"""Problems of validators, sorted by their cost: what to look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.attestation_losses import attestation_losses
from beaconframes.analysis.duty_problems import (
    find_daily_losses,
    find_late_votes,
    find_missed_proposals,
    find_missed_votes,
    find_offline_periods,
    find_sync_losses,
)
from beaconframes.analysis.engines import open_frame, resolve_chain, return_table
from beaconframes.analysis.state_problems import ADVICE, find_states
from beaconframes.analysis.vote_causes import add_causes
from beaconframes.frames import collect, to_polars
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain, Unit

_VALIDATORS = [
    "validator_index",
    "status",
    "slashed",
    "balance_gwei",
    "effective_balance_gwei",
    "activation_epoch",
    "exit_epoch",
    "withdrawable_epoch",
    "withdrawal_credentials",
]
SCHEMA: dict[str, Any] = {
    "kind": pl.String,
    "validator_index": pl.Int64,
    "validators": pl.Int64,
    "since": pl.Datetime("us", "UTC"),
    "until": pl.Datetime("us", "UTC"),
    "first_epoch": pl.Int64,
    "last_epoch": pl.Int64,
    "count": pl.Int64,
    "count_unit": pl.String,
    "cost_gwei": pl.Int64,
    "cost_basis": pl.String,
    "avoidable": pl.Boolean,
    "table": pl.String,
    "rows": pl.String,
    "detail": pl.String,
}
COUNT_UNITS = {
    "offline": "votes",
    "missed votes": "votes",
    "late votes": "votes",
    "missed proposal": "slots",
    "orphaned proposal": "slots",
    "sync committee": "duties",
    "slashed": "penalties",
    "exiting": "validators",
    "low balance": "validators",
    **dict.fromkeys(ADVICE, "validators"),
}
"""Every kind of problem, with what its count counts."""


@show_elapsed
def problems(
    validators: IntoFrameT,
    income: IntoFrame | None = None,
    balances: IntoFrame | None = None,
    *,
    stats: IntoFrame | None = None,
    proposals: IntoFrame | None = None,
    blocks: IntoFrame | None = None,
    network: IntoFrame | None = None,
    index: IntoFrame | None = None,
    attestations: IntoFrame | None = None,
    slots: IntoFrame | None = None,
    epoch: int | None = None,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """List what validators lost and what needs attention. One row per problem, most costly first.

    Parameters
    ----------
    validators
        Frame of `load_validators`: slashings, exits, withdrawal credentials and low balances.
    income, balances
        Frames of `load_income_history` and `load_balance_history`: times offline, missed and late
        votes, and missed duties in sync committees.
    stats
        Frame of `load_validator_stats`, instead of *income* and *balances*, for many validators:
        missed votes by day. Late votes are then unknown.
    proposals
        Frame of `load_proposals`, of the same validators: missed and orphaned proposals. Their cost
        is estimated from *income* or *stats*, and *blocks*, as in `missed_proposals`.
    blocks
        Frame of `load_produced_blocks`.
    network
        Frame of `v2.load_network_performance`. It shows which share of head votes is usually late,
        and which share of the sync committee usually signs, of slots that have a block: the counts
        of duties are taken to include the others, unless this gives a share of 1 or more. Default:
        the median of the validators in *income*, if they are at least 20. Otherwise, 98 % of sync
        duties signed is typical.
    index
        Frame of `load_yield_index`: the mean of the network is the cost of missed proposals, and of
        missed duties in *stats*, where nothing else is there to compare.
    attestations, slots
        Frames of `load_attestations` and `load_epoch_slots`, of any of the epochs: they show which
        votes were included late, and which had no block to include them.
    epoch
        The current epoch. Default: the latest of *income*. An exit in a later epoch is pending.
    chain
        Chain of the epochs. Default: that of the frames, from ``time``; mainnet without times.

    Returns
    -------
    The same kind of frame as *validators*
        ``kind``: ``offline`` (votes missed in 3 or more consecutive epochs), ``missed votes``
        (all others of a validator together), ``late votes``, ``missed proposal``, ``orphaned
        proposal``, ``sync committee``, ``slashed``, ``exiting``, ``low balance``, ``BLS
        credentials``, ``consolidation possible`` (one row per withdrawal address) and ``not
        compounding``. ``validator_index`` is null for a row of several ``validators``. ``since`` to
        ``until`` and ``first_epoch`` to ``last_epoch`` are inclusive. ``count`` is in
        ``count_unit``: votes, duties of a sync committee, slots, penalties or validators; both are
        null if nothing is counted. ``cost_gwei`` is null if it is unknown, 0 if nothing was lost;
        advice about credentials and consolidation has none. That of ``slashed`` has the penalties
        for votes after the exit, too. ``cost_basis`` is what the cost is estimated from.
        ``avoidable`` is whether the operator could have avoided it; null if that is unknown.
        ``rows`` is the condition that selects the rows of ``table`` that say so. This computes
        eagerly.
    """
    source = open_frame(validators, _VALIDATORS, loader="load_validators")
    table = collect(source)
    tables: list[tuple[IntoFrame | None, Unit]] = [(income, "epoch"), (balances, "epoch")]
    clock = resolve_chain(chain, *tables, (proposals, "slot"), (stats, "day"), (index, "day"))
    parts = [pl.DataFrame(schema=SCHEMA)]
    if income is not None and balances is not None:
        epoch = epoch if epoch is not None else _find_last_epoch(income)
        losses = to_polars(attestation_losses(income, balances, validators=table))
        losses = add_causes(losses, attestations, slots, until=epoch, clock=clock)
        parts += [find_offline_periods(losses), find_missed_votes(losses)]
        parts.append(find_late_votes(losses, income, network))
        parts.append(find_sync_losses(income, network, clock))
    elif stats is not None:
        parts += find_daily_losses(stats, index, clock)
    if proposals is not None:
        parts.append(
            find_missed_proposals(
                proposals, income, blocks=blocks, stats=stats, index=index, clock=clock
            )
        )
    first = None if stats is None else _find_first_epoch(stats, clock)
    parts += find_states(table, income, epoch, first)
    rows = pl.concat([_complete(part, clock) for part in parts])
    order = ["cost_gwei", "kind", "validator_index", "first_epoch"]
    rows = rows.sort(order, descending=[True, False, False, False], nulls_last=True)
    return return_table(rows, source, validators)


def _complete(part: pl.DataFrame, clock: Chain) -> pl.DataFrame:
    """Add the columns that all rows have: times of the epochs, the condition, and one validator."""
    first, last = pl.col("first_epoch"), pl.col("last_epoch")
    if part.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    unit = pl.col("kind").replace_strict(COUNT_UNITS, return_dtype=pl.String)
    subject = pl.format("validator_index == {}", "validator_index")
    span = (
        pl.when(first == last)
        .then(pl.format("epoch == {}", first))
        .otherwise(pl.format("epoch from {} to {}", first, last))
    )
    defaults = {
        "since": clock.time_expr("epoch", first),
        "until": clock.time_expr("epoch", last + 1) - pl.duration(microseconds=1),
        "validators": pl.lit(1),
        "rows": pl.concat_str(subject, span, separator=", ", ignore_nulls=True),
        "count_unit": pl.when(pl.col("count").is_not_null()).then(unit),
        "detail": pl.lit(""),
    }
    part = part.with_columns(
        pl.lit(None, kind).alias(name)
        for name, kind in SCHEMA.items()
        if name not in part.columns and name not in defaults
    )
    missing = [value.alias(name) for name, value in defaults.items() if name not in part.columns]
    return part.with_columns(missing).select(
        pl.col(name).cast(kind) for name, kind in SCHEMA.items()
    )


def _find_first_epoch(stats: IntoFrame, clock: Chain) -> int | None:
    days = collect(open_frame(stats, ["day"], loader="load_validator_stats"))["day"]
    first: int | None = days.min()  # type: ignore[assignment]
    return None if first is None else first * clock.epochs_per_day


def _find_last_epoch(income: IntoFrame) -> int | None:
    rows = collect(open_frame(income, ["epoch"], loader="load_income_history"))
    last: int | None = rows["epoch"].max()  # type: ignore[assignment]
    return last
