"""The daily yield index."""

from __future__ import annotations

from beaconframes.client import Values, loader
from beaconframes.endpoint import Endpoint, Finality, UnitPerRequest
from beaconframes.schema import Day, DayTime, Fraction, Table, Wei
from beaconframes.time_range import Moment


class YieldIndex(Table):
    """The yield index. One row per day of the chain (full days since genesis)."""

    day = Day("Day: full days since genesis.", key=True)
    time = DayTime("Start of the day, UTC.", wire="day_start")
    day_end = DayTime("End of the day, UTC.", wire="day_end", offset=1)
    apr = Fraction("Yearly rate: 365 times the day's rewards over effective balances.")
    apr_avg_7d = Fraction("Mean of apr over the last 7 days.", wire="avgapr7d", nullable=True)
    apr_avg_31d = Fraction("Mean of apr over the last 31 days.", wire="avgapr31d", nullable=True)
    cl_apr = Fraction("Consensus-layer part of apr.", optional=True)
    cl_apr_avg_7d = Fraction(
        "Mean of that rate over the last 7 days.", wire="cl_avgapr7d", optional=True
    )
    cl_apr_avg_31d = Fraction(
        "Mean of that rate over the last 31 days.", wire="cl_avgapr31d", optional=True
    )
    el_apr = Fraction("Execution-layer part of apr.", optional=True)
    el_apr_avg_7d = Fraction(
        "Mean of that rate over the last 7 days.", wire="el_avgapr7d", optional=True
    )
    el_apr_avg_31d = Fraction(
        "Mean of that rate over the last 31 days.", wire="el_avgapr31d", optional=True
    )
    consensus_rewards_sum_wei = Wei("Consensus rewards less penalties of the day.")
    consensus_rewards_avg_7d_wei = Wei(
        "Mean of that sum over the last 7 days.", wire="avgconsensus_rewards7d_wei", nullable=True
    )
    consensus_rewards_avg_31d_wei = Wei(
        "Mean of that sum over the last 31 days.", wire="avgconsensus_rewards31d_wei", nullable=True
    )
    tx_fees_sum_wei = Wei("Priority fees of the day's blocks.")
    tx_fees_avg_7d_wei = Wei(
        "Mean of that sum over the last 7 days.", wire="avgtx_fees7d_wei", nullable=True
    )
    tx_fees_avg_31d_wei = Wei(
        "Mean of that sum over the last 31 days.", wire="avgtx_fees31d_wei", nullable=True
    )
    deposits_sum_wei = Wei("Deposits of the day for the validators in the index.", minimum=0)
    effective_balances_sum_wei = Wei("Effective balances at the start of the day.", minimum=0)
    start_balances_sum_wei = Wei("Balances at the start of the day.", minimum=0)
    end_balances_sum_wei = Wei("Balances at the end of the day.", minimum=0)
    total_rewards_wei = Wei("Consensus rewards and priority fees together.")


YIELD_INDEX = Endpoint(
    "yield_index",
    route="GET /api/v1/yieldindex/{day}",
    table=YieldIndex,
    pagination=UnitPerRequest(YieldIndex.day, wire="day", error="invalid day parameter"),
    finality=Finality.WHEN_PUBLISHED,
    is_contiguous=True,
    alias="/api/v1/ethstore/{day}",
    absent="invalid day parameter",
    cheaper="bf.v2.load_yield_index",
)


@loader(YIELD_INDEX, missing="days that are not published")
def load_yield_index(*, since: Moment | None = None, until: Moment | None = None) -> Values:
    """Load the daily yield index, one row per day of the chain.

    One request per day.

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
        Sorted by ``day``. Amounts in wei, exact. Rates are fractions: 0.03 is 3 % a year.

    Notes
    -----
    ``GET /api/v1/yieldindex/{day}``; on the public service, ``ethstore``. Final when published.
    """
    return {"since": since, "until": until}
