"""Yearly rates of income: on 32 ETH, on the effective balance, and as in the yield index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import narwhals.stable.v2 as nw

from beaconframes.analysis.aggregation import aggregate
from beaconframes.analysis.engines import (
    check_distinct,
    list_columns,
    open_frame_like,
    resolve_chain,
    return_lazy,
    sort_rows,
)
from beaconframes.analysis.execution_income import (
    BASIS,
    FEES,
    PRIORITY_FEES,
    build_basis,
    open_income,
)
from beaconframes.analysis.income_columns import AMOUNTS, IS_COMPLETE, PARTS, mark_parts, sum_gwei
from beaconframes.frames import check_choice, drop_missing, map_rows
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

Every = Literal["day", "all"]

_KEYS = ["validator_index", "epoch"]
STAKES = [*_KEYS, "effective_balance_gwei"]
_ACTIVE_PERIOD = ["validator_index", "activation_epoch", "exit_epoch"]
_INDEX = ["day", "apr", "cl_apr", "el_apr"]
_LAYERS = ("", "cl_", "el_")
_DAYS_A_YEAR = 365
_GWEI_32_ETH = 32e9
_EXACT = ["validator_epochs", "whole_days", "consensus_income_gwei", "execution_income_wei"]
_WHOLE = ["cl_whole", "el_whole", "stake_whole"]
_INDEXED = [f"{layer}indexed" for layer in _LAYERS]
_DAY_SUMS = ["epochs", "cl", "el_wei", "el_index_wei", "stake_gwei", "first_stake_gwei"]
_METHODS = ["on_32_eth", "on_effective", "as_index"]
_RATES = [
    *(f"{layer}apr_{method}" for layer in _LAYERS for method in _METHODS),
    *(f"index_{layer}apr" for layer in _LAYERS),
    *(f"{layer}difference_bp" for layer in _LAYERS),
]
_COMPUTED = {"day", "stake", *_EXACT, *_WHOLE, *_INDEXED, *_DAY_SUMS, *_RATES, BASIS}


@show_elapsed
def apr(
    income: IntoFrameT,
    balances: IntoFrame,
    index: IntoFrame | None = None,
    *,
    blocks: IntoFrame | None = None,
    validators: IntoFrame | None = None,
    every: Every = "day",
    by: str | Sequence[str] = (),
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Compute the yearly rate of income in three ways. One row per beacon day and group.

    Rates are fractions (0.03 is 3 %), simple, for a year of 365 days, as in the yield index:

    - ``apr_on_32_eth``: income over 32 ETH per validator, whatever its balance.
    - ``apr_on_effective``: income over the effective balance, epoch by epoch.
    - ``apr_as_index``: the yield index's own definition, 365 times the income of a day over the
      effective balances at its start, of validators with income in each of its epochs. The index
      counts priority fees, so this rate does so too: relay payments are not included.

    Each has a consensus part ``cl_...`` and an execution part ``el_...``.

    Parameters
    ----------
    income, balances
        Frames of `load_income_history` and `load_balance_history`, of the same epochs. Only
        validator-epochs in both frames are counted.
    index
        Frame of `load_yield_index`. It adds ``index_apr``, the rate of the index, and
        ``difference_bp``, ``apr_as_index`` minus ``index_apr`` in basis points. Over several days,
        ``index_apr`` is weighted by your own balances: the same stake would have earned it. Days
        that are missing in the index have neither; with ``"all"`` they are also left out of
        ``apr_as_index``.
    blocks
        Blocks of the validators, as in `analysis.income`: execution income is then what the
        proposers received, except in ``apr_as_index``. Without it: priority fees, relay payments
        not included.
    validators
        Frame of `load_validators`. With it, ``apr_as_index`` counts only validators that were
        active the whole day, as the index does. Without it, slashed or exited validators that
        still have rows count too, which changes the rate by about a basis point.
    every
        ``"day"``, counted from genesis as in the index, or ``"all"`` for the whole range.
    by
        Group columns of *income*, such as ``"validator_index"``.
    chain
        Chain of the epochs; it sets the number of epochs in a day. Default: that of *income*, from
        ``time``. This reads up to two rows eagerly.

    Returns
    -------
    The same kind of frame
        ``day`` and the columns of *by*; ``validator_epochs`` and ``whole_days`` (of validators)
        that were counted, exact income of both layers, and the rates. Rates are null where
        the stake is 0. ``execution_income_basis`` states what execution income is. Where priority
        fees are missing, execution income and the rates that contain it are null. Sorted, except
        for Dask.
    """
    check_choice("every", every, get_args(Every))
    groups = list_columns(by, {*_COMPUTED, *PARTS, *AMOUNTS})
    columns = list(dict.fromkeys([*_KEYS, *groups]))
    income_rows = open_income(income, [*columns, "time", *AMOUNTS], blocks, groups)
    balance_rows = open_frame_like(
        balances, STAKES, loader="load_balance_history", like=income_rows
    )
    check_distinct(balances, _KEYS, loader="load_balance_history")
    length = resolve_chain(chain, (income, "epoch")).epochs_per_day
    layers = map_rows(income_rows, lambda part: sum_layers(part, columns))
    validator_days = sum_validator_days(join_stakes(layers, balance_rows), groups, length)
    if validators is not None:
        check_distinct(validators, ["validator_index"], loader="load_validators")
        active_periods = open_frame_like(
            validators, _ACTIVE_PERIOD, loader="load_validators", like=validator_days
        )
        validator_days = validator_days.join(active_periods, on="validator_index", how="left")
    has_periods = validators is not None
    rates = compute_rates(
        validator_days, groups, length, index, every=every, has_periods=has_periods
    )
    basis = build_basis(blocks, "execution_income_wei")
    return return_lazy(map_rows(rates, lambda part: part.with_columns(basis)), income)


def compute_rates(
    validator_days: Lazy,
    groups: list[str],
    length: int,
    index: IntoFrame | None = None,
    *,
    every: Every = "all",
    has_periods: bool,
) -> Lazy:
    """Compute the rates of `apr` from sums by validator and day, with or without active periods."""
    is_whole = _is_active_all_day(length) if has_periods else _has_all_epochs(length)
    parts = map_rows(validator_days, lambda part: _add_weights(part, is_whole))
    days = _aggregate_days(parts, ["day", *groups], _WHOLE)
    if index is not None:
        check_distinct(index, ["day"], loader="load_yield_index")
        index_days = drop_missing(
            open_frame_like(index, _INDEX, loader="load_yield_index", like=days), _INDEX
        )
        renamed = index_days.rename({f"{layer}apr": f"index_{layer}apr" for layer in _LAYERS})
        days = map_rows(
            days.join(renamed, on="day", how="left"),
            lambda part: _weight_index(part, indexed_days_only=every == "all"),
        )
    keys = ["day", *groups] if every == "day" else groups
    if every == "all":
        extra = _INDEXED if index is not None else []
        days = _aggregate_days(days, keys, [*_WHOLE, *extra])
    result = map_rows(
        days, lambda part: _compute_rates(part, keys, length, has_index=index is not None)
    )
    return sort_rows(result, keys)


def sum_layers(rows: Lazy, columns: list[str]) -> Lazy:
    """Select *columns* and the income of each row by layer; null where an amount is missing.

    With blocks, ``el_index_wei`` is execution income as the yield index counts it.
    """
    amounts = {"cl": sum_gwei(), "el_wei": nw.col(FEES)}
    if PRIORITY_FEES in rows.collect_schema():
        amounts["el_index_wei"] = nw.col(PRIORITY_FEES)
    layers = (
        nw.when(nw.col(IS_COMPLETE)).then(amount).alias(name) for name, amount in amounts.items()
    )
    return mark_parts(rows).select(*columns, *layers)


def join_stakes(rows: Lazy, balance_rows: Lazy) -> Lazy:
    """Add the effective balance to rows of income; rows without one are left out."""
    return rows.join(drop_missing(balance_rows, STAKES), on=_KEYS, how="inner")


def sum_validator_days(rows: Lazy, groups: list[str], length: int) -> Lazy:
    """Sum the rows of `join_stakes` by day and validator: the index counts whole days only."""
    return aggregate(
        rows.filter(~nw.col("cl").is_null()),
        list(dict.fromkeys(["day", "validator_index", *groups])),
        _DAY_SUMS,
        lambda part: _add_days(part, length),
    )


def _add_days(rows: Lazy, length: int) -> Lazy:
    stake = nw.col("effective_balance_gwei")
    is_first_epoch = nw.col("epoch") % length == 0
    index_fees = "el_index_wei" if "el_index_wei" in rows.collect_schema() else "el_wei"
    return rows.with_columns(
        (nw.col("epoch") // length).cast(nw.Int64).alias("day"),
        nw.lit(1).cast(nw.Int64).alias("epochs"),
        nw.col(index_fees).alias("el_index_wei"),
        stake.alias("stake_gwei"),
        nw.when(is_first_epoch).then(stake).otherwise(0).cast(nw.Int64).alias("first_stake_gwei"),
    )


def _has_all_epochs(length: int) -> nw.Expr:
    """Return whether a validator has income in each epoch of the day."""
    return nw.col("epochs") == length


def _is_active_all_day(length: int) -> nw.Expr:
    """Return whether a validator has income and was active in each epoch of the day."""
    first = nw.col("day") * length
    has_not_exited = nw.col("exit_epoch").is_null() | (nw.col("exit_epoch") >= first + length)
    is_activated = (nw.col("activation_epoch") <= first).fill_null(value=False)
    return _has_all_epochs(length) & is_activated & has_not_exited


def _add_weights(validator_days: Lazy, whole: nw.Expr) -> Lazy:
    """Add what a validator's day contributes to the sums: floats for rates, else exact."""
    zero = nw.lit(0.0)

    def if_whole(name: str) -> nw.Expr:
        return nw.when(whole).then(nw.col(name).cast(nw.Float64)).otherwise(zero)

    return validator_days.with_columns(
        nw.col("epochs").alias("validator_epochs"),
        whole.cast(nw.Int64).alias("whole_days"),
        nw.col("cl").alias("consensus_income_gwei"),
        nw.col("el_wei").alias("execution_income_wei"),
        nw.col("stake_gwei").cast(nw.Float64).alias("stake"),
        if_whole("cl").alias("cl_whole"),
        (if_whole("el_index_wei") / 1e9).alias("el_whole"),
        if_whole("first_stake_gwei").alias("stake_whole"),
    )


def _aggregate_days(rows: Lazy, keys: list[str], weights: list[str]) -> Lazy:
    known = [name for name in weights if name == "el_whole"]
    sums: dict[str, Any] = {name: ("sum", name) for name in ["stake", *weights]}
    return aggregate(rows, keys, _EXACT, lambda part: part, known, **sums)


def _weight_index(days: Lazy, *, indexed_days_only: bool) -> Lazy:
    """Weight the index by your own stakes; with *indexed_days_only*, drop days without an index."""
    stake = nw.col("stake_whole")
    days = days.with_columns(
        *(
            (nw.col(f"index_{layer}apr").cast(nw.Float64) * stake).alias(f"{layer}indexed")
            for layer in _LAYERS
        )
    )
    if not indexed_days_only:
        return days
    has_index = ~nw.col("indexed").is_null()
    counted = [*_INDEXED, *_WHOLE]
    return days.with_columns(
        *(nw.when(has_index).then(nw.col(name)).otherwise(0.0).alias(name) for name in counted)
    )


def _compute_rates(days: Lazy, keys: list[str], length: int, *, has_index: bool) -> Lazy:
    """Divide income by stake."""
    el_gwei = nw.col("execution_income_wei").cast(nw.Float64) / 1e9
    cl_gwei = nw.col("consensus_income_gwei").cast(nw.Float64)
    all_income = {"": cl_gwei + el_gwei, "cl_": cl_gwei, "el_": el_gwei}
    cl, el = nw.col("cl_whole"), nw.col("el_whole")
    whole_day_income = {"": cl + el, "cl_": cl, "el_": el}
    epochs = nw.col("validator_epochs").cast(nw.Float64)
    stake_whole = nw.col("stake_whole")
    columns: dict[str, nw.Expr] = {}
    for method, incomes, stakes, per_year in (
        ("on_32_eth", all_income, epochs * _GWEI_32_ETH, _DAYS_A_YEAR * length),
        ("on_effective", all_income, nw.col("stake"), _DAYS_A_YEAR * length),
        ("as_index", whole_day_income, stake_whole, _DAYS_A_YEAR),
    ):
        for layer, amount in incomes.items():
            columns[f"{layer}apr_{method}"] = nw.when(stakes > 0).then(amount * per_year / stakes)
    if has_index:
        for layer in _LAYERS:
            index = nw.col(f"{layer}indexed") / stake_whole
            columns[f"index_{layer}apr"] = nw.when(stake_whole > 0).then(index)
        for layer in _LAYERS:
            difference = columns[f"{layer}apr_as_index"] - columns[f"index_{layer}apr"]
            columns[f"{layer}difference_bp"] = difference * 1e4
    return days.select(*keys, *_EXACT, *(value.alias(name) for name, value in columns.items()))
