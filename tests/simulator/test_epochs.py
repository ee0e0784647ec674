"""Test simulated epochs, and the latest state."""

import json

import polars as pl

from ..support.simulated_chain import assert_empty


def test_epochs_sum_the_counts_of_their_blocks(simulated):
    """An epoch has the counts of its canonical blocks; those of the running epoch are 0."""
    names = [
        "attestations_count", "attester_slashings_count", "proposer_slashings_count",
        "deposits_count", "withdrawals_count", "voluntary_exits_count",
    ]  # fmt: skip
    expected = (
        simulated.blocks.filter(pl.col("status") == "proposed")
        .group_by("epoch")
        .agg(pl.col(names).sum(), blocks_count=pl.len().cast(pl.Int64))
        .sort("epoch")
    )
    ended = simulated.epochs.filter(pl.col("epoch") < simulated.latest)
    running = simulated.epochs.filter(pl.col("epoch") == simulated.latest)

    assert ended.select(expected.columns).equals(expected.head(-1))
    assert {0} == set(running.select(*names, "blocks_count", "voted_ether_gwei").row(0))


def test_epochs_count_blocks_by_status(simulated):
    """Proposed, missed, orphaned and scheduled are the rows of the epoch with that status."""
    for status in ("proposed", "missed", "orphaned", "scheduled"):
        rows = simulated.blocks.group_by("epoch").agg((pl.col("status") == status).sum())
        expected = rows.sort("epoch")["status"].to_list()
        assert expected == simulated.epochs[f"{status}_blocks"].to_list()


def test_epochs_count_active_validators(simulated):
    """Count, total and mean balance are those of the active validators."""
    active = simulated.states.filter("active").group_by("epoch")
    expected = active.agg(count=pl.len().cast(pl.Int64), total=pl.col("balance_gwei").sum()).sort(
        "epoch"
    )
    epochs = simulated.epochs

    assert expected["count"].equals(epochs["validators_count"])
    assert expected["total"].equals(epochs["total_validator_balance_gwei"])
    mean = expected["total"] // expected["count"]
    assert mean.equals(epochs["average_validator_balance_gwei"])


def test_epochs_are_final_up_to_the_finalized_epoch(simulated):
    """Epochs are finalized, and their rewards exported, up to the finalized epoch."""
    final = pl.col("epoch") <= simulated.finalized
    assert_empty(simulated.epochs.filter(pl.col("finalized") != final))
    assert_empty(simulated.epochs.filter(pl.col("rewards_exported") != final))
    assert simulated.finalized == simulated.income_history["epoch"].max()
    assert simulated.latest == simulated.balance_history["epoch"].max()


def test_latest_state_agrees_with_blocks_and_epochs(simulated):
    """The one row agrees with blocks and epochs."""
    (state,) = simulated.latest_state.to_dicts()
    reached = simulated.blocks.filter(pl.col("status") != "scheduled")
    proposed = simulated.blocks.filter(pl.col("status") == "proposed")

    assert reached["slot"].max() == state["current_slot"] == simulated.meta["latest_slot"]
    assert proposed["slot"].max() == state["last_proposed_slot"]
    assert simulated.latest == state["current_epoch"]
    assert simulated.finalized == state["current_finalized_epoch"]
    assert (2, False) == (state["finality_delay"], state["syncing"])
    assert "USD" in json.loads(state["main_currency_ticker_prices"])
