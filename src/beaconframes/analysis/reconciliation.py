"""Reconciliation of balances with income, deposits, withdrawals and consolidations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate, check_row_sums
from beaconframes.analysis.balance_changes import (
    TRANSFERS,
    Period,
    compute_changes,
    find_offset,
    merge_rows,
    settle_attestations,
    split_by_validator,
)
from beaconframes.analysis.engines import (
    check_distinct,
    collect_sums,
    find_range,
    open_frame,
    open_frame_like,
    resolve_chain,
    return_table,
)
from beaconframes.analysis.events import has_processing_time, select_event_amounts
from beaconframes.analysis.first_blocks import (
    add_first_block_limits,
    count_own_blocks,
    read_first_slot_income,
)
from beaconframes.analysis.income_columns import AMOUNTS, PENALTIES, REWARDS
from beaconframes.analysis.unexplained_amounts import add_possible_causes
from beaconframes.errors import UsageError
from beaconframes.frames import collect, drop_missing, list_column_names, map_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "epoch"]
_OFFSETS = (1, 0, -1, 2)
"""Offsets of the attestation rewards to try, the protocol's own first."""
_DEFERRED = (
    "attestation_reward_gwei",
    "attestation_penalty_gwei",
    "finality_delay_penalty_gwei",
)
_IN_BLOCKS = {
    "proposal_gwei": ("proposal_reward_gwei", "slashing_reward_gwei"),
    "sync_reward_gwei": ("sync_committee_reward_gwei",),
    "sync_penalty_gwei": ("sync_committee_penalty_gwei",),
    "slashing_penalty_gwei": ("slashing_penalty_gwei",),
}
_EVENT_KEYS = [
    ["withdrawal_index"],
    ["slot", "validator_index", "type", "nth"],
    ["block_slot", "block_root", "block_index"],
]
"""Keys of the frames of loaders, which have no other. Rows of the user's own frames may repeat."""
_SUMS = ["first_gwei", "last_gwei", "starts", "ends", "attestations_gwei", *_IN_BLOCKS]


@show_elapsed
def reconcile(
    balances: IntoFrameT,
    income: IntoFrame,
    *,
    slot_income: IntoFrame | None = None,
    blocks: IntoFrame | None = None,
    deposits: IntoFrame | None = None,
    withdrawals: IntoFrame | None = None,
    consolidations: IntoFrame | None = None,
    queue_events: IntoFrame | None = None,
    validators: IntoFrame | None = None,
    since: int | None = None,
    until: int | None = None,
    attestations_settle: int | None = None,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Explain every change of balance, to the gwei. One row per validator and epoch.

    Balances are read after the block of the epoch's first slot. The change of an epoch is the
    balance of the next epoch minus its own balance. It covers the blocks from its second slot to
    the first slot of the next epoch, and the epoch processing between them. It is income +
    deposits - withdrawals + consolidations; ``unexplained_gwei`` is the remainder. Filter on it to
    find errors: a missing row, a wrong amount, or an event left out.

    An income history has one amount per epoch. Where it does not show what the first block of an
    epoch paid (sync committee members and proposers), the epochs on both sides of that block share
    one row, which is exact. *slot_income* and *blocks* split these rows.

    Parameters
    ----------
    balances, income
        Frames of `load_balance_history` and `load_income_history`. The engine of *balances* adds
        up both, and the result is of its kind. A validator-epoch without an income row, or with an
        amount missing, has an income of 0.
    slot_income
        Income inside blocks, of which the first slots of the epochs count: ``validator_index``,
        ``slot`` and ``amount_gwei``, signed: the table ``slot_income`` of an index of a node, as
        ``bf.Dataset.open(folder).scan("slot_income")`` reads it. With *blocks*, it has the sync
        committee alone, as `v2.load_slot_sync_committee_duties` returns it for these slots.
    blocks
        Blocks of the validators, from `load_proposals`, `load_produced_blocks` or
        `load_epoch_slots`: they show whether a validator proposed in a first slot.
    deposits, withdrawals
        Deposits included in blocks (`load_slot_deposits`) and withdrawals paid in blocks
        (`load_validator_withdrawals`, `load_slot_withdrawals` of V1 or V2), or frames of your own
        with ``validator_index``, ``amount_gwei``, and the ``slot`` of the block or the ``epoch`` at
        whose end the balance moved. Deposits of `load_deposits` have the time of the transaction,
        not of their processing: they become candidates in ``possible_cause``. The tables
        ``deposit_events`` and ``transfer_events`` of an index, one below the other, have what
        reached and left balances otherwise.
    consolidations
        Balances moved from one validator to another: ``source_index``, ``target_index``,
        ``epoch`` or ``slot``, ``amount_gwei``. No loader returns them; opposite unexplained amounts
        of two validators in one epoch are candidates in ``possible_cause``.
    queue_events
        Frame of `v2.load_slot`: the deposits and consolidations processed in a slot are candidates
        in ``possible_cause``.
    validators
        Frame of `load_validators`; required where deposits have public keys but no indices.
    since, until
        First and last epoch to explain. Default: those of which *income* has all parts. The last
        change contains the first block of the next epoch. So the last one is the epoch before the
        last of *income*, unless *slot_income* has what that block paid: a table ``slot_income`` of
        an index with later epochs, or any frame without a column ``kind``.
    attestations_settle
        Number of epochs from the epoch of an income row to the epoch whose change includes its
        attestation rewards. Default: the one of 1, 0, -1 and 2 that explains most rows. With rows
        by epoch of the duty it is 1, by the protocol. The public service had other rows in March
        2023: -1 explains 97 of 97. In June 2023 its rows were reported to be those of the duty;
        no later recording has both tables. Simulated chains have 0.
    chain
        Chain of the slots; it sets the number of slots in an epoch. Default: that of *balances* or
        *income*, from ``time``; mainnet if neither has times.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``epoch``, ``until_epoch`` (the last epoch of the row, usually the
        same), ``change_gwei``, the four parts, ``ends_gwei``, ``unexplained_gwei``,
        ``open_start_slot``, ``open_end_slot``, ``possible_cause`` and ``attestations_settle``, the
        offset in use. The two slots name the blocks at the ends of a row whose income is not known,
        null where it is; ``ends_gwei`` is the amount that these blocks explain within the limits of
        the income. Epochs without both balances are left out. Sorted by validator and epoch.
        This computes eagerly.
    """
    if attestations_settle is not None and type(attestations_settle) is not int:
        raise UsageError(
            f"attestations_settle={attestations_settle!r} is not a number of epochs",
            hint="Leave it out: the offset that explains most rows is found.",
        )
    check_distinct(balances, _KEYS, loader="load_balance_history")
    check_distinct(income, _KEYS, loader="load_income_history")
    columns = [*_KEYS, "balance_gwei"]
    balance_rows = drop_missing(
        open_frame(balances, columns, loader="load_balance_history"), columns
    )
    amounts = [*_KEYS, *AMOUNTS[:-1]]
    income_rows = open_frame_like(income, amounts, loader="load_income_history", like=balance_rows)
    income_rows = check_row_sums(drop_missing(income_rows, amounts), AMOUNTS[:-1])
    clock = resolve_chain(chain, (balances, "epoch"), (income, "epoch"))
    offsets = _OFFSETS if attestations_settle is None else (attestations_settle,)
    first, last = find_range(income_rows, "epoch")
    paid = None if slot_income is None else read_first_slot_income(slot_income, clock)
    has_next = paid is None or paid.last_epoch is None or paid.last_epoch > last
    period = Period(first, last, since, until, paid is not None, has_next)
    sums = add_first_block_limits(
        _sum_by_epoch(balance_rows, income_rows, period, offsets),
        None if paid is None else paid.rows,
        None if blocks is None else count_own_blocks(blocks, clock),
    )
    has_time = deposits is not None and has_processing_time(deposits)
    transfers = _read_transfers(
        deposits if has_time else None, withdrawals, consolidations, validators, clock
    )
    offset = find_offset(sums, transfers, offsets, period)
    # In parts, because each step copies its rows.
    merged = [
        merge_rows(
            settle_attestations(compute_changes(part, transfers, period), part, offset, period),
            clock,
        )
        for part in split_by_validator(sums)
    ]
    result = add_possible_causes(
        pl.concat(merged),
        clock,
        deposits=None if has_time else deposits,
        queue_events=queue_events,
        validators=validators,
    )
    return return_table(
        result.with_columns(pl.lit(offset, pl.Int64).alias("attestations_settle")),
        balance_rows,
        balances,
    )


@show_elapsed
def reconciliation_totals(changes: IntoFrameT) -> IntoFrameT:
    """Count the changes of balances that are explained. One row.

    Parameters
    ----------
    changes
        Frame of `reconcile`.

    Returns
    -------
    The same kind of frame
        ``changes``, of which ``explained`` and ``unexplained``; ``unexplained_gwei``, their sum;
        ``with_possible_cause``, the number of unexplained ones with a possible cause. This computes
        eagerly.
    """
    columns = ["unexplained_gwei", "possible_cause"]
    source = open_frame(changes, columns, loader="analysis.reconcile")
    is_open = pl.col("unexplained_gwei") != 0
    result = collect(source).select(
        changes=pl.len().cast(pl.Int64),
        explained=(~is_open).sum().cast(pl.Int64),
        unexplained=is_open.sum().cast(pl.Int64),
        unexplained_gwei=pl.sum("unexplained_gwei"),
        with_possible_cause=pl.col("possible_cause").filter(is_open).count().cast(pl.Int64),
    )
    return return_table(result, source, changes)


def _sum_by_epoch(
    balance_rows: Lazy, income_rows: Lazy, period: Period, offsets: tuple[int, ...]
) -> pl.DataFrame:
    """Add up balances and income, one row per validator and epoch."""
    balance = nw.col("balance_gwei")
    parts = {name: _sum_parts(kinds) for name, kinds in _IN_BLOCKS.items()}
    rewards = _sum_parts(part for part in REWARDS if part in _DEFERRED)
    deferred = rewards - _sum_parts(part for part in PENALTIES if part in _DEFERRED)
    tables = [
        _select_sums(balance_rows, first_gwei=balance, starts=nw.lit(1)),
        _select_sums(balance_rows, epoch=nw.col("epoch") - 1, last_gwei=balance, ends=nw.lit(1)),
        _select_sums(income_rows, attestations_gwei=deferred, **parts),
    ]
    bounds = [period.find_bounds(offset) for offset in offsets]
    since = min(
        min(since, since - offset) for (since, _), offset in zip(bounds, offsets, strict=True)
    )
    until = max(
        max(until + 1, until - offset) for (_, until), offset in zip(bounds, offsets, strict=True)
    )
    within = [table.filter(nw.col("epoch").is_between(since, until)) for table in tables]
    return collect_sums(aggregate(nw.concat(within, how="vertical"), _KEYS, _SUMS)).sort(_KEYS)


def _sum_parts(parts: Iterable[str]) -> nw.Expr:
    columns = [column for part in parts for column in {**REWARDS, **PENALTIES}[part]]
    return nw.sum_horizontal(*columns)


def _select_sums(rows: Lazy, **columns: nw.Expr) -> Lazy:
    """Select the columns that all tables have, with 0 for those not given."""
    keys = {name: columns.pop(name, nw.col(name)) for name in _KEYS}
    expressions = keys | {name: columns.get(name, nw.lit(0)) for name in _SUMS}
    return map_rows(
        rows, lambda part: part.select(*(e.cast(nw.Int64).alias(n) for n, e in expressions.items()))
    )


def _read_transfers(
    deposits: IntoFrame | None,
    withdrawals: IntoFrame | None,
    consolidations: IntoFrame | None,
    validators: IntoFrame | None,
    clock: Chain,
) -> pl.DataFrame:
    """Return deposits, withdrawals and consolidations, one row per validator and epoch."""
    none = dict.fromkeys([*_KEYS, *TRANSFERS], pl.Int64)
    tables = [pl.DataFrame(schema=none)]
    for name, frame, loader in (
        ("deposits_gwei", deposits, "load_slot_deposits"),
        ("withdrawals_gwei", withdrawals, "load_validator_withdrawals"),
    ):
        if frame is not None:
            for keys in _EVENT_KEYS:
                check_distinct(frame, keys, loader=loader)
            rows = select_event_amounts(frame, clock, loader=loader, validators=validators)
            tables.append(rows.rename({"amount_gwei": name}))
    if consolidations is not None:
        _check_consolidations(consolidations)
        names = list_column_names(consolidations)
        keys = ["source_index", "target_index", *(n for n in ("slot", "epoch") if n in names)]
        check_distinct(consolidations, keys, names, loader="analysis.reconcile")
        amount = pl.col("amount_gwei").alias("consolidations_gwei")
        for subject, change in (("source_index", -amount), ("target_index", amount)):
            rows = select_event_amounts(
                consolidations, clock, loader="analysis.reconcile", subject=subject
            )
            tables.append(rows.select(*_KEYS, change))
    return pl.concat(tables, how="diagonal").group_by(_KEYS).agg(pl.col(TRANSFERS).sum())


def _check_consolidations(consolidations: IntoFrame) -> None:
    names = list_column_names(consolidations)
    required = {"source_index", "target_index", "amount_gwei"}
    if not required <= set(names) or not has_processing_time(consolidations):
        raise UsageError(
            f"the columns of consolidations are {', '.join(names) or 'none'}",
            hint="Pass source_index, target_index, amount_gwei, and slot or epoch.",
        )
