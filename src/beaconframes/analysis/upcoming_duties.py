"""What is known of the future of validators: duties, activations, exits and withdrawals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.engines import (
    add_date,
    check_distinct,
    open_frame,
    resolve_chain,
    return_table,
)
from beaconframes.frames import collect, list_column_names, read_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.calendar import Chain

_VALIDATOR = "validator_index"
_SEATS = [_VALIDATOR, "start_epoch", "end_epoch"]
_DUTIES = ["duty", "slot", _VALIDATOR]
_STATES = {
    "activation_epoch": "activation",
    "exit_epoch": "exit",
    "withdrawable_epoch": "full withdrawal",
}
_SCHEMA: dict[str, Any] = {
    "kind": pl.String,
    _VALIDATOR: pl.Int64,
    "since": pl.Datetime("us", "UTC"),
    "until": pl.Datetime("us", "UTC"),
    "slot": pl.Int64,
    "first_epoch": pl.Int64,
    "last_epoch": pl.Int64,
}
_ELIGIBILITY = "activation_eligibility_epoch"
_TO_ACTIVATION = 6
"""Epochs from eligibility to activation: one until it is final, and five of the specification."""
_LOOKAHEAD = 5
"""A validator that is activated at the end of an epoch is active this many epochs later."""
_NEVER = 2**40
"""Services that do not use null have an epoch above this for "never"."""


@show_elapsed
def upcoming_duties(
    validators: IntoFrameT,
    committees: IntoFrame | None = None,
    duties: IntoFrame | None = None,
    *,
    epoch: int | None = None,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """List what is known of the future of validators. One row per duty or event.

    Parameters
    ----------
    validators
        Frame of `load_validators`: activations, exits and full withdrawals after *epoch*. With the
        column ``activation_eligibility_epoch``: the earliest activation of those that wait.
    committees
        Frame of `load_sync_committees`, such as of the current and the next period.
    duties
        Frame of `v2.load_upcoming_duty_slots`: proposals. Frames without the columns ``duty``,
        ``slot`` and ``validator_index`` have none.
    epoch
        The current epoch. Default: that of the clock of this machine.
    chain
        Chain of the epochs. Default: that of *duties*, from ``time``; mainnet without times.

    Returns
    -------
    The same kind of frame as *validators*
        ``kind``: ``in sync committee`` (it has begun), ``sync committee`` (it will), ``proposal``,
        ``activation``, ``earliest activation``, ``exit`` or ``full withdrawal``.
        ``validator_index``, ``since`` and ``until`` (UTC), ``slot`` of a proposal, ``first_epoch``
        and ``last_epoch``, inclusive. Sorted by epoch. This computes eagerly.

    Notes
    -----
    The chain activates an eligible validator once its epoch of eligibility is final. Since Electra,
    that is 6 epochs later, or more while epochs are not final; before Electra, it also waits for
    validators that were eligible earlier. Deposits that still wait have no epoch of eligibility.
    """
    optional = [_ELIGIBILITY] if _ELIGIBILITY in list_column_names(validators) else []
    source = open_frame(validators, [_VALIDATOR, *_STATES, *optional], loader="load_validators")
    check_distinct(validators, [_VALIDATOR], loader="load_validators")
    table = collect(source)
    clock = resolve_chain(chain, (duties, "slot"))
    now = clock.at("epoch", datetime.now(UTC)) if epoch is None else epoch
    parts = [pl.DataFrame(schema=_SCHEMA)]
    if committees is not None:
        parts.append(_list_seats(committees, table, now))
    if duties is not None and set(_DUTIES) <= set(list_column_names(duties)):
        parts.append(_list_proposals(duties, table, clock))
    for column, kind in _STATES.items():
        later = table.filter(pl.col(column) > now, pl.col(column) < _NEVER)
        event = pl.col(column).cast(pl.Int64)
        parts.append(
            later.select(_VALIDATOR, kind=pl.lit(kind), first_epoch=event, last_epoch=event)
        )
    if optional:
        parts.append(_list_earliest_activations(table, now))
    rows = pl.concat(parts, how="diagonal_relaxed")
    first, last = pl.col("first_epoch"), pl.col("last_epoch")
    rows = rows.with_columns(
        since=pl.coalesce("since", clock.time_expr("epoch", first)),
        until=pl.coalesce("until", clock.time_expr("epoch", last + 1)),
    )
    result = rows.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())
    return return_table(result.sort("first_epoch", "kind", _VALIDATOR), source, validators)


@show_elapsed
def upcoming_totals(upcoming: IntoFrameT, *, tz: str = "UTC") -> IntoFrameT:
    """Count what is coming up. One row per kind and day.

    Parameters
    ----------
    upcoming
        Frame of `upcoming_duties`.
    tz
        Time zone of the days.

    Returns
    -------
    The same kind of frame
        ``kind``, ``date`` on which it begins, ``count``, the number of ``validators``, ``since``
        and ``last_since`` (the first and the last begin), ``until`` (the last end), ``first_epoch``
        and ``last_epoch``. Sorted by time. This computes eagerly.
    """
    columns = ["kind", _VALIDATOR, "since", "until", "first_epoch", "last_epoch"]
    source = open_frame(upcoming, columns, loader="analysis.upcoming_duties")
    rows = collect(add_date(source.with_columns(time=nw.col("since")), "day", tz))
    totals = rows.group_by("kind", pl.col("date").cast(pl.Date)).agg(
        pl.len().cast(pl.Int64).alias("count"),
        pl.col(_VALIDATOR).n_unique().cast(pl.Int64).alias("validators"),
        pl.min("since"),
        pl.max("since").alias("last_since"),
        pl.max("until"),
        pl.min("first_epoch"),
        pl.max("last_epoch"),
    )
    return return_table(totals.sort("since", "kind"), source, upcoming)


def _list_earliest_activations(table: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return when validators without an epoch of activation can be activated at the earliest."""
    eligible, activated = (pl.col(n).cast(pl.Int64) for n in (_ELIGIBILITY, "activation_epoch"))
    waits = (eligible < _NEVER) & (activated.is_null() | (activated >= _NEVER))
    epoch = pl.max_horizontal(eligible + _TO_ACTIVATION, now + _LOOKAHEAD)
    kind = pl.lit("earliest activation")
    return table.filter(waits).select(_VALIDATOR, kind=kind, first_epoch=epoch, last_epoch=epoch)


def _list_seats(committees: IntoFrame, table: pl.DataFrame, now: int) -> pl.DataFrame:
    """Return one row per member and period that has not ended, also for several seats."""
    seats = read_rows(committees, _SEATS, loader="load_sync_committees").unique(maintain_order=True)
    has_begun = pl.col("start_epoch") <= now
    own = seats.join(table, on=_VALIDATOR, how="semi").filter(pl.col("end_epoch") >= now)
    return own.select(
        _VALIDATOR,
        kind=pl.when(has_begun)
        .then(pl.lit("in sync committee"))
        .otherwise(pl.lit("sync committee")),
        first_epoch="start_epoch",
        last_epoch="end_epoch",
    )


def _list_proposals(duties: IntoFrame, table: pl.DataFrame, clock: Chain) -> pl.DataFrame:
    check_distinct(duties, _DUTIES, loader="v2.load_upcoming_duty_slots")
    rows = read_rows(duties, _DUTIES, loader="v2.load_upcoming_duty_slots")
    rows = rows.join(table, on=_VALIDATOR, how="semi")
    slot = pl.col("slot").cast(pl.Int64)
    epoch = slot // clock.slots_per_epoch
    return rows.filter(pl.col("duty").str.contains("propos")).select(
        _VALIDATOR,
        kind=pl.lit("proposal"),
        slot=slot,
        since=clock.time_expr("slot", slot),
        until=clock.time_expr("slot", slot + 1),
        first_epoch=epoch,
        last_epoch=epoch,
    )
