"""Problems of validators, sorted by their cost: what to look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from beaconframes.analysis.attestation_losses import attestation_losses, attestation_rates
from beaconframes.analysis.daily_income import daily_losses
from beaconframes.analysis.engines import open_frame, resolve_chain, return_table
from beaconframes.analysis.proposals import missed_proposals
from beaconframes.analysis.sync_income import sync_income
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
    "cost_gwei": pl.Int64,
    "avoidable": pl.Boolean,
    "table": pl.String,
    "rows": pl.String,
    "detail": pl.String,
}
_OFFLINE = 3
"""Missed votes in this many consecutive epochs are a time offline."""
_MANY = 3.0
"""A validator that fails this many standard errors more often than usual has a fault of its own."""
_ENOUGH = 20
"""Number of validators whose median shows what is usual."""
_GWEI_PER_WEI = 10**9
_WORKING_BALANCE = 31_000_000_000
_COMPOUNDING, _ADDRESS, _BLS = "0x02", "0x01", "0x00"


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
        is estimated from *income* and *blocks*, as in `missed_proposals`.
    blocks
        Frame of `load_produced_blocks`.
    network
        Frame of `v2.load_network_performance`. It shows which share of head votes is usually late,
        and which share of the sync committee usually signs. Default: the median of the validators
        in *income*, if they are at least 20.
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
        credentials`` and ``not compounding``. ``validator_index`` is null for a row of several
        ``validators``. ``since`` to ``until`` and ``first_epoch`` to ``last_epoch`` are inclusive;
        ``count`` is the number of votes, slots or validators. ``cost_gwei`` is null if it is
        unknown, 0 if nothing was lost. ``avoidable`` is whether the operator could have avoided
        it; null if that is unknown. ``rows`` is the condition that selects the rows of ``table``
        that say so. This computes at once.
    """
    source = open_frame(validators, _VALIDATORS, loader="load_validators")
    table = collect(source)
    tables: list[tuple[IntoFrame | None, Unit]] = [(income, "epoch"), (balances, "epoch")]
    clock = resolve_chain(chain, *tables, (proposals, "slot"), (stats, "day"))
    parts = [pl.DataFrame(schema=SCHEMA)]
    if income is not None and balances is not None:
        losses = to_polars(attestation_losses(income, balances, validators=table))
        parts += [_find_offline_periods(losses), _find_missed_votes(losses)]
        parts.append(_find_late_votes(losses, income, network))
        parts.append(_find_sync_losses(income, network, clock))
        epoch = epoch if epoch is not None else _find_last_epoch(income)
    elif stats is not None:
        parts += _find_daily_losses(stats, clock)
    if proposals is not None:
        parts.append(_find_missed_proposals(proposals, income, blocks))
    parts += _find_states(table, income, epoch)
    rows = pl.concat([_complete(part, clock) for part in parts])
    order = ["cost_gwei", "kind", "validator_index", "first_epoch"]
    rows = rows.sort(order, descending=[True, False, False, False], nulls_last=True)
    return return_table(rows, source, validators)


def _complete(part: pl.DataFrame, clock: Chain) -> pl.DataFrame:
    """Add the columns that all rows have: times of the epochs, the condition, and one validator."""
    first, last = pl.col("first_epoch"), pl.col("last_epoch")
    if part.is_empty():
        return pl.DataFrame(schema=SCHEMA)
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


def _add_runs(losses: pl.DataFrame) -> pl.DataFrame:
    """Select missed votes, and add the run of consecutive epochs and its length."""
    missed = losses.filter(pl.col("fault") == "missed")
    run = pl.col("epoch") - pl.int_range(pl.len()).over("validator_index", order_by="epoch")
    return missed.with_columns(run=run).with_columns(length=pl.len().over("validator_index", "run"))


def _find_offline_periods(losses: pl.DataFrame) -> pl.DataFrame:
    runs = _add_runs(losses).filter(pl.col("length") >= _OFFLINE)
    return _sum_losses(runs, ["validator_index", "run"], "offline", avoidable=True)


def _find_missed_votes(losses: pl.DataFrame) -> pl.DataFrame:
    single = _add_runs(losses).filter(pl.col("length") < _OFFLINE)
    return _sum_losses(single, ["validator_index"], "missed votes", avoidable=True)


def _sum_losses(
    rows: pl.DataFrame, keys: list[str], kind: str, *, avoidable: bool | None = None
) -> pl.DataFrame:
    return rows.group_by(keys).agg(
        kind=pl.lit(kind),
        first_epoch=pl.min("epoch"),
        last_epoch=pl.max("epoch"),
        count=pl.len().cast(pl.Int64),
        cost_gwei=pl.sum("lost_gwei"),
        avoidable=pl.lit(avoidable, pl.Boolean),
        table=pl.lit("income_history"),
    )


def _find_late_votes(
    losses: pl.DataFrame, income: IntoFrame, network: IntoFrame | None
) -> pl.DataFrame:
    """Sum votes that were included, but not fully rewarded. One row per validator.

    Some head votes of every validator are late, because a block was late. More than usual are a
    fault of the validator.
    """
    late = _sum_losses(
        losses.filter(pl.col("fault") != "missed"), ["validator_index"], "late votes"
    )
    rates = to_polars(attestation_rates(income, every="all", by="validator_index"))
    included = pl.col("votes") - pl.col("missed")
    rates = rates.with_columns(included=included).filter(pl.col("included") > 0)
    share = 1 - pl.col("head") / pl.col("included")
    if network is not None:
        correct = _divide(network, "valuable_correct_head", "attestations_included")
        usual = None if correct is None else 1 - correct
    else:
        usual = rates.select(share.median()).item() if rates.height >= _ENOUGH else None
    rates = rates.with_columns(late=share, usual=pl.lit(usual, pl.Float64))
    error = (pl.col("usual") * (1 - pl.col("usual")) / pl.col("included")).sqrt()
    detail = pl.format(
        "{} % of votes late, usual are {} %",
        (100 * pl.col("late")).round(1),
        (100 * pl.col("usual")).round(1),
    )
    return late.drop("avoidable").join(
        rates.select(
            "validator_index",
            avoidable=pl.col("late") > pl.col("usual") + _MANY * error,
            detail=detail.fill_null(""),
        ),
        on="validator_index",
        how="left",
    )


def _find_sync_losses(income: IntoFrame, network: IntoFrame | None, clock: Chain) -> pl.DataFrame:
    """Return duties in sync committees that were not signed. One row per validator and period."""
    duties = to_polars(sync_income(income, chain=clock))
    usual = None
    if duties.is_empty():
        return duties
    if network is not None:
        usual = _divide(network, "sync_committee_successful", "sync_committee_assigned")
    elif duties["validator_index"].n_unique() >= _ENOUGH:
        usual = duties.select(pl.col("signed_rate").median()).item()
    expected = pl.lit(usual, pl.Float64)
    slots = (pl.col("last_epoch") - pl.col("first_epoch") + 1) * clock.slots_per_epoch
    error = (expected * (1 - expected) / slots).sqrt()
    signed, others = (100 * rate for rate in (pl.col("signed_rate"), expected))
    detail = pl.format("signed {} % in period {}", signed.round(1), "period")
    return duties.filter(pl.col("lost_gwei") > 0).select(
        "validator_index",
        "first_epoch",
        "last_epoch",
        kind=pl.lit("sync committee"),
        cost_gwei=pl.col("lost_gwei"),
        avoidable=pl.col("signed_rate") < expected - _MANY * error,
        table=pl.lit("income_history"),
        detail=pl.concat_str(
            detail, pl.format("usual are {} %", others.round(1)), separator=", ", ignore_nulls=True
        ),
    )


def _divide(frame: IntoFrame, part: str, whole: str) -> float | None:
    """Return the ratio of two counts of a frame of one row; None if there was nothing to count."""
    row = to_polars(frame).row(0, named=True)
    return row[part] / row[whole] if row[whole] else None


def _find_daily_losses(stats: IntoFrame, clock: Chain) -> list[pl.DataFrame]:
    """Return missed votes, and missed duties in sync committees, from daily statistics."""
    losses = to_polars(daily_losses(stats, chain=clock))
    length = clock.epochs_per_day
    found = []
    for kind, count, cost in (
        ("missed votes", "missed_attestations", "attestation_lost_gwei"),
        ("sync committee", "missed_sync", None),
    ):
        total = pl.lit(None, pl.Int64)
        if cost is not None:
            total = pl.when(~pl.col(cost).is_null().any()).then(pl.sum(cost))
        found.append(
            losses.filter(pl.col(count) > 0)
            .group_by("validator_index")
            .agg(
                kind=pl.lit(kind),
                first_epoch=pl.min("day") * length,
                last_epoch=(pl.max("day") + 1) * length - 1,
                count=pl.sum(count),
                cost_gwei=total,
                avoidable=pl.lit(value=True) if cost else pl.lit(None, pl.Boolean),
                table=pl.lit("validator_stats"),
                rows=pl.format(
                    f"validator_index == {{}}, {count} > 0", pl.col("validator_index").first()
                ),
                detail=pl.format(
                    "on {} day{}",
                    pl.len(),
                    pl.when(pl.len() > 1).then(pl.lit("s")).otherwise(pl.lit("")),
                ),
            )
        )
    return found


def _find_missed_proposals(
    proposals: IntoFrame, income: IntoFrame | None, blocks: IntoFrame | None
) -> pl.DataFrame:
    columns = ["slot", "epoch", "time", "status", "proposer_index"]
    rows = (
        to_polars(proposals).select(columns).filter(pl.col("status").is_in(["missed", "orphaned"]))
    )
    cost = pl.lit(None, pl.Int64)
    if income is not None and rows.height:
        costs = to_polars(missed_proposals(proposals, income, blocks=blocks))
        rows = rows.select("slot").unique().join(costs, on="slot")
        execution = pl.col("cost_execution_wei").cast(pl.Int128) // _GWEI_PER_WEI
        cost = pl.col("cost_consensus_gwei") + execution.fill_null(0).cast(pl.Int64)
    return rows.select(
        pl.format("{} proposal", "status").alias("kind"),
        pl.col("proposer_index").alias("validator_index"),
        since=pl.col("time"),
        until=pl.col("time"),
        first_epoch=pl.col("epoch"),
        last_epoch=pl.col("epoch"),
        count=pl.lit(1),
        cost_gwei=cost,
        # An orphaned block may be a late one, or the next proposer ignored it.
        avoidable=pl.when(pl.col("status") == "missed").then(pl.lit(value=True)),
        table=pl.lit("proposals"),
        rows=pl.format("slot == {}", "slot"),
    )


def _find_states(
    table: pl.DataFrame, income: IntoFrame | None, epoch: int | None
) -> list[pl.DataFrame]:
    """Return slashings, pending exits, and credentials and balances that could be better."""
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
            _sum_slashing_penalties(income), on="validator_index", how="left"
        )
        slashed = slashed.with_columns(table=pl.lit("income_history"))
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
            "withdrawals need a change to an address",
        ),
        _sum_states(
            table.filter(credentials.str.starts_with(_ADDRESS) & is_active),
            "not compounding",
            f'withdrawal_credentials starts with "{_ADDRESS}"',
            "since Electra, balances can compound and be consolidated",
        ),
    ]


def _sum_states(rows: pl.DataFrame, kind: str, condition: str, detail: str) -> pl.DataFrame:
    """Return one row for all validators of a state; none if there is none."""
    if rows.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    index = rows["validator_index"][0] if rows.height == 1 else None
    return pl.DataFrame(
        {
            "kind": [kind],
            "validator_index": [index],
            "validators": [rows.height],
            "count": [rows.height],
            "cost_gwei": [0],
            "table": ["validators"],
            "rows": [condition],
            "detail": [detail],
        },
        schema_overrides={"validator_index": pl.Int64},
    )


def _sum_slashing_penalties(income: IntoFrame) -> pl.DataFrame:
    columns = ["validator_index", "epoch", "slashing_penalty_gwei"]
    rows = collect(open_frame(income, columns, loader="load_income_history"))
    return (
        rows.filter(pl.col("slashing_penalty_gwei") > 0)
        .group_by("validator_index")
        .agg(
            first_epoch=pl.min("epoch"),
            last_epoch=pl.max("epoch"),
            count=pl.len().cast(pl.Int64),
            cost_gwei=pl.sum("slashing_penalty_gwei"),
        )
    )


def _find_last_epoch(income: IntoFrame) -> int | None:
    rows = collect(open_frame(income, ["epoch"], loader="load_income_history"))
    last: int | None = rows["epoch"].max()  # type: ignore[assignment]
    return last


__all__ = ["SCHEMA", "problems"]
