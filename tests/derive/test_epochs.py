"""Overviews of epochs, worked out by hand and compared with those of the simulator."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from beaconframes.derive import derive_tables
from beaconframes.v1.epochs import Epochs

from ..support.chain_tables import (
    CHAIN,
    ETH,
    assert_served,
    build_balances,
    build_blocks,
    build_income,
    build_tables,
    build_validators,
)


@pytest.fixture
def frames():
    """Validator 1 has exited by epoch 1, and validator 3 is not active yet; 2 misses its vote."""
    income = build_income(*((index, epoch, 1, 0) for index in range(3) for epoch in (0, 1)))
    has_missed = (pl.col("validator_index") > 0) & (pl.col("epoch") == 1)
    penalty = pl.when(has_missed).then(7).otherwise(0)
    return {
        "validators": build_validators(
            {}, {"exit_epoch": 1}, {}, {"activation_epoch": 9, "activation_eligibility_epoch": 4}
        ),
        "balance_history": build_balances(
            {0: [31 * ETH, 33 * ETH, 33 * ETH, None], 1: [32 * ETH, 9, 32 * ETH + 1, 77]}
        ),
        "income_history": income.with_columns(attestation_target_penalty_gwei=penalty),
        "blocks": build_blocks(
            {"slot": 8, "attestations_count": 3, "voluntary_exits_count": 1},
            {"slot": 9, "attestations_count": 2, "deposits_count": 4},
            {"slot": 9, "attestations_count": 100, "status": "orphaned"},
            {"slot": 10, "attestations_count": 100, "status": "orphaned"},
            epochs=range(2),
        ),
    }


def derive_epochs(tables, **selection):
    """Return the epochs."""
    return dict(derive_tables(tables, names=["epochs"], **selection))[Epochs]


def test_an_epoch_worked_out_by_hand(frames):
    """Step 11: sums over the active validators, and counts of the canonical blocks."""
    rows = derive_epochs(build_tables(frames, last=1))

    assert Epochs.schema() == rows.schema
    assert {
        "epoch": 1,
        "time": CHAIN.time_of("epoch", 1),
        "finalized": True,
        "validators_count": 2,
        "average_validator_balance_gwei": 32 * ETH,
        "total_validator_balance_gwei": 64 * ETH + 1,
        "global_participation_rate": 0.5,
        "eligible_ether_gwei": 64 * ETH,
        "voted_ether_gwei": 32 * ETH,
        "blocks_count": 2,
        "proposed_blocks": 2,
        "missed_blocks": 5,
        "orphaned_blocks": 2,
        "scheduled_blocks": 0,
        "attestations_count": 5,
        "attester_slashings_count": 0,
        "proposer_slashings_count": 0,
        "deposits_count": 4,
        "withdrawals_count": 0,
        "voluntary_exits_count": 1,
        "rewards_exported": True,
    } == rows.row(1, named=True)
    assert rows[1:].equals(derive_epochs(build_tables(frames, last=1), epochs=range(1, 2)))


def test_participation_is_null_without_income(frames):
    """Step 11: votes are known from income alone."""
    votes = ["global_participation_rate", "voted_ether_gwei"]
    whole = derive_epochs(build_tables(frames, last=1))
    penalty = pl.col("attestation_target_penalty_gwei")
    unknown = frames["income_history"].with_columns(pl.when(penalty == 0).then(penalty))
    lost = {name: rows for name, rows in frames.items() if name != "income_history"}
    for tables in (
        build_tables(frames, last=1, income_history=((0, 0),)),
        build_tables(frames | {"income_history": unknown}, last=1),
        build_tables(lost, last=1, income_history=()),
    ):
        rows = derive_epochs(tables)
        assert whole.drop(*votes, "rewards_exported").equals(rows.drop(*votes, "rewards_exported"))
        assert (None, None) == rows.select(votes).row(1)
        assert_served(Epochs, rows)


@pytest.mark.parametrize(
    ("coverage", "expected"),
    [
        ({}, [0, 1]),
        ({"blocks": ((1, 1),)}, [1]),
        ({"balance_history": ((0, 0),)}, [0]),
        ({"blocks": ((0, 0),), "balance_history": ((1, 1),)}, []),
        ({"validators": frozenset({0, 1, 2})}, []),
    ],
)
def test_only_covered_epochs_have_rows(frames, coverage, expected):
    """Step 11: the balances of all validators and all blocks of the epoch."""
    found = dict(derive_tables(build_tables(frames, last=1, **coverage), names=["epochs"]))

    assert expected == [epoch for rows in found.values() for epoch in rows["epoch"]]


def test_epochs_after_the_head_have_no_rows(frames):
    """A dataset can cover more than the head of a live chain shows."""
    tables = build_tables(frames, last=0, blocks=((0, 1),), balance_history=((0, 1),))

    assert [0] == derive_epochs(tables, epochs=range(2))["epoch"].to_list()


def test_a_missing_balance_leaves_the_epoch_out(frames):
    """Step 11: two validators are active in epoch 1, so one balance is not all of them."""
    lost = (pl.col("validator_index") == 2) & (pl.col("epoch") == 1)
    frames["balance_history"] = frames["balance_history"].filter(~lost)

    assert [0] == derive_epochs(build_tables(frames, last=1))["epoch"].to_list()


def test_equal_to_the_epochs_of_the_simulator(hoodi):
    """Step 11: the simulator counts votes, slots and balances as it makes them."""
    from beaconframes.simulator.derived.chain_data import ChainData

    data = ChainData(hoodi, None)
    final = range(data.first, data.head.finalized_epoch + 1)
    expected = hoodi.scan("epochs").filter(pl.col("finalized")).collect()

    assert_frame_equal(expected, derive_epochs(data, epochs=final))
    assert len(final) == expected.height
