"""The answer: one row with what was earned, at which rate, how well, and what was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from beaconframes import analysis
from beaconframes.analysis.aggregation import sum_known
from beaconframes.reports.input_frames import PartMissing
from beaconframes.reports.parts.groups import count_votes

if TYPE_CHECKING:
    from beaconframes.reports.input_frames import Frames, Inputs


ONLINE, OFFLINE = "_online", "_offline"
"""Ends of the statuses of active validators, also of those that exit or were slashed."""
_RATES = ["apr_on_32_eth", "apr_on_effective", "apr_as_index", "index_apr", "difference_bp"]
_RATES += ["cl_apr_on_effective"]


def build_summary(inputs: Inputs, frames: Frames) -> Frames:
    """Return the answer in one row."""
    parts = [_describe_range(inputs), *_count_income_epochs(inputs)]
    parts += list_income(inputs, frames)
    if "rate" in frames:
        known = [name for name in _RATES if name in frames["rate"].columns]
        parts.append(frames["rate"].select(known))
    parts += _list_votes(inputs, frames)
    if "problems" in frames:
        totals = analysis.problem_totals(frames["problems"], by=())
        parts.append(totals.drop("problems", "validators"))
    parts += _list_values(inputs, frames)
    # Without income, such as that of a pending validator, there is no row: its figures are null.
    rows = [part.head(1) if part.height else part.clear(1) for part in parts]
    return {"summary": pl.concat(rows, how="horizontal")}


def build_comparison(inputs: Inputs, frames: Frames) -> Frames:
    """Return the income beside that of average validators, and the parts of the difference."""
    validators, index = inputs.require("validators", "index")
    names = ("income", "balances") if inputs.has_epochs else ("stats",)
    rows = dict(zip(names, inputs.require(*names), strict=True))
    if "problems" not in frames or "proposals" not in frames:
        raise PartMissing("problems or proposals are missing")
    if inputs.has_epochs:
        rows["balances"] = rows["balances"].filter(pl.col("epoch") <= inputs.last)
    found = analysis.compare_with_average(
        validators,
        index,
        frames["problems"],
        frames["proposals"],
        **rows,
        blocks=inputs.get("blocks"),
        chain=inputs.chain,
    )
    return {"comparison": found}


def _describe_range(inputs: Inputs) -> pl.DataFrame:
    """Return the number of validators, and the range of the report."""
    (validators,) = inputs.require("validators")
    chain = inputs.chain
    first, last = inputs.period or (inputs.first, inputs.last)
    active = validators.filter(
        pl.col("activation_epoch") <= last,
        pl.col("exit_epoch").is_null() | (pl.col("exit_epoch") > last),
    )
    row = pl.DataFrame(
        {
            "validators": [validators.height],
            "active": [active.height],
            "since": [chain.time_of("epoch", first)],
            "until": [chain.time_of("epoch", last + 1)],
            "first_epoch": [first],
            "last_epoch": [last],
        }
    )
    if inputs.requested is None:
        return row
    return row.with_columns(requested_since=chain.time_of("epoch", inputs.requested))


def _count_income_epochs(inputs: Inputs) -> list[pl.DataFrame]:
    """Return how many epochs the income covers: the source can miss others."""
    income, stats = inputs.get("income"), inputs.get("stats")
    if income is not None:
        return [income.select(income_epochs=pl.col("epoch").n_unique().cast(pl.Int64))]
    if stats is None:
        # Daily statistics that leave out a part of a day never cover all epochs.
        unknown = pl.DataFrame({"income_epochs": [None]}, {"income_epochs": pl.Int64})
        return [] if inputs.period is None else [unknown]
    length = inputs.chain.epochs_per_day
    days = stats.filter(pl.col("day").is_between(inputs.first // length, inputs.last // length))
    return [days.select(income_epochs=pl.col("day").n_unique().cast(pl.Int64) * length)]


def list_income(inputs: Inputs, frames: Frames) -> list[pl.DataFrame]:
    """Return the sums of income, those of days that are not counted, and those of builders."""
    found = []
    if "days" in frames:
        names = ["consensus_income_gwei", "execution_income_wei", "net_income_wei"]
        names += ["withdrawals_gwei", "execution_income_basis"]
        found.append(analysis.ledger_totals(frames["days"], by=()).select(names))
    if "income_gaps" in frames:
        found.append(
            frames["income_gaps"].select(
                left_out_days=pl.len().cast(pl.Int64),
                left_out_execution_wei=sum_known(pl.col("execution_income_wei")),
            )
        )
    blocks = inputs.get("blocks")
    if blocks is not None:
        found.append(analysis.relay_payments(blocks).select("relay_payments_wei", "blocks"))
    return found


def _list_votes(inputs: Inputs, frames: Frames) -> list[pl.DataFrame]:
    """Return the effectiveness of all votes, and that of the network."""
    found = []
    if "network" in frames:
        measures = frames["network"].filter(pl.col("measure") == "effectiveness")
        found.append(
            measures.select(
                network_effectiveness="network", network_since="since", network_until="until"
            )
        )
    if "effectiveness" in frames and (votes := count_votes(inputs)) is not None:
        known = [name for name in ("effectiveness", "included_rate") if name in votes.columns]
        found.append(votes.select(known))
    return found


def _list_values(inputs: Inputs, frames: Frames) -> list[pl.DataFrame]:
    """Return the value at receipt of all days; nothing if no prices are given."""
    if "value" not in frames:
        return []
    totals = analysis.ledger_totals(frames["days"], by=())
    columns = ["income_value", "currency", "days_without_price"]
    return [totals.with_columns(currency=pl.lit(inputs.price)).select(columns)]
