"""The content of each chart, for ``plot`` and ``interactive``: frame in, chart out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beaconframes.analysis import loaders as analysis
from beaconframes.charts.attestations import attestations
from beaconframes.charts.balances import balances
from beaconframes.charts.calendar_map import calendar
from beaconframes.charts.coverage import coverage
from beaconframes.charts.duties import duties
from beaconframes.charts.effectiveness import effectiveness
from beaconframes.charts.expected_income import expected_income
from beaconframes.charts.gas_fees import gas_fees
from beaconframes.charts.income import income
from beaconframes.charts.index_coverage import index_coverage
from beaconframes.charts.leaderboard import leaderboard
from beaconframes.charts.luck import luck
from beaconframes.charts.proposals import proposals
from beaconframes.charts.sync_members import sync_members
from beaconframes.charts.sync_participation import sync_participation
from beaconframes.charts.transfers import deposits, withdrawals
from beaconframes.charts.yield_index import yield_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from beaconframes.charts.model import Chart

CHARTS: dict[Callable[..., Chart], str | None] = {
    income: "income_history",
    expected_income: "income_history",
    calendar: "income_history",
    balances: "balance_history",
    attestations: "attestations",
    effectiveness: "income_history",
    duties: "attestations",
    proposals: "proposals",
    luck: "balance_history",
    deposits: "deposits",
    withdrawals: "validator_withdrawals",
    sync_participation: "epoch_slots",
    sync_members: "epoch_slots",
    yield_index: "yield_index",
    leaderboard: "leaderboard",
    gas_fees: "gas_fees",
    coverage: "income_history",
    index_coverage: None,
}
"""Every chart, and the loader of its rows; None for the dataset that `index` writes."""

FRAMES = analysis.FRAMES | {
    "names": "validators",
    "network": "income_history",
    "produced": "produced_blocks",
    "upcoming": "v2.upcoming_duty_slots",
    "yield_index": "yield_index",
}
"""Arguments of charts that may be a second frame, and the loader of its rows."""

ARGUMENTS = {
    "every": "Time of one bar or point.",
    "unit": "Unit of amounts.",
    "by": "What has a line or a colour of its own.",
    "show": "What to draw.",
    "span": "Time over which income is ranked.",
    "split": "Draw the consensus and the execution layer separately.",
    "cumulative": "Draw the sum since the first row.",
    "late": "Inclusion distance from which an attestation is late, in slots.",
    "top": "Number of validators.",
    "level": "Share of all cases that the range of chance contains.",
    "title": "Title above the chart; auto: what a chart of income found.",
    "caption": 'Line below the chart, instead of its validators and range; "" for none.',
    "figsize": "Size in inches, such as 3.6 3.6.",
    "background": "Colour of unpainted pixels, such as #ffffff.",
}
"""The other arguments of charts, as the command line describes them."""
