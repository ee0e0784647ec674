"""Execution income: what proposers received, from frames of blocks, on every engine."""

from decimal import Decimal

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import analysis
from beaconframes.errors import UsageError

from ..support.engines import assert_equal, make
from .test_apr import HELD, INDEX, SHORT
from .test_income import history

FEES_ONLY = "priority fees, relay payments not included"
RECEIVED = "received by the proposer"
# Validator 1 proposes twice in epoch 5, once through a relay; validator 2 through a relay, in a
# block without fees.
EARNED = history(
    (1, 5, {"tx_fee_reward_wei": Decimal(300), "proposer_sync_inclusion_reward_gwei": 2}),
    (1, 6, {"attestation_head_reward_gwei": 1}),
    (2, 6, {"proposer_attestation_inclusion_reward_gwei": 1}),
    (3, 6, {"tx_fee_reward_wei": Decimal(50), "proposer_attestation_inclusion_reward_gwei": 1}),
)
RECEIVED_WEI = {1: 100 + 7000, 2: 9000, 3: 50}


def produced(*rows):
    """Execution blocks from (proposer, epoch, fees, amount received)."""
    return pl.DataFrame(
        [
            (number, proposer, epoch, Decimal(fees), Decimal(received))
            for number, (proposer, epoch, fees, received) in enumerate(rows, 700)
        ],
        schema={
            "block_number": pl.Int64,
            "proposer_index": pl.Int64,
            "epoch": pl.Int64,
            "block_reward_wei": pl.Decimal(28, 0),
            "producer_reward_wei": pl.Decimal(28, 0),
        },
        orient="row",
    )


# The last two are of another validator, and orphaned: without an epoch and a proposer.
BLOCKS = produced(
    (1, 5, 100, 100),
    (1, 5, 200, 7000),
    (2, 6, 0, 9000),
    (3, 6, 50, 50),
    (9, 6, 10, 10**6),
    (None, None, 10, 10**6),
)
V2_BLOCKS = BLOCKS.select(
    "block_number",
    "epoch",
    total_reward_wei="producer_reward_wei",
    priority_fees_wei="block_reward_wei",
)


def received(blocks, **options):
    rows = analysis.income(EARNED, blocks=blocks, by="validator_index", **options)
    return dict(rows.select("validator_index", "execution_income_wei").iter_rows())


def test_income_without_blocks_counts_priority_fees():
    """M1: the result says that relay payments are not included."""
    rows = analysis.income(EARNED, every="all")

    assert [(350, FEES_ONLY)] == rows.select(
        "execution_income_wei", "execution_income_basis"
    ).rows()


def test_income_with_blocks_counts_what_the_proposer_received():
    """M1: the relay payment instead of the fees, which went to the builder; once per block."""
    rows = analysis.income(EARNED, blocks=pl.concat([BLOCKS, BLOCKS]), by="validator_index")

    assert RECEIVED_WEI == dict(rows.select("validator_index", "execution_income_wei").iter_rows())
    assert [2 * 10**9 + 7100 + 10**9, 10**9 + 9000, 10**9 + 50] == rows["net_income_wei"].to_list()
    assert {RECEIVED} == set(rows["execution_income_basis"])


@pytest.mark.parametrize(
    "blocks",
    [
        BLOCKS.to_pandas(),
        V2_BLOCKS,
        V2_BLOCKS.join(
            BLOCKS.select("block_number", validator_index="proposer_index"), on="block_number"
        ),
        BLOCKS.drop("block_number").with_columns(
            slot=pl.int_range(pl.len()),
            status=pl.when(pl.col("epoch").is_null())
            .then(pl.lit("missed"))
            .otherwise(pl.lit("proposed")),
        ),
    ],
    ids=["pandas", "v2", "v2 with proposers", "proposals with rewards"],
)
def test_blocks_of_v2_and_proposals_with_rewards(blocks):
    """M1: block rewards of V2 have no proposer; epoch and fees identify it."""
    assert RECEIVED_WEI == received(blocks)


def test_orphaned_proposals_pay_nothing():
    """M1: a reward joined to an orphaned proposal of the same slot is not received."""
    statuses = ["proposed"] * 5 + ["orphaned"]
    blocks = BLOCKS.with_columns(
        pl.Series("status", statuses),
        pl.col("epoch").fill_null(6),
        pl.col("proposer_index").fill_null(3),
    )

    assert RECEIVED_WEI == received(blocks)


def test_a_proposal_without_its_block_is_an_error():
    """M1: fees whose block is absent, or has no reward, are not counted silently."""
    for blocks in (
        BLOCKS.filter(pl.col("block_number") != 703),
        BLOCKS.with_columns(pl.when(pl.col("block_number") != 703).then("producer_reward_wei")),
        V2_BLOCKS.filter(pl.col("block_number") != 703),
    ):
        with pytest.raises(
            UsageError, match=r"no block of validator 3 in epoch 6.*1 of 3 proposals"
        ):
            received(blocks)


def test_both_versions_of_the_service_pay_the_same(explorer):
    """M1: one call with V1; block rewards of V2, of the blocks that were proposed."""
    income = bf.load_income_history([3, 4, 5], since=400, until=440)
    blocks = bf.load_produced_blocks([3, 4, 5])
    numbers = blocks.filter(pl.col("epoch").is_between(400, 440))["block_number"]
    by_validator = {"every": "all", "by": "validator_index"}

    paid = analysis.income(income, blocks=blocks, **by_validator)

    assert numbers.len() > 1
    assert paid["execution_income_wei"].sum() > income["tx_fee_reward_wei"].sum()
    assert_equal(
        paid, analysis.income(income, blocks=bf.v2.load_block_rewards(numbers), **by_validator)
    )


def test_ambiguous_blocks_of_v2_are_an_error():
    """M1: two blocks of one epoch with the same fees and other rewards."""
    twin = V2_BLOCKS.filter(pl.col("block_number") == 703).with_columns(
        block_number=pl.lit(800, pl.Int64), total_reward_wei=pl.lit(60).cast(pl.Decimal(28, 0))
    )

    with pytest.raises(UsageError, match="several blocks of epoch 6 have 50 wei of priority fees"):
        received(pl.concat([V2_BLOCKS, twin]))


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        (BLOCKS.drop("producer_reward_wei"), "producer_reward_wei or total_reward_wei.*slots="),
        (BLOCKS.drop("proposer_index"), "proposer_index or validator_index"),
        (BLOCKS.drop("epoch"), "no column epoch"),
        (BLOCKS.with_columns(pl.col("producer_reward_wei").cast(float)), "whole numbers"),
        ([1], "expected a frame"),
    ],
)
def test_frames_that_are_no_blocks_are_refused(blocks, words):
    """M1: the message names the columns, the hint the loaders."""
    with pytest.raises(UsageError, match=words):
        received(blocks)


@pytest.mark.parametrize(
    "kind",
    ["duckdb", *(pytest.param(k, marks=pytest.mark.more) for k in ("dask", "pandas-numpy"))],
)
def test_engines_count_the_same(kind):
    """M1: the result has the kind of the income; the blocks may be of another."""
    frame = make(kind, EARNED)

    result = analysis.income(frame, blocks=BLOCKS, by="validator_index")

    assert_equal(analysis.income(EARNED, blocks=BLOCKS, by="validator_index"), result, like=frame)


def test_the_ledger_and_costs_count_what_was_received():
    """M1: `ledger` by day and validator, `missed_proposals` by what its block received."""
    book = analysis.ledger(EARNED, blocks=BLOCKS)
    assert RECEIVED_WEI == dict(book.select("validator_index", "execution_income_wei").iter_rows())
    assert {RECEIVED} == set(book["execution_income_basis"])
    assert {FEES_ONLY} == set(analysis.ledger(EARNED)["execution_income_basis"])

    missed = BLOCKS.head(1).select(
        "epoch",
        "proposer_index",
        status=pl.lit("missed"),
        slot=pl.lit(160, pl.Int64),
        time=EARNED["time"][0],
    )
    made = EARNED.filter(pl.col("validator_index") == 2)
    costs = [
        analysis.missed_proposals(missed, made, blocks=blocks)["cost_execution_wei"].item()
        for blocks in (None, BLOCKS)
    ]
    assert [0, 9000] == costs


def test_rates_count_what_was_received():
    """M1: except `apr_as_index`, because the yield index counts priority fees."""
    earned = history(*((1, e, {"tx_fee_reward_wei": Decimal(10**15)}) for e in (3, 4, 5)))
    earned = earned.with_columns(time=SHORT.time_expr("epoch", pl.col("epoch")))
    blocks = produced(*((1, epoch, 10**15, 3 * 10**15) for epoch in (3, 4, 5)))

    fees, paid = (
        analysis.apr(earned, HELD, INDEX, blocks=given, chain=SHORT).row(0, named=True)
        for given in (None, blocks)
    )

    for rate in ("el_apr_on_32_eth", "el_apr_on_effective", "apr_on_effective"):
        assert 3 * fees[rate] == pytest.approx(paid[rate])
    assert 9 * 10**15 == paid["execution_income_wei"]
    for rate in ("el_apr_as_index", "apr_as_index", "difference_bp"):
        assert fees[rate] == paid[rate]
    assert (FEES_ONLY, RECEIVED) == (
        fees["execution_income_basis"],
        paid["execution_income_basis"],
    )


def test_a_chain_pays_what_its_blocks_paid(chain):
    """M1: performance sums the rewards of the blocks; epoch and fees find the same proposers."""
    epochs, mine = pl.col("epoch").is_between(400, 419), pl.col("validator_index") < 40
    income = chain.scan("income_history").filter(epochs, mine).collect()
    held = chain.scan("balance_history").filter(epochs, mine).collect()
    validators = chain.scan("validators").filter(mine).collect()
    blocks = chain.scan("execution_blocks").filter(pl.col("proposer_index") < 40).collect()
    expected = int(blocks.filter(epochs)["producer_reward_wei"].sum())

    rows = analysis.performance(
        validators.with_columns(group=pl.lit("all")), income, held, blocks=blocks, by="group"
    )

    assert expected == int(rows["execution_income_wei"].item())
    assert expected > int(income["tx_fee_reward_wei"].sum())
    assert [RECEIVED] == rows["execution_income_basis"].to_list()

    v2_blocks = blocks.filter(epochs).select(
        "block_number",
        "epoch",
        total_reward_wei="producer_reward_wei",
        priority_fees_wei="block_reward_wei",
    )
    by_validator = {"every": "all", "by": "validator_index"}
    assert_equal(
        analysis.income(income, blocks=blocks, **by_validator),
        analysis.income(income, blocks=v2_blocks, **by_validator),
    )
