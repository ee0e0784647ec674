"""Income without an execution node: priority fees of proposers are null, and never 0."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis, charts
from beaconframes.frames import to_polars

from ..support.engines import each_engine, make
from .test_income import history

UNKNOWN = "unknown, because priority fees are missing"
FEES_ONLY = "priority fees, relay payments not included"
INCOME = history(
    (1, 5, {"tx_fee_reward_wei": None, "proposer_sync_inclusion_reward_gwei": 2}),
    (1, 6, {"attestation_head_reward_gwei": 5}),
    (2, 5, {"attestation_head_reward_gwei": 7}),
    (3, 6, {"tx_fee_reward_wei": Decimal(50), "proposer_attestation_inclusion_reward_gwei": 1}),
)
TOTALS = ["consensus_income_gwei", "execution_income_wei", "net_income_wei"]


@pytest.mark.more
@each_engine
def test_unknown_fees_leave_the_consensus_layer_exact(kind):
    """Rows are not left out; only the sums that contain them are null."""
    rows = analysis.income(make(kind, INCOME), every="all", by="validator_index")
    expected = pl.DataFrame(
        {
            "validator_index": [1, 2, 3],
            "validator_epochs": [2, 1, 1],
            "consensus_income_gwei": [7, 7, 1],
            "execution_income_wei": pl.Series([None, 0, 50], dtype=pl.Decimal(28, 0)),
            "net_income_wei": pl.Series([None, 7 * 10**9, 10**9 + 50], dtype=pl.Decimal(28, 0)),
            "execution_income_basis": [UNKNOWN, FEES_ONLY, FEES_ONLY],
        }
    )

    found = to_polars(rows).select(expected.columns).sort("validator_index")
    assert found.rows() == expected.rows()


def test_a_ledger_states_unknown_income():
    prices = pl.DataFrame({"time": INCOME["time"].unique(), "eur": 2000.0})
    rows = analysis.ledger(INCOME, prices=prices, price="eur").sort("validator_index")

    assert rows.select(*TOTALS).rows()[0] == (7, None, None)
    assert rows["execution_income_basis"].to_list() == [UNKNOWN, FEES_ONLY, FEES_ONLY]
    assert rows["income_value"].null_count() == 1


def test_blocks_make_income_known():
    blocks = pl.DataFrame({"proposer_index": [1, 3], "epoch": [5, 6], "slot": [160, 200],
                           "producer_reward_wei": [400, 60]})  # fmt: skip
    rows = analysis.income(INCOME, blocks=blocks, every="all", by="validator_index")

    assert rows.sort("validator_index")["execution_income_wei"].to_list() == [400, 0, 60]


def test_rates_of_the_consensus_layer_are_known():
    balances = INCOME.select(
        "validator_index", "epoch", "time", effective_balance_gwei=pl.lit(32 * 10**9)
    )
    rates = analysis.apr(INCOME, balances, every="all", by="validator_index")
    rates = rates.sort("validator_index")

    assert rates["apr_on_32_eth"].is_null().to_list() == [True, False, False]
    assert rates["el_apr_on_effective"].to_list()[:2] == [None, 0.0]
    assert rates["cl_apr_on_32_eth"][0] == pytest.approx(7 / 64e9 * 365 * 225)


def test_the_cost_of_a_missed_block_is_known_on_one_layer():
    unknown = INCOME.filter(pl.col("epoch") == 5)
    proposals = pl.DataFrame({"slot": [161], "epoch": [5], "time": INCOME["time"][:1],
                              "status": ["missed"], "proposer_index": [9]})  # fmt: skip

    row = analysis.missed_proposals(proposals, unknown).row(0, named=True)
    assert (2, None) == (row["cost_consensus_gwei"], row["cost_execution_wei"])


def test_charts_draw_the_consensus_layer_and_say_so():
    chart = charts.income(INCOME, every="epoch")
    known = charts.income(INCOME.filter(validator_index=3), every="epoch")

    assert chart.y.label.startswith("Consensus income per epoch")
    assert chart.note == "consensus layer only, because priority fees are missing"
    assert known.y.label.startswith("Net income")
