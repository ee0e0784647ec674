"""Test the simulated staking pool: minipools, nodes and statistics."""

import polars as pl
import pytest

from ..support.simulated_chain import KEY, WEI, assert_empty


def test_a_minipool_is_the_withdrawal_address_of_its_validator(simulated):
    """A minipool is the contract to which its validator pays; each has one."""
    rows = simulated.pool_validators

    assert rows.height == rows["minipool_address"].n_unique()
    assert rows.height > rows["node_address"].n_unique() > 1
    for row in rows.to_dicts():
        assert simulated.find_address(row["validator_index"]) == row["minipool_address"]
        whole = row["node_deposit_balance_wei"] + row["user_deposit_balance_wei"]
        assert whole == 32 * WEI
    staking = rows.filter(pl.col("minipool_status") == "Staking").join(simulated.validators, KEY[0])
    assert staking["status"].str.contains("_o(n|ff)line$").all()
    slashed = rows.join(simulated.validators, KEY[0])
    assert_empty(slashed.filter(pl.col("slashed") != (pl.col("penalty_count") > 0)))


def test_nodes_receive_their_block_rewards(simulated):
    """A node receives its block rewards at its address."""
    blocks = simulated.execution_blocks.join(
        simulated.pool_validators, left_on="proposer_index", right_on=KEY[0]
    )
    paid = pl.coalesce("relay_producer_fee_recipient", "fee_recipient")

    assert blocks.height
    assert_empty(blocks.filter(paid != pl.col("node_address")))


def test_pool_statistics_are_sums_over_minipools_and_nodes(simulated):
    """The pool's statistics are sums over its minipools and nodes."""
    (row,) = simulated.pool_stats.to_dicts()
    pools = simulated.pool_validators
    nodes = pools.unique("node_address")

    assert (pools.height, nodes.height) == (row["minipool_count"], row["node_count"])
    staking = pools.filter(pl.col("minipool_status") == "Staking").height
    assert 32 * WEI * staking == row["total_eth_staking_wei"] < row["total_eth_balance_wei"]
    stake = nodes["effective_rpl_stake_base_units"].sum()
    assert stake == row["effective_rpl_staked_base_units"]
    apr = simulated.yield_index["apr"][-1]
    assert apr * (1 - row["current_node_fee"]) == pytest.approx(row["reth_apr"])
    supply = float(row["reth_supply_base_units"]) * row["reth_exchange_rate"]
    assert supply == pytest.approx(float(row["total_eth_balance_wei"]))
