"""Luck: expected and actual numbers of proposals, and of seats in sync committees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate, get_amount_type
from beaconframes.analysis.binomial import compute_interval, compute_p_value, compute_range
from beaconframes.analysis.engines import (
    check_distinct,
    check_level,
    collect_sums,
    find_range,
    list_columns,
    move_to_engine,
    open_frame,
    open_frame_like,
    resolve_chain,
    return_table,
    sum_by,
)
from beaconframes.analysis.sync_committees import SEAT_COLUMNS, select_one_per_slot
from beaconframes.frames import drop_missing, map_rows, read_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "epoch"]
_ACTIVE_PERIOD = ["validator_index", "activation_epoch", "exit_epoch"]
_OUTCOMES = ["proposed", "missed", "orphaned"]
_CHANCE = ["drawn_low", "drawn_high", "luck", "luck_low", "luck_high", "p_value"]
_SECONDS_PER_DAY = 86_400
_MOST_OF_THE_CHAIN = 0.9
"""Above this share of all balances, the error of the expected number is larger than its chance."""


@show_elapsed
def proposal_luck(
    proposals: IntoFrame,
    balances: IntoFrameT,
    epochs: IntoFrame,
    *,
    validators: IntoFrame | None = None,
    by: str | Sequence[str] = "validator_index",
    level: float = 0.95,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Compare the number of proposals with the expected number. One row per validator or group.

    This computes eagerly, also for lazy frames: the engine of *balances* adds up by group, and
    probabilities are computed from the sums.

    Parameters
    ----------
    proposals
        Frame of `load_proposals` or `load_epoch_slots`, of all the epochs. Missed and orphaned
        proposals count as well: being selected is luck.
    balances
        Frame of `load_balance_history`: effective balances by epoch. Its epochs are the ones
        examined.
    epochs
        Frame of `load_epochs`, of the same epochs: ``eligible_ether_gwei`` is the balance of all
        validators.
    validators
        Frame of `load_validators`. With it, balances count only while their validator is active:
        before activation and after exit it is never selected.
    by
        Group columns of *balances*; ``()`` is all validators together.
    level
        Confidence level of the interval.
    chain
        Chain of the slots. Default: that of *balances* or *epochs*, from ``time``; mainnet if
        neither has times.

    Returns
    -------
    The same kind of frame as *balances*
        ``slots`` examined; ``expected`` proposals, the sum over slots of the share of the effective
        balance; ``drawn``, the proposals assigned, of which ``proposed``, ``missed``, ``orphaned``.
        ``drawn_low`` to ``drawn_high`` is the central range of numbers that chance gives at the
        level. ``luck`` is drawn over expected, ``luck_low`` to ``luck_high`` its exact interval
        (Clopper and Pearson), and ``p_value`` the probability of a deviation this large by chance.
        Slots are independent, each of one proposer: the variance is slots times the mean share
        times the rest, and 0 for all validators. Where the share changed, the variance is smaller,
        and probabilities are too large rather than too small (Hoeffding). They are null for a group
        with more than 90 % of the balances of the chain: it proposes nearly every block, and the
        error of the expected number is larger than chance. ``days_to_next`` is the mean time to the
        next proposal at the balances of the last epoch. Null where no proposal is expected.
    """
    check_level(level)
    taken = ["slots", "expected", "now", "drawn", *_OUTCOMES, *_CHANCE, "days_to_next"]
    groups = list_columns(by, taken)
    rows, source = _open_shares(balances, epochs, validators, groups)
    clock = resolve_chain(chain, (balances, "epoch"), (epochs, "epoch"))
    rows = rows.join(move_to_engine(_count_proposals(proposals), rows), on=_KEYS, how="left")
    last, slots_per_epoch = find_range(rows, "epoch")[1], clock.slots_per_epoch
    rows = map_rows(rows, lambda part: _add_expected(part, last, slots_per_epoch))
    sums = aggregate(
        rows,
        groups,
        _OUTCOMES,
        slots=("distinct", "epoch"),
        expected=("sum", "expected"),
        now=("sum", "now"),
    )
    days = clock.seconds_per_slot * slots_per_epoch / _SECONDS_PER_DAY
    table = collect_sums(sums).with_columns(
        pl.col("slots").cast(pl.Int64) * slots_per_epoch,
        drawn=pl.sum_horizontal(_OUTCOMES),
        days_to_next=pl.when(pl.col("now") > 0).then(days / pl.col("now")),
    )
    table = _add_luck(table, groups, "slots", level).select(
        *(*groups, "slots", "expected", "drawn", *_OUTCOMES, *_CHANCE, "days_to_next")
    )
    return return_table(table, source, balances)


@show_elapsed
def sync_luck(
    committees: IntoFrame,
    balances: IntoFrameT,
    epochs: IntoFrame,
    *,
    validators: IntoFrame | None = None,
    by: str | Sequence[str] = "validator_index",
    level: float = 0.95,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Compare seats in sync committees with the expected number. One row per validator or group.

    The chain draws a committee one period before it begins, from the validators that are active
    then: that of period 1700 with the balances of the first epoch of period 1699. Committees whose
    epoch of selection is missing in *balances* or *epochs* are left out. This computes eagerly.

    Parameters
    ----------
    committees
        Frame of `load_sync_committees`, of all the periods.
    balances
        Frame of `load_balance_history`, with the epochs of selection.
    epochs
        Frame of `load_epochs`, of the same epochs.
    validators, by, level, chain
        As in `proposal_luck`.

    Returns
    -------
    The same kind of frame as *balances*
        ``periods`` examined and their ``seats``; ``expected`` seats, the sum over committees of
        their seats times the share of the effective balance; ``drawn``, the seats held. The other
        columns are those of `proposal_luck`. Seats count as independent draws. A committee visits
        candidates in a random order, each once before any again, so the variance is smaller: by
        less than 4 % on mainnet, and by less than 2 % for validators of 32 ETH since Electra. On
        small chains of large validators, probabilities are too large. Null where no seat is
        expected.
    """
    check_level(level)
    groups = list_columns(by, ["periods", "seats", "expected", "drawn", *_CHANCE])
    columns = list(SEAT_COLUMNS[:4])
    held = read_rows(committees, columns, loader="load_sync_committees").unique(["period", "seat"])
    rows, source = _open_shares(balances, epochs, validators, groups)
    clock = resolve_chain(chain, (balances, "epoch"), (epochs, "epoch"))
    # Simulated chains begin with a committee, mainnet got its first one later.
    first = pl.when(pl.col("start_epoch") >= clock.first_sync_epoch).then(clock.first_sync_epoch)
    selected = pl.col("start_epoch") - clock.epochs_per_sync_period
    held = held.with_columns(epoch=pl.max_horizontal(selected, first.otherwise(0)).cast(pl.Int64))
    drawn = held.group_by(_KEYS).agg(drawn=pl.len().cast(pl.Int64))
    # Both committees of the first epoch are drawn together.
    drawn_together = held.group_by("epoch").agg(periods=pl.col("period").n_unique().cast(pl.Int64))
    rows = rows.join(move_to_engine(drawn_together, rows), on="epoch", how="inner")
    # A row per validator and committee: few enough for polars.
    shares = (
        collect_sums(rows)
        .join(drawn, on=_KEYS, how="left")
        .with_columns(
            pl.col("drawn").fill_null(0), seats=pl.col("periods") * clock.sync_committee_size
        )
    )
    share = pl.col("effective_balance_gwei") / pl.col("eligible_ether_gwei")
    expected = pl.when(pl.col("eligible_ether_gwei") > 0).then(share * pl.col("seats")).otherwise(0)
    examined = shares.unique([*groups, "epoch"])
    sums = sum_by(shares.with_columns(expected=expected), groups, pl.sum("expected", "drawn"))
    table = sums.hstack(sum_by(examined, groups, pl.sum("periods", "seats")).drop(groups))
    table = _add_luck(table, groups, "seats", level).select(
        *(*groups, "periods", "seats", "expected", "drawn", *_CHANCE)
    )
    return return_table(table, source, balances)


def _open_shares(
    balances: IntoFrame, epochs: IntoFrame, validators: IntoFrame | None, groups: list[str]
) -> tuple[Lazy, Lazy]:
    """Join effective balances with that of all validators; also return the opened balances."""
    columns = list(dict.fromkeys([*_KEYS, "effective_balance_gwei", *groups]))
    balance_rows = open_frame(balances, columns, loader="load_balance_history")
    balance_rows = drop_missing(balance_rows, [*_KEYS, "effective_balance_gwei"])
    total_columns = ["epoch", "eligible_ether_gwei"]
    totals = drop_missing(
        open_frame_like(epochs, total_columns, loader="load_epochs", like=balance_rows),
        total_columns,
    )
    check_distinct(balances, _KEYS, groups, loader="load_balance_history")
    check_distinct(epochs, ["epoch"], loader="load_epochs")
    rows = balance_rows.join(totals, on="epoch", how="inner")
    if validators is not None:
        check_distinct(validators, ["validator_index"], loader="load_validators")
        active_periods = open_frame_like(
            validators, _ACTIVE_PERIOD, loader="load_validators", like=balance_rows
        )
        rows = map_rows(
            rows.join(active_periods, on="validator_index", how="inner"), _select_active
        )
    return rows, balance_rows


def _count_proposals(proposals: IntoFrame) -> pl.DataFrame:
    """Count proposals by outcome. One row per validator and epoch."""
    columns = ["slot", "epoch", "status", "proposer_index"]
    rows = read_rows(proposals, columns, loader="load_proposals")
    return (
        select_one_per_slot(rows)
        .group_by(validator_index="proposer_index", epoch="epoch")
        .agg(
            (pl.col("status") == outcome).sum().cast(pl.Int64).alias(outcome)
            for outcome in _OUTCOMES
        )
    )


def _select_active(rows: Lazy) -> Lazy:
    has_exited = (nw.col("exit_epoch") <= nw.col("epoch")).fill_null(value=False)
    return rows.filter((nw.col("activation_epoch") <= nw.col("epoch")) & ~has_exited)


def _add_expected(rows: Lazy, last: int, slots_per_epoch: int) -> Lazy:
    """Add the expected number of proposals of each row, and of the last epoch alone."""
    own_balance, total_balance = nw.col("effective_balance_gwei"), nw.col("eligible_ether_gwei")
    share = own_balance.cast(nw.Float64) / total_balance.cast(nw.Float64)
    expected = nw.when(total_balance > 0).then(share * slots_per_epoch).otherwise(0.0)
    counts = [nw.col(name).fill_null(0).cast(get_amount_type(name)) for name in _OUTCOMES]
    return rows.with_columns(
        expected.alias("expected"),
        nw.when(nw.col("epoch") == last).then(expected).otherwise(0.0).alias("now"),
        *counts,
    )


def _add_luck(table: pl.DataFrame, groups: list[str], trials: str, level: float) -> pl.DataFrame:
    """Add the range of chance, luck, its interval, and its p-value."""
    rows = table.sort(groups) if groups else table
    rows = rows.with_columns(
        luck=pl.when(pl.col("expected") > 0).then(pl.col("drawn") / pl.col("expected"))
    )
    chance: list[tuple[float | None, ...]] = []
    for k, n, mean in rows.select("drawn", trials, "expected").iter_rows():
        if not 0 < mean <= n * _MOST_OF_THE_CHAIN:
            chance.append((None,) * 5)
            continue
        share = mean / n
        low, high = compute_interval(k, n, level)
        luck = low * n / mean, high * n / mean, compute_p_value(k, n, share)
        chance.append((*compute_range(n, share, level), *luck))
    schema: dict[str, Any] = dict.fromkeys(["drawn_low", "drawn_high"], pl.Int64)
    schema |= dict.fromkeys(["luck_low", "luck_high", "p_value"], pl.Float64)
    return rows.hstack(pl.DataFrame(chance, schema=schema, orient="row"))
