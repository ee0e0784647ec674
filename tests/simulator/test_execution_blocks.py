"""Test simulated execution blocks: fees, relays and rewards of proposers."""

import polars as pl

from ..support.simulated_chain import KEY, assert_empty


def test_execution_blocks_agree_with_beacon_blocks(simulated):
    """Each canonical block with a payload has a row that agrees with the beacon block."""
    names = {
        "block_number": "exec_block_number",
        "consensus_block_number": "exec_block_number",
        "block_hash": "exec_block_hash",
        "parent_hash": "exec_parent_hash",
        "time": "exec_time",
        "fee_recipient": "exec_fee_recipient",
        "gas_limit": "exec_gas_limit",
        "gas_used": "exec_gas_used",
        "base_fee_per_gas_wei": "exec_base_fee_per_gas_wei",
        "transactions_count": "exec_transactions_count",
        "slot": "slot",
        "epoch": "epoch",
        "proposer_index": "proposer_index",
    }
    expected = simulated.produced.select(**names).sort("block_number")

    assert expected.equals(simulated.execution_blocks.select(*names))
    final = pl.col("epoch") <= simulated.finalized
    assert_empty(simulated.execution_blocks.filter(final != pl.col("finalized")))


def test_fees_are_those_of_income(simulated):
    """The fees of a proposer's blocks in an epoch are those of its income."""
    sums = (
        simulated.execution_blocks.filter("finalized")
        .group_by("epoch", validator_index="proposer_index")
        .agg(fees=pl.col("block_reward_wei").sum())
    )
    rows = simulated.income_history.join(sums, KEY, how="left")

    assert_empty(rows.filter(pl.col("tx_fee_reward_wei") != pl.col("fees").fill_null(0)))
    assert sums.height > 1000


def test_a_relayed_block_pays_builder_and_proposer(simulated):
    """A block from a relay pays its builder the fees, and the proposer a payment."""
    rows = simulated.execution_blocks
    built = pl.col("relay_tag").is_not_null()
    payment, fees = pl.col("block_mev_reward_wei"), pl.col("block_reward_wei")

    assert 0.7 < rows.select(built.mean()).item() < 0.9
    assert_empty(rows.filter(built != (payment > 0)))
    assert_empty(rows.filter(built != pl.col("relay_builder_pubkey").is_not_null()))
    assert_empty(rows.filter(built != pl.col("relay_producer_fee_recipient").is_not_null()))
    assert_empty(rows.filter(pl.col("producer_reward_wei") != pl.when(built).then(payment)
                        .otherwise(fees)))  # fmt: skip
    assert rows["relay_tag"].drop_nulls().str.starts_with("sim-").all()
    builders = rows.filter(built).select("fee_recipient", "relay_builder_pubkey").unique()
    assert builders.height == builders["fee_recipient"].n_unique() > 2


def test_each_proposer_has_one_fee_recipient(simulated):
    """Each proposer has one address, for all builders."""
    paid = pl.coalesce("relay_producer_fee_recipient", "fee_recipient")
    addresses = simulated.execution_blocks.group_by("proposer_index").agg(paid.n_unique())

    assert {1} == set(addresses["relay_producer_fee_recipient"])


def test_execution_performance_sums_block_rewards(simulated):
    """Execution performance of the last days is the sum of the proposer's block rewards."""
    got, slot = pl.col("producer_reward_wei"), pl.col("slot")
    head = simulated.meta["latest_slot"]
    sums = simulated.execution_blocks.group_by(validator_index="proposer_index").agg(
        *(
            got.filter(slot > head - days * 7200).sum().alias(f"performance_{days}d_wei")
            for days in (1, 7, 31, 365)
        ),
        performance_total_wei=got.sum(),
    )
    expected = simulated.validators.select(KEY[0]).join(
        sums, KEY[0], how="left", maintain_order="left"
    )

    assert expected.with_columns(pl.exclude(KEY[0]).fill_null(0)).rows() == (
        simulated.execution_performance.rows()
    )
