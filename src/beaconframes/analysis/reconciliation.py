"""Reconciliation of balances with income, deposits, withdrawals and consolidations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import narwhals.stable.v2 as nw

from beaconframes.analysis.aggregation import aggregate, check_row_sums
from beaconframes.analysis.engines import (
    find_range,
    open_frame,
    open_frame_like,
    return_lazy,
    sort_rows,
    stack_tables,
)
from beaconframes.analysis.events import select_event_amounts
from beaconframes.analysis.income_columns import AMOUNTS, PENALTIES, REWARDS
from beaconframes.calendar import MAINNET, get_chain
from beaconframes.errors import UsageError
from beaconframes.frames import drop_missing, map_rows

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

_KEYS = ["validator_index", "epoch"]
_CHANGES = ["income_gwei", "deposits_gwei", "withdrawals_gwei", "consolidations_gwei"]
_SUMS = ["start_gwei", "end_gwei", "starts", "ends", *_CHANGES]
_DEFERRED = (
    "attestation_reward_gwei",
    "attestation_penalty_gwei",
    "finality_delay_penalty_gwei",
)


def reconcile(
    balances: IntoFrameT,
    income: IntoFrame,
    *,
    deposits: IntoFrame | None = None,
    withdrawals: IntoFrame | None = None,
    consolidations: IntoFrame | None = None,
    validators: IntoFrame | None = None,
    since: int | None = None,
    until: int | None = None,
    attestations_settle: int = 0,
    chain: Chain | str = MAINNET,
) -> IntoFrameT:
    """Explain every change of balance, to the gwei. One row per validator and epoch.

    The change from the first slot of an epoch to that of the next is income + deposits -
    withdrawals + consolidations of that epoch; ``unexplained_gwei`` is the remainder. Filter on it
    to find errors: a missing row, a wrong amount, or an event left out.

    Parameters
    ----------
    balances, income
        Frames of `load_balance_history` and `load_income_history`. The engine of *balances*
        computes, and the result is of its kind. A validator-epoch without an income row, or with
        an amount missing, has an income of 0.
    deposits, withdrawals
        Deposits included in blocks (`load_slot_deposits`) and withdrawals paid in blocks
        (`load_validator_withdrawals`, `load_slot_withdrawals`), or frames of your own with
        ``validator_index``, ``epoch`` or ``slot``, and ``amount_gwei``.
    consolidations
        Balances moved from one validator to another: ``source_index``, ``target_index``,
        ``epoch`` or ``slot``, ``amount_gwei``.
    validators
        Frame of `load_validators`; required where deposits have public keys but no indices.
    since, until
        First and last epoch to explain. Default: those of *income*, which are looked up at once.
    attestations_settle
        Number of epochs after which attestations are paid. 0 is for simulated chains, which pay
        everything at the end of the epoch; mainnet pays attestations one epoch later: use 1.
    chain
        Chain of the slots; it sets the number of slots in an epoch.

    Returns
    -------
    The same kind of frame
        ``validator_index``, ``epoch``, ``change_gwei``, the four parts, ``unexplained_gwei``.
        Epochs without both balances are left out. Sorted, except for Dask.
    """
    clock = get_chain(chain)
    if type(attestations_settle) is not int or attestations_settle < 0:
        raise UsageError(
            f"attestations_settle={attestations_settle!r} is not a number of epochs",
            hint="Pass 1 for mainnet, 0 for a simulated chain.",
        )
    columns = [*_KEYS, "balance_gwei"]
    balance_rows = drop_missing(
        open_frame(balances, columns, loader="load_balance_history"), columns
    )
    amounts = [*_KEYS, *AMOUNTS[:-1]]
    income_rows = open_frame_like(income, amounts, loader="load_income_history", like=balance_rows)
    income_rows = check_row_sums(drop_missing(income_rows, amounts), AMOUNTS[:-1])
    if since is None or until is None:
        first, last = find_range(income_rows, "epoch")
        since = first + attestations_settle if since is None else since
        until = last if until is None else until
    balance = nw.col("balance_gwei")
    tables = [
        _select_amounts(balance_rows, start_gwei=balance, starts=nw.lit(1)),
        _select_amounts(balance_rows, epoch=nw.col("epoch") - 1, end_gwei=balance, ends=nw.lit(1)),
        *_split_income(income_rows, attestations_settle),
    ]
    transfers = {
        "deposits_gwei": (deposits, "load_slot_deposits"),
        "withdrawals_gwei": (withdrawals, "load_validator_withdrawals"),
    }
    amount = nw.col("amount_gwei")
    for name, (frame, loader) in transfers.items():
        if frame is not None:
            rows = select_event_amounts(
                frame, balance_rows, clock, loader=loader, validators=validators
            )
            tables.append(_select_amounts(rows, **{name: amount}))
    if consolidations is not None:
        for subject, change in (("source_index", nw.lit(0) - amount), ("target_index", amount)):
            rows = select_event_amounts(
                consolidations, balance_rows, clock, loader="load_...", subject=subject
            )
            tables.append(_select_amounts(rows, consolidations_gwei=change))
    within = [table.filter(nw.col("epoch").is_between(since, until)) for table in tables]
    sums = aggregate(stack_tables(within), _KEYS, _SUMS)
    return return_lazy(sort_rows(map_rows(sums, _compute_difference), _KEYS), balances)


def _split_income(income_rows: Lazy, delay: int) -> list[Lazy]:
    """Return consensus income by the epoch in which it is paid."""
    prompt, deferred = (
        _sum_parts([part for part in REWARDS if (part in _DEFERRED) == late])
        - _sum_parts([part for part in PENALTIES if (part in _DEFERRED) == late])
        for late in (False, True)
    )
    if not delay:
        return [_select_amounts(income_rows, income_gwei=prompt + deferred)]
    return [
        _select_amounts(income_rows, income_gwei=prompt),
        _select_amounts(income_rows, epoch=nw.col("epoch") + delay, income_gwei=deferred),
    ]


def _sum_parts(parts: list[str]) -> nw.Expr:
    columns = [column for part in parts for column in {**REWARDS, **PENALTIES}[part]]
    return nw.sum_horizontal(*columns)


def _select_amounts(rows: Lazy, **columns: nw.Expr) -> Lazy:
    """Select the columns that all tables have, with 0 for those not given."""
    keys = {name: columns.pop(name, nw.col(name)) for name in _KEYS}
    expressions = keys | {name: columns.get(name, nw.lit(0)) for name in _SUMS}
    return map_rows(
        rows, lambda part: part.select(*(e.cast(nw.Int64).alias(n) for n, e in expressions.items()))
    )


def _compute_difference(rows: Lazy) -> Lazy:
    """Keep the rows with both balances, and subtract the explained change from the actual one."""
    gains = nw.col("income_gwei") + nw.col("deposits_gwei") + nw.col("consolidations_gwei")
    explained = gains - nw.col("withdrawals_gwei")
    change = nw.col("end_gwei") - nw.col("start_gwei")
    return rows.filter((nw.col("starts") > 0) & (nw.col("ends") > 0)).select(
        *_KEYS,
        change.alias("change_gwei"),
        *_CHANGES,
        (change - explained).alias("unexplained_gwei"),
    )
