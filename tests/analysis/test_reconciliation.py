"""Balances reconciled with income and events, to the gwei."""

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.errors import UsageError
from beaconframes.simulator import simulate

from ..support.engines import assert_equal
from .test_income import history

ETH = 10**9
COLUMNS = [
    "validator_index",
    "epoch",
    "change_gwei",
    "income_gwei",
    "deposits_gwei",
    "withdrawals_gwei",
    "consolidations_gwei",
    "unexplained_gwei",
]


def balances(*rows):
    return pl.DataFrame(
        list(rows),
        schema={"validator_index": pl.Int64, "epoch": pl.Int64, "balance_gwei": pl.Int64},
        orient="row",
    )


HELD = balances(
    (1, 10, 32 * ETH),
    (1, 11, 32 * ETH + 70),
    (1, 12, 32 * ETH),
    (1, 13, 33 * ETH + 5),
    (2, 11, 5),
    (2, 12, 5),
    (2, 14, 5),
    (3, 10, 64 * ETH),
    (3, 11, 0),
)
EARNED = history(
    (1, 10, {"attestation_head_reward_gwei": 100, "sync_committee_penalty_gwei": 30}),
    (1, 11, {"attestation_target_penalty_gwei": 10}),
    (1, 12, {"proposer_sync_inclusion_reward_gwei": 5}),
    (3, 10, {"proposals_missed": 7}),
)
DEPOSITS = pl.DataFrame(
    {"block_slot": [12 * 32 + 31, 9 * 32], "pubkey": ["0xaa", "0xaa"], "amount_gwei": [ETH, 9]}
)
WITHDRAWALS = pl.DataFrame({"validator_index": [1], "epoch": [11], "amount_gwei": [59]})
MOVES = pl.DataFrame(
    {"source_index": [3], "target_index": [1], "slot": [12 * 32], "amount_gwei": [1]}
)
KEYS = pl.DataFrame({"validator_index": [1, 2, 3], "pubkey": ["0xaa", "0xbb", "0xcc"]})
# By hand: 64 ETH left validator 3 in epoch 10, without an event.
EXPECTED = pl.DataFrame(
    [
        (1, 10, 70, 70, 0, 0, 0, 0),
        (1, 11, -70, -10, 0, 59, 0, -1),
        (1, 12, ETH + 5, 5, ETH, 0, 1, -1),
        (2, 11, 0, 0, 0, 0, 0, 0),
        (3, 10, -64 * ETH, 0, 0, 0, 0, -64 * ETH),
    ],
    schema=COLUMNS,
    orient="row",
)


def test_changes_by_hand():
    """Income, a deposit by public key, a withdrawal, a consolidation, and the remainder."""
    result = analysis.reconcile(
        HELD,
        EARNED,
        deposits=DEPOSITS,
        withdrawals=WITHDRAWALS,
        consolidations=MOVES,
        validators=KEYS,
    )

    assert_equal(EXPECTED, result)


def test_attestations_may_be_paid_later():
    """On mainnet the attestations of an epoch are paid at the end of the next one."""
    held = balances((1, 4, 0), (1, 5, 3), (1, 6, 53), (1, 7, 50))
    earned = history(
        (1, 3, {"attestation_source_reward_gwei": 2}),
        (1, 4, {"attestation_head_reward_gwei": 40, "sync_committee_reward_gwei": 1}),
        (1, 5, {"attestation_source_penalty_gwei": 3, "sync_committee_reward_gwei": 10}),
        (1, 6, {}),
    )

    rows = analysis.reconcile(held, earned, attestations_settle=1)

    assert [(4, 3, 0), (5, 50, 0), (6, -3, 0)] == rows.select(
        "epoch", "income_gwei", "unexplained_gwei"
    ).rows()


def test_a_range_may_be_given():
    """Epochs outside are left out, and nothing is looked up."""
    rows = analysis.reconcile(HELD.lazy(), EARNED.lazy(), since=11, until=11).collect()

    assert [1, 2] == rows["validator_index"].to_list()


def test_a_missing_row_is_found():
    """Without one income row, exactly that row is unexplained."""
    earned = EARNED.filter(~((pl.col("validator_index") == 1) & (pl.col("epoch") == 10)))

    rows = analysis.reconcile(HELD, earned, since=10, until=10)

    wrong = rows.filter(pl.col("unexplained_gwei") != 0)
    assert [(1, 70), (3, -64 * ETH)] == wrong.select("validator_index", "unexplained_gwei").rows()


def test_a_row_with_an_unknown_amount_explains_nothing():
    """A part of an income is not the income."""
    earned = EARNED.with_columns(
        slashing_reward_gwei=pl.when(pl.col("epoch") != 10).then("slashing_reward_gwei")
    )

    rows = analysis.reconcile(HELD, earned, since=10, until=10)

    assert [(1, 0, 70), (3, 0, -64 * ETH)] == rows.select(
        "validator_index", "income_gwei", "unexplained_gwei"
    ).rows()


def explained(dataset):
    return analysis.reconcile(
        dataset.scan("balance_history"),
        dataset.scan("income_history"),
        deposits=dataset.scan("slot_deposits"),
        withdrawals=dataset.scan("validator_withdrawals"),
        validators=dataset.scan("validators"),
    ).collect()


def assert_explained(dataset):
    rows = explained(dataset)
    epochs = dataset.meta["finalized_epoch"] + 1
    assert rows.height > 0.95 * dataset.meta["validators"] * epochs
    assert rows["deposits_gwei"].sum() > 0
    assert rows["withdrawals_gwei"].sum() > 0
    assert 0 == rows["unexplained_gwei"].abs().sum()


def test_nothing_is_unexplained_on_the_simulated_chain(chain):
    """470 epochs with deposits, exits, slashings and withdrawals: 0 gwei are unexplained."""
    assert_explained(chain)


@pytest.mark.more
@pytest.mark.parametrize("seed", [11, 12])
def test_nothing_is_unexplained_with_other_seeds(tmp_path, seed):
    """The same for chains of other seeds."""
    assert_explained(simulate(tmp_path / "data", validators=80, epochs=30, seed=seed))


def test_wrong_frames_are_explained():
    """Deposits by public key need validators; the delay is a number of epochs."""
    with pytest.raises(UsageError, match="public keys but no validator indices"):
        analysis.reconcile(HELD, EARNED, deposits=DEPOSITS)
    with pytest.raises(UsageError, match="attestations_settle=-1"):
        analysis.reconcile(HELD, EARNED, attestations_settle=-1)
    with pytest.raises(UsageError, match="no column balance_gwei"):
        analysis.reconcile(EARNED, EARNED)
