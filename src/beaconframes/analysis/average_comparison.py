"""Income beside what average validators earned, and the parts of the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import polars as pl

from beaconframes.analysis.aggregation import aggregate, sum_known
from beaconframes.analysis.apr import STAKES
from beaconframes.analysis.daily_income import daily_income
from beaconframes.analysis.daily_rewards import (
    ACTIVE_PERIOD,
    ALL_SHARES,
    COLUMNS,
    OWN_MEDIAN,
    SHARES,
    add_active_epochs,
    add_vote_rates,
    average_network,
)
from beaconframes.analysis.engines import (
    collect_sums,
    open_frame,
    open_frame_like,
    resolve_chain,
    return_lazy,
    return_table,
)
from beaconframes.analysis.income import income as sum_income
from beaconframes.analysis.income_columns import AMOUNTS, PENALTIES, REWARDS
from beaconframes.analysis.problem_totals import problem_totals
from beaconframes.analysis.sync_committees import select_one_per_slot
from beaconframes.errors import UsageError
from beaconframes.frames import (
    collect,
    drop_missing,
    list_column_names,
    map_rows,
    read_rows,
    to_polars,
)
from beaconframes.progress import show_elapsed

if TYPE_CHECKING:
    from narwhals.stable.v2.typing import IntoFrame, IntoFrameT

    from beaconframes.analysis.engines import Lazy
    from beaconframes.calendar import Chain

PARTS = (
    "missed_avoidable_wei",
    "missed_unavoidable_wei",
    "missed_unknown_wei",
    "average_missed_wei",
    "proposal_luck_wei",
    "sync_luck_wei",
    "execution_wei",
    "unexplained_wei",
)
"""The parts of the difference, which add up to it."""
_COSTS = {
    "missed_avoidable_wei": True,
    "missed_unavoidable_wei": False,
    "missed_unknown_wei": None,
}
"""The problems whose costs are a part, by whether they are avoidable."""
_TOTALS = ("earned_wei", "average_wei", "difference_wei")
_INDEX = ["day", "consensus_rewards_sum_wei", "tx_fees_sum_wei", "effective_balances_sum_wei"]
_BLOCK = ["slot", "epoch", "status", "proposer_index"]
_VOTES = ("offline", "missed votes", "late votes")
_WEI_PER_GWEI = 10**9
_WEI = pl.Decimal(28, 0)


@dataclass(frozen=True)
class _Own:
    """What the validators earned, one row per beacon day, and what full votes would have earned.

    The columns of ``days`` are ``stake`` (effective balances in gwei, summed over epochs),
    ``consensus``, ``sync`` (what all duties in sync committees were worth), ``fees`` (priority
    fees) and ``received`` (with payments of builders), in wei; unknown fees are null.
    ``full_votes`` is the sum of the days that are ``rated``; None if no day is.
    """

    days: pl.DataFrame
    full_votes: int | None


@show_elapsed
def compare_with_average(
    validators: IntoFrameT,
    index: IntoFrame,
    problems: IntoFrame,
    proposals: IntoFrame,
    *,
    income: IntoFrame | None = None,
    balances: IntoFrame | None = None,
    stats: IntoFrame | None = None,
    blocks: IntoFrame | None = None,
    chain: Chain | str | None = None,
) -> IntoFrameT:
    """Compare income with that of average validators, and split the difference. One row.

    Average validators have the same effective balances in the same epochs, and earn the yield
    index. The index counts priority fees alone, so this does, too: what builders paid beyond them
    is stated, but not compared.

    Parameters
    ----------
    validators
        Frame of `load_validators`: balances count while their validator is active.
    index
        Frame of `load_yield_index`. A day that is not in it counts as the nearest day that is.
    problems
        Frame of `problems`, of the same validators and epochs.
    proposals
        Frame of `load_proposals` or `proposal_outcomes`, with missed and orphaned ones.
    income, balances
        Frames of `load_income_history` and `load_balance_history`, of the same epochs.
    stats
        Frame of `load_validator_stats`, instead of *income* and *balances*.
    blocks
        Blocks of the validators, as in `analysis.income`. With *stats* and without blocks,
        execution income is unknown; consensus income is then compared alone.
    chain
        Chain of the epochs. Default: that of the frames, from ``time``.

    Returns
    -------
    The same kind of frame as *validators*
        ``earned_wei``, ``average_wei`` and ``difference_wei``, then the parts of the difference,
        which add up to it:

        - ``missed_avoidable_wei``, ``missed_unavoidable_wei`` and ``missed_unknown_wei``: the costs
          of *problems*, negative; unknown if the cost of one of them is.
        - ``average_missed_wei``: what average validators missed, too. The network would earn more
          in the ratio of full votes to its own votes, 54 of 64 parts of its consensus rewards.
          With *stats*, the ratio is that of days on which a validator had no other duty; null if
          there is no such day, as on small chains.
        - ``proposal_luck_wei``, ``sync_luck_wei``: the worth of the proposals, and of the seats in
          sync committees, beyond the expected number.
        - ``execution_wei``: priority fees of the blocks, beyond those of the network's mean block.
        - ``unexplained_wei``: the rest, such as blocks with more or fewer votes than usual.

        A part that is unknown is null, and in the rest. ``builder_payments_wei`` is what builders
        paid beyond priority fees. ``days`` are compared, of which ``days_estimated`` are not in the
        index. ``consensus_only`` is whether execution income is left out. No row without a day of
        income, or of the index. This computes eagerly.
    """
    source = open_frame(validators, ACTIVE_PERIOD, loader="load_validators")
    clock = resolve_chain(
        chain, (income, "epoch"), (stats, "day"), (index, "day"), (proposals, "slot")
    )
    if income is not None and balances is not None:
        own = _sum_epochs(income, balances, blocks, collect(source), problems, clock)
    elif stats is not None:
        own = _sum_days(stats, index, blocks, collect(source), clock)
    else:
        raise UsageError("income and stats are missing", hint="Pass income and balances, or stats.")
    days = own.days.join(_count_proposals(proposals, clock), on="day", how="left")
    days = _add_index(days.with_columns(pl.col("drawn", "proposed").fill_null(0)), index)
    totals = to_polars(problem_totals(problems, by="avoidable")).rows(named=True)
    # A sum without the cost of one problem, such as a slashing without an income history, is low.
    costs = {row["avoidable"]: None if row["cost_unknown"] else row["lost_gwei"] for row in totals}
    rows = _compare(days.rows(named=True), own.full_votes, costs, clock)
    schema: dict[str, Any] = dict.fromkeys([*_TOTALS, *PARTS, "builder_payments_wei"], _WEI)
    schema |= {"days": pl.Int64, "days_estimated": pl.Int64, "consensus_only": pl.Boolean}
    return return_table(pl.DataFrame(rows, schema=schema), source, validators)


def _sum_epochs(
    income: IntoFrame,
    balances: IntoFrame,
    blocks: IntoFrame | None,
    validators: pl.DataFrame,
    problems: IntoFrame,
    clock: Chain,
) -> _Own:
    """Return income and effective balances by day, from a row per epoch."""
    income = _select_held(income, balances)
    sums = to_polars(sum_income(income, blocks=blocks, every="epoch", chain=clock))
    fees = to_polars(sum_income(income, every="epoch", chain=clock))
    fees = fees.select("epoch", fees=pl.col("execution_income_wei"))
    duties = _sum_duties(income, balances, validators)
    rows = sums.join(fees, on="epoch").join(duties, on="epoch")
    sync = pl.col("sync_committee_reward_gwei") + pl.col("sync_committee_penalty_gwei")
    costs = collect(open_frame(problems, ["kind", "cost_gwei"], loader="analysis.problems"))
    lost = costs.filter(pl.col("kind").is_in(_VOTES))["cost_gwei"]
    votes = pl.col("votes").sum()
    full = None if lost.null_count() else (rows.select(votes).item() + lost.sum()) * _WEI_PER_GWEI
    days = rows.group_by(day=pl.col("epoch") // clock.epochs_per_day).agg(
        stake=pl.col("stake").sum(),
        consensus=_to_wei(pl.col("consensus_income_gwei").sum()),
        sync=_to_wei(sync.sum()),
        rated=pl.lit(value=True),
        fees=sum_known(pl.col("fees").cast(pl.Int128)),
        received=sum_known(pl.col("execution_income_wei").cast(pl.Int128)),
    )
    return _Own(days, full)


def _select_held(income: IntoFrame, balances: IntoFrame) -> IntoFrame:
    """Return the income of the epochs in which the balance of its validator is known."""
    lazy = open_frame(income, list_column_names(income), loader="load_income_history")
    stakes = open_frame_like(balances, STAKES, loader="load_balance_history", like=lazy)
    held = lazy.join(drop_missing(stakes, STAKES), on=STAKES[:2], how="semi")
    return return_lazy(held, income)


def _sum_duties(income: IntoFrame, balances: IntoFrame, validators: pl.DataFrame) -> pl.DataFrame:
    """Return the effective balances of active validators, and what votes earned, by epoch.

    Balances without an income do not count. Penalties after the exit are not those of votes.
    """
    columns = [*STAKES[:2], *AMOUNTS[:-1]]
    lazy = open_frame(income, columns, loader="load_income_history")
    stakes = open_frame_like(balances, STAKES, loader="load_balance_history", like=lazy)
    periods = open_frame_like(validators.lazy(), ACTIVE_PERIOD, loader="load_validators", like=lazy)
    rows = drop_missing(lazy, columns).join(
        drop_missing(stakes, STAKES), on=STAKES[:2], how="inner"
    )
    rows = rows.join(periods, on="validator_index", how="inner")
    votes: Any = nw.sum_horizontal(*REWARDS["attestation_reward_gwei"]) - nw.sum_horizontal(
        *PENALTIES["attestation_penalty_gwei"]
    )

    def select_active(part: Lazy) -> Lazy:
        has_exited = (nw.col("exit_epoch") <= nw.col("epoch")).fill_null(value=False)
        is_active = (nw.col("activation_epoch") <= nw.col("epoch")).fill_null(value=False)
        amounts = {"stake": nw.col("effective_balance_gwei"), "votes": votes}
        return part.with_columns(
            nw.when(is_active & ~has_exited).then(amount).otherwise(0).cast(nw.Int64).alias(name)
            for name, amount in amounts.items()
        )

    return collect_sums(aggregate(map_rows(rows, select_active), ["epoch"], ["stake", "votes"]))


def _sum_days(
    stats: IntoFrame,
    index: IntoFrame,
    blocks: IntoFrame | None,
    validators: pl.DataFrame,
    clock: Chain,
) -> _Own:
    """Return income and effective balances by day, from daily statistics."""
    length = clock.epochs_per_day
    table = collect(open_frame(stats, COLUMNS, loader="load_validator_stats"))
    rates = add_vote_rates(table, average_network(index, clock), clock).drop_nulls("income")
    # The means of the network are lower than what a signature earns: some votes are missed.
    worth = pl.col("network_sync_gwei") * pl.col("rate") / pl.col("network_rate")
    seats = pl.col("participated_sync") + pl.col("missed_sync")
    full = pl.col("rate") * pl.col("stake") * pl.col("active_epochs") / length
    duties = (
        add_active_epochs(rates, validators, length)
        .group_by("day")
        .agg(
            sync=sum_known(_to_wei((seats * worth).round())),
            rated=pl.col("rate_basis").eq_missing(pl.lit(OWN_MEDIAN)).all(),
            full=_to_wei(full.sum().round()),
        )
    )
    income = to_polars(daily_income(stats, blocks, chain=clock))
    days = (
        add_active_epochs(income, validators, length)
        .group_by("day")
        .agg(
            stake=(pl.col("effective_balance_gwei") * pl.col("active_epochs")).sum(),
            consensus=_to_wei(pl.col("consensus_income_gwei").sum()),
            fees=sum_known(pl.col("priority_fees_wei").cast(pl.Int128)),
            received=sum_known(pl.col("execution_income_wei").cast(pl.Int128)),
        )
        .join(duties.drop("full"), on="day", how="left")
        .with_columns(pl.col("rated").fill_null(value=False))
    )
    # What full votes earn is known on days on which a validator shows it: the network misses some.
    full_votes = pl.col("full").filter("rated")
    return _Own(days, duties.select(pl.when(full_votes.len() > 0).then(full_votes.sum())).item())


def _to_wei(gwei: pl.Expr) -> pl.Expr:
    return gwei.cast(pl.Int128) * _WEI_PER_GWEI


def _count_proposals(proposals: IntoFrame, clock: Chain) -> pl.DataFrame:
    """Return the number of proposals by day, and of those with a block in the chain.

    Being selected is luck, also where a proposal is missed.
    """
    rows = select_one_per_slot(read_rows(proposals, _BLOCK, loader="load_proposals"))
    ended = rows.filter(pl.col("status") != "scheduled")
    return ended.group_by(day=pl.col("epoch") // clock.epochs_per_day).agg(
        drawn=pl.len().cast(pl.Int64),
        proposed=(pl.col("status") == "proposed").sum().cast(pl.Int64),
    )


def _add_index(days: pl.DataFrame, index: IntoFrame) -> pl.DataFrame:
    """Add the nearest day of the index to each day, and whether it is another one."""
    rows = collect(drop_missing(open_frame(index, _INDEX, loader="load_yield_index"), _INDEX))
    rows = rows.unique("day").sort("day").with_columns(index_day="day")
    joined = days.sort("day").join_asof(rows, on="day", strategy="nearest")
    return joined.drop_nulls("index_day")


def _compare(
    days: list[dict[str, Any]],
    full_votes: int | None,
    costs: dict[bool | None, int | None],
    clock: Chain,
) -> list[dict[str, Any]]:
    """Return earned and average income, and the parts of the difference, in wei."""
    if not days:
        return []
    has_fees = all(day["fees"] is not None for day in days)
    has_seats = all(day["sync"] is not None for day in days)
    amounts = [_compare_day(day, clock, has_fees=has_fees) for day in days]
    sums = {name: sum(day[name] for day in amounts) for name in amounts[0]}
    rated_votes = sum(
        amount["votes"] for amount, day in zip(amounts, days, strict=True) if day["rated"]
    )
    difference = sums["earned"] - sums["average"]
    has_votes = full_votes is not None and rated_votes > 0

    def complete(amount: int) -> int:
        """Return what an amount of the index would be if no validator missed a vote."""
        return amount * full_votes // rated_votes if has_votes else amount  # type: ignore[operator]

    parts: dict[str, int | None] = {
        part: None if (cost := costs.get(avoidable, 0)) is None else -cost * _WEI_PER_GWEI
        for part, avoidable in _COSTS.items()
    }
    rewards, blocks = sums["rewards"], sums["drawn"]
    average_missed = complete(rewards) - rewards
    parts |= {
        "average_missed_wei": average_missed if has_votes else None,
        "proposal_luck_wei": complete(blocks) - complete(sums["block"]) + sums["fee_luck"],
        "sync_luck_wei": sums["seats"] - complete(sums["sync"]) if has_seats else None,
        "execution_wei": sums["execution"] if has_fees else None,
    }
    known = sum(part for part in parts.values() if part is not None)
    totals = dict(zip(_TOTALS, (sums["earned"], sums["average"], difference), strict=True))
    return [
        {
            **totals,
            **parts,
            "unexplained_wei": difference - known,
            "builder_payments_wei": sums["builders"] if has_fees else None,
            "days": len(days),
            "days_estimated": sum(day["day"] != day["index_day"] for day in days),
            "consensus_only": not has_fees,
        }
    ]


def _compare_day(day: dict[str, Any], clock: Chain, *, has_fees: bool) -> dict[str, int]:
    """Return what was earned in a day, and what the same balances earn in the index, in wei.

    Python's integers are exact: the products have more digits than any type of a column.
    """
    rewards, fees, all_stake = (int(day[name]) for name in _INDEX[1:])
    fees = fees if has_fees else 0
    own_fees = day["fees"] if has_fees else 0
    slots = clock.epochs_per_day * clock.slots_per_epoch
    shares = {duty: rewards * share // ALL_SHARES for duty, share in SHARES.items()}
    mean_block, mean_fees = shares["block"] // slots, fees // slots

    own_stake = int(day["stake"]) * _WEI_PER_GWEI

    def average(amount: int) -> int:
        return amount * own_stake // (all_stake * clock.epochs_per_day)

    return {
        "earned": day["consensus"] + own_fees,
        "average": average(rewards + fees),
        "rewards": average(rewards),
        **{duty: average(amount) for duty, amount in shares.items()},
        "seats": day["sync"] or 0,
        "drawn": day["drawn"] * mean_block,
        "fee_luck": day["drawn"] * mean_fees - average(fees),
        # The fees of a missed proposal are in its cost.
        "execution": own_fees - day["proposed"] * mean_fees,
        "builders": day["received"] - own_fees if has_fees else 0,
    }
