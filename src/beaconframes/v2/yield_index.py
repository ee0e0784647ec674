"""The daily yield index."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from beaconframes.client import Values, loader
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, Finality
from beaconframes.schema import Day, DayTime, Fraction, Json, Table, Text, Wei
from beaconframes.schema.decode_checked import parse_records
from beaconframes.schema.invariants import Invariant, Rule
from beaconframes.time_range import Moment
from beaconframes.v2._columns import split_fields
from beaconframes.v2._day_range import DayRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from beaconframes.calendar import Chain
    from beaconframes.schema import EnvelopeContext

log = logging.getLogger("beaconframes")


@dataclass(frozen=True)
class RateOfAmounts(Invariant):
    """The rate is a fraction: 365 times the rewards over the effective balances, or near it.

    Another endpoint of V2 sends rates in per cent, a hundred times as large.
    """

    def build(self, chain: Chain) -> Rule:  # noqa: ARG002 - every invariant's
        """Return the rule."""
        rewards, balances = (
            pl.col(name).cast(pl.Float64)
            for name in ("total_rewards_wei", "effective_balances_sum_wei")
        )
        return Rule(
            pl.col("apr").abs() > 10 * (365 * rewards / balances).abs(),
            lambda row: (
                f"apr {row['apr']} is not a fraction: 365 times total_rewards_wei "
                f"{row['total_rewards_wei']} over effective_balances_sum_wei "
                f"{row['effective_balances_sum_wei']} is less than a tenth of it"
            ),
        )


class YieldIndex(Table):
    """The yield index. One row per day of the chain (full days since genesis).

    The service publishes no names of fields. A column accepts the name that other endpoints of V2
    suggest, which the local explorer sends, and that of V1.
    """

    invariants = (RateOfAmounts(),)

    day = Day("Day: full days since genesis.", key=True)
    time = DayTime("Start of the day, UTC.", wire="day_start")
    day_end = DayTime("End of the day, UTC.", wire="day_end", offset=1)
    apr = Fraction(
        "Yearly rate: 365 times the day's rewards over effective balances.",
        wire=("combined.apr", "apr"),
        optional=True,
    )
    apr_avg_7d = Fraction(
        "Mean of apr over the last 7 days.",
        wire=("combined.apr_avg_7d", "avgapr7d"),
        optional=True,
    )
    apr_avg_31d = Fraction(
        "Mean of apr over the last 31 days.",
        wire=("combined.apr_avg_31d", "avgapr31d"),
        optional=True,
    )
    cl_apr = Fraction(
        "Consensus-layer part of apr.", wire=("consensus_layer.apr", "cl_apr"), optional=True
    )
    cl_apr_avg_7d = Fraction(
        "Mean of that rate over the last 7 days.",
        wire=("consensus_layer.apr_avg_7d", "cl_avgapr7d"),
        optional=True,
    )
    cl_apr_avg_31d = Fraction(
        "Mean of that rate over the last 31 days.",
        wire=("consensus_layer.apr_avg_31d", "cl_avgapr31d"),
        optional=True,
    )
    el_apr = Fraction(
        "Execution-layer part of apr.", wire=("execution_layer.apr", "el_apr"), optional=True
    )
    el_apr_avg_7d = Fraction(
        "Mean of that rate over the last 7 days.",
        wire=("execution_layer.apr_avg_7d", "el_avgapr7d"),
        optional=True,
    )
    el_apr_avg_31d = Fraction(
        "Mean of that rate over the last 31 days.",
        wire=("execution_layer.apr_avg_31d", "el_avgapr31d"),
        optional=True,
    )
    consensus_rewards_sum_wei = Wei(
        "Consensus rewards less penalties of the day.",
        wire=("consensus_layer.rewards", "consensus_rewards_sum_wei"),
        text=True,
        optional=True,
    )
    consensus_rewards_avg_7d_wei = Wei(
        "Mean of that sum over the last 7 days.",
        wire=("consensus_layer.rewards_avg_7d", "avgconsensus_rewards7d_wei"),
        text=True,
        optional=True,
    )
    consensus_rewards_avg_31d_wei = Wei(
        "Mean of that sum over the last 31 days.",
        wire=("consensus_layer.rewards_avg_31d", "avgconsensus_rewards31d_wei"),
        text=True,
        optional=True,
    )
    tx_fees_sum_wei = Wei(
        "Priority fees of the day's blocks.",
        wire=("execution_layer.priority_fees", "tx_fees_sum_wei"),
        text=True,
        optional=True,
    )
    tx_fees_avg_7d_wei = Wei(
        "Mean of that sum over the last 7 days.",
        wire=("execution_layer.priority_fees_avg_7d", "avgtx_fees7d_wei"),
        text=True,
        optional=True,
    )
    tx_fees_avg_31d_wei = Wei(
        "Mean of that sum over the last 31 days.",
        wire=("execution_layer.priority_fees_avg_31d", "avgtx_fees31d_wei"),
        text=True,
        optional=True,
    )
    deposits_sum_wei = Wei(
        "Deposits of the day for the validators in the index.",
        wire=("deposits", "deposits_sum_wei"),
        text=True,
        optional=True,
        minimum=0,
    )
    effective_balances_sum_wei = Wei(
        "Effective balances at the start of the day.",
        wire=("balances.effective", "effective_balances_sum_wei"),
        text=True,
        optional=True,
        minimum=0,
    )
    start_balances_sum_wei = Wei(
        "Balances at the start of the day.",
        wire=("balances.start", "start_balances_sum_wei"),
        text=True,
        optional=True,
        minimum=0,
    )
    end_balances_sum_wei = Wei(
        "Balances at the end of the day.",
        wire=("balances.end", "end_balances_sum_wei"),
        text=True,
        optional=True,
        minimum=0,
    )
    total_rewards_wei = Wei(
        "Consensus rewards and priority fees together.",
        wire=("combined.rewards", "total_rewards_wei"),
        text=True,
        optional=True,
    )
    finality = Text(
        "finalized; null if a sum or a rate of the day is missing. Such rows are not stored.",
        final_when=("finalized",),
        optional=True,
    )
    more = Json("All other fields of the service, as JSON.", optional=True)

    @classmethod
    def decode(
        cls, pages: Iterable[bytes], chain: Chain, contexts: Sequence[EnvelopeContext] = ()
    ) -> pl.DataFrame:
        """Return the rows, with unknown fields under ``more``."""
        rows = super().decode(map(gather_other_fields, pages), chain, contexts)
        missing = [name for name in PROMISED if rows[name].null_count()]
        if missing:
            warn_missing_values(tuple(missing))
        return rows.with_columns(state_finality())

    @classmethod
    def complete(cls, rows: pl.LazyFrame, chain: Chain) -> pl.LazyFrame:
        """Return derived *rows* with the columns of the table."""
        return super().complete(rows, chain).with_columns(state_finality())


def state_finality() -> pl.Expr:
    """Return the stated finality, null for a row without one of the promised values."""
    is_whole = pl.all_horizontal(pl.col(PROMISED).is_not_null())
    return pl.when(is_whole).then(pl.col("finality").fill_null("finalized")).alias("finality")


WIRE_PATHS = {path for column in YieldIndex.columns for path in column.wire_paths} - {"more"}
PROMISED = [
    column.name
    for column in YieldIndex.columns
    if isinstance(column, Fraction | Wei) and "_avg_" not in column.name
]
"""The sums and the rates of a day; its means over several days may be null, as in V1."""


def gather_other_fields(page: bytes) -> bytes:
    """Return *page* with the fields that have no column under ``more``."""
    records = []
    for record in parse_records(YieldIndex.spec, page):
        # The decoder refuses a record that is no object.
        fields, rest = split_fields(record, WIRE_PATHS) if isinstance(record, dict) else ({}, {})
        records.append({**fields, "more": rest} if rest else fields or record)
    return msgspec.json.encode(records)


@cache
def warn_missing_values(names: tuple[str, ...]) -> None:
    """Log the columns without a value, once for each set of columns."""
    log.warning(
        "yield_index: the service sends no value for %s; the fields that it sends under other "
        "names are in the column more",
        ", ".join(names),
    )


YIELD_INDEX = Endpoint(
    "yield_index",
    route="POST /api/v2/ethereum/eth-store",
    table=YieldIndex,
    parameters=(ChainName(), DayRange(YieldIndex.day)),
    pagination=Cursor(),
    finality=Finality.WHEN_PUBLISHED,
    is_contiguous=True,
    envelope=Envelope.V2,
)


@loader(YIELD_INDEX, missing="days that are not published")
def load_yield_index(*, since: Moment | None = None, until: Moment | None = None) -> Values:
    """Load the daily yield index, one row per day of the chain, in wei.

    Ten days per request: a year is 37 requests, where `beaconframes.load_yield_index` sends 365.
    The service returns the newest days first. A small plan includes only windows that end now: old
    days then cost the requests of all days since. A large plan requests old days alone.

    Parameters
    ----------
    since, until
        First and last day, inclusive: a day (full days since genesis), a negative number counting
        back from the latest complete day, a date, a datetime or ``"30d"``. Default: the latest
        published day.
        A date is the whole UTC day: ``until="2026-10-01"`` includes all of October 1.
        ``"2026-10"`` is the whole month.
        A Timestamp is one instant: ``until=pd.Timestamp("2026-10-01")`` ends at its midnight.

    Returns
    -------
    polars.DataFrame
        Sorted by ``day``, with the columns of `beaconframes.load_yield_index`. Rates are fractions:
        0.03 is 3 % a year. Fields without a column, such as MEV, are in ``more``, as JSON.

    Notes
    -----
    ``POST /api/v2/ethereum/eth-store``. Final when published. The names of its fields are not
    verified against the real service: columns accept names in the style of V2 and those of V1. A
    value under another name is in ``more``; its column is null, a warning is logged, and the row is
    not stored.
    """
    return {"since": since, "until": until}
