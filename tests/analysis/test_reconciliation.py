"""Balances reconciled with income and events, to the gwei."""

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest

from beaconframes import analysis
from beaconframes.analysis import balance_changes
from beaconframes.errors import UsageError
from beaconframes.simulator import simulate

from ..support.engines import assert_equal
from ..support.node_chains import CHAIN, build_frames
from .test_income import history

ETH = 10**9
COLUMNS = {
    "validator_index": pl.Int64,
    "epoch": pl.Int64,
    "until_epoch": pl.Int64,
    "change_gwei": pl.Int64,
    "income_gwei": pl.Int64,
    "deposits_gwei": pl.Int64,
    "withdrawals_gwei": pl.Int64,
    "consolidations_gwei": pl.Int64,
    "ends_gwei": pl.Int64,
    "unexplained_gwei": pl.Int64,
    "open_start_slot": pl.Int64,
    "open_end_slot": pl.Int64,
    "possible_cause": pl.String,
    "attestations_settle": pl.Int64,
}


def balances(*rows):
    return pl.DataFrame(
        list(rows),
        schema={"validator_index": pl.Int64, "epoch": pl.Int64, "balance_gwei": pl.Int64},
        orient="row",
    )


HELD = balances(
    (1, 10, 32 * ETH),
    (1, 11, 32 * ETH + 70),
    (1, 12, 32 * ETH + 7),
    (1, 13, 33 * ETH + 6),
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
    (3, 14, {}),
)
DEPOSITS = pl.DataFrame(
    {"block_slot": [12 * 32 + 31, 9 * 32], "pubkey": ["0xaa", "0xaa"], "amount_gwei": [ETH, 9]}
)
WITHDRAWALS = pl.DataFrame({"validator_index": [1], "epoch": [11], "amount_gwei": [59]})
MOVES = pl.DataFrame(
    {"source_index": [3], "target_index": [1], "slot": [12 * 32], "amount_gwei": [1]}
)
KEYS = pl.DataFrame({"validator_index": [1, 2, 3], "pubkey": ["0xaa", "0xbb", "0xcc"]})
EVENTS = {
    "deposits": DEPOSITS,
    "withdrawals": WITHDRAWALS,
    "consolidations": MOVES,
    "validators": KEYS,
    "attestations_settle": 0,
}
IN_BLOCKS = pl.DataFrame(
    {"validator_index": [1, 1], "slot": [12 * 32, 10 * 32 + 3], "amount_gwei": [5, -30]}
)


def table(*rows):
    return pl.DataFrame(list(rows), schema=COLUMNS, orient="row")


def test_changes_by_hand():
    """M3: the block in the first slot of epoch 12 counts for the change of epoch 11.

    64 ETH left validator 3 in epoch 10, and 1 gwei validator 1 in epoch 12, without an event.
    """
    result = analysis.reconcile(HELD, EARNED, slot_income=IN_BLOCKS, **EVENTS)

    expected = table(
        (1, 10, 10, 70, 70, 0, 0, 0, 0, 0, None, None, None, 0),
        (1, 11, 11, -63, -5, 0, 59, 1, 0, 0, None, None, None, 0),
        (1, 12, 12, ETH - 1, 0, ETH, 0, 0, 0, -1, None, None, None, 0),
        (2, 11, 11, 0, 0, 0, 0, 0, 0, 0, None, None, None, 0),
        (3, 10, 10, -64 * ETH, 0, 0, 0, 0, 0, -64 * ETH, None, None, None, 0),
    )
    assert_equal(expected, result)


def test_epochs_that_share_an_unknown_block_share_a_row():
    """M3: by epoch, the income of epochs 11 and 12 is exact; the block of slot 320 is named."""
    result = analysis.reconcile(HELD, EARNED, **EVENTS)

    assert_equal(
        table(
            (1, 10, 10, 70, 70, 0, 0, 0, 0, 0, 320, None, None, 0),
            (1, 11, 12, ETH - 64, -5, ETH, 59, 1, 0, -1, None, None, None, 0),
            (2, 11, 11, 0, 0, 0, 0, 0, 0, 0, None, None, None, 0),
            (3, 10, 10, -64 * ETH, 0, 0, 0, 0, 0, -64 * ETH, None, None, None, 0),
        ),
        result,
    )


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ([12 * 32], [(10, 10), (11, 11), (12, 12)]),
        ([12 * 32 + 1], [(10, 10), (11, 11), (12, 12)]),
        ([12 * 32, 12 * 32 + 1], [(10, 10), (11, 12)]),
        ([], [(10, 10), (11, 12)]),
    ],
)
def test_blocks_split_the_rows_of_proposers(slots, expected):
    """M3: the slot of an only block says whether the first block paid; two blocks do not."""
    blocks = pl.DataFrame(
        [(1, slot, "proposed") for slot in slots] + [(1, 12 * 32, "missed")],
        schema=["proposer_index", "slot", "status"],
        orient="row",
    )
    rows = analysis.reconcile(HELD, EARNED, blocks=blocks, **EVENTS).filter(validator_index=1)

    assert expected == rows.select("epoch", "until_epoch").rows()
    if len(slots) == 1:
        moved = 0 if slots[0] % 32 == 0 else 5
        assert [0, moved, -1 - moved] == rows["unexplained_gwei"].to_list()


def test_an_end_explains_no_more_than_its_block_can_pay():
    """M3: the start block of a sync member took at most the 30 gwei of its epoch."""
    for missing, ends in ((10, 10), (30, 30), (31, 30), (-1, 0)):
        held = HELD.with_columns(
            pl.when(epoch=11).then(pl.col("balance_gwei") + missing).otherwise("balance_gwei")
        )
        row = analysis.reconcile(held, EARNED, until=10, **EVENTS).row(0, named=True)

        assert (ends, missing - ends) == (row["ends_gwei"], row["unexplained_gwei"])


def test_sync_duties_of_v2_and_blocks_are_slot_income():
    """M3: wei of the first slots, as `v2.load_slot_sync_committee_duties` returns them."""
    duties = pl.DataFrame(
        {"slot": [320, 352], "validator_index": [1, 1], "total_wei": [Decimal(-9 * ETH), None]},
        schema_overrides={"total_wei": pl.Decimal(28, 0)},
    )
    blocks = pl.DataFrame({"proposer_index": [1], "slot": [384]})

    rows = analysis.reconcile(HELD, EARNED, slot_income=duties, blocks=blocks, **EVENTS)

    mine = rows.filter(validator_index=1)
    assert [79, -5, 0] == mine["income_gwei"].to_list()
    assert [None] * 5 == rows["open_start_slot"].to_list()


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "count", "merged"),
    [("altair", 608, 16), ("capella", 928, 122), ("electra", 3482, 1982)],
)
def test_chains_of_real_clients_are_explained(name, count, merged):
    """M3, M4: no gwei is unexplained, row by row with income by slot, else over ranges.

    The offset of the attestations is found.
    """
    frames = build_frames(name)

    rows = analysis.reconcile(**frames, chain=CHAIN)

    assert (count, 0) == (rows.height, rows["unexplained_gwei"].abs().sum())
    assert rows["epoch"].equals(rows["until_epoch"], check_names=False)
    assert (0, [1]) == (
        rows["ends_gwei"].abs().sum(),
        rows["attestations_settle"].unique().to_list(),
    )
    assert rows["change_gwei"].n_unique() > rows.height // 10
    del frames["slot_income"]
    ranges = analysis.reconcile(**frames, chain=CHAIN)
    assert (merged, 0) == (ranges.height, ranges["unexplained_gwei"].abs().sum())
    # The ends are named: the block that begins the first epoch and the one after the last.
    is_open = ranges.filter(pl.col("ends_gwei") != 0)
    assert {*is_open["open_start_slot"], *is_open["open_end_slot"]} <= {
        8,
        8 * (rows["epoch"].max() + 1),
        None,
    }


@pytest.mark.parametrize("size", [1, 38, 39, 200])
def test_parts_of_validators_give_the_same_rows(monkeypatch, size):
    """Many rows are explained in parts; a part has all rows of its validators."""
    frames = build_frames("altair")
    del frames["slot_income"]
    whole = analysis.reconcile(**frames, chain=CHAIN)
    monkeypatch.setattr(balance_changes, "_ROWS_OF_PART", size)

    assert whole.equals(analysis.reconcile(**frames, chain=CHAIN))


@pytest.mark.more
@pytest.mark.parametrize("offset", [-1, 0, 1, 2])
def test_the_offset_of_attestations_is_found(offset):
    """M4: left out, the offset that explains most rows is used and reported; it can be given."""
    earned = {epoch: epoch**2 for epoch in range(10, 30)}
    income = history(
        *((1, epoch, {"attestation_head_reward_gwei": gwei}) for epoch, gwei in earned.items())
    )
    held = [32 * ETH]
    for epoch in range(10, 30):
        held.append(held[-1] + earned.get(epoch - offset, 0))
    frame = balances(*((1, 10 + n, gwei) for n, gwei in enumerate(held)))

    found = analysis.reconcile(frame, income)
    given = analysis.reconcile(frame, income, attestations_settle=offset)

    assert found.equals(given)
    assert [offset] == found["attestations_settle"].unique().to_list()
    assert (19 - max(offset, 0), 0) == (found.height, found["unexplained_gwei"].abs().sum())
    wrong = analysis.reconcile(frame, income, attestations_settle=3 - offset)
    assert wrong["unexplained_gwei"].abs().min() > 0


def test_attestations_may_be_paid_later():
    """On mainnet the attestations of an epoch are paid at the end of the next one."""
    held = balances((1, 4, 0), (1, 5, 3), (1, 6, 53), (1, 7, 50))
    earned = history(
        (1, 3, {"attestation_source_reward_gwei": 2}),
        (1, 4, {"attestation_head_reward_gwei": 40, "sync_committee_reward_gwei": 1}),
        (1, 5, {"attestation_source_penalty_gwei": 3, "sync_committee_reward_gwei": 10}),
        (1, 6, {}),
    )
    first_slots = pl.DataFrame({"validator_index": [1], "slot": [160], "amount_gwei": [0]})

    rows = analysis.reconcile(held, earned, attestations_settle=1, slot_income=first_slots)

    assert [(4, 3, 0), (5, 50, 0), (6, -3, 0)] == rows.select(
        "epoch", "income_gwei", "unexplained_gwei"
    ).rows()


@pytest.mark.parametrize(("last_slot", "last"), [(6 * 32 + 31, 5), (7 * 32 + 1, 6)])
def test_slot_income_of_an_index_ends_the_range(last_slot, last):
    """Epoch 6 is explained only if the table of an index has blocks of epoch 7."""
    held = balances((1, 4, 0), (1, 5, 3), (1, 6, 5), (1, 7, 9))
    earned = history(*((1, epoch, {}) for epoch in range(3, 7)))
    slots = [160, 192, 224, last_slot]
    paid = [(1, slot, "sync_committee", slot // 32 - 2) for slot in slots if slot <= last_slot]
    by_slot = pl.DataFrame(paid, ["validator_index", "slot", "kind", "amount_gwei"], orient="row")

    rows = analysis.reconcile(held, earned, attestations_settle=1, slot_income=by_slot)
    given = analysis.reconcile(held, earned, attestations_settle=1, slot_income=by_slot, until=6)

    assert list(range(4, last + 1)) == rows["epoch"].to_list()
    assert [4, 5, 6] == given["epoch"].to_list()


def test_a_range_may_be_given():
    """Epochs outside are left out."""
    rows = analysis.reconcile(HELD.lazy(), EARNED.lazy(), since=11, until=11).collect()

    assert [1, 2] == rows["validator_index"].to_list()


def test_a_missing_row_is_found():
    """Without one income row, exactly that row is unexplained."""
    earned = EARNED.filter(~((pl.col("validator_index") == 1) & (pl.col("epoch") == 10)))

    rows = analysis.reconcile(HELD, earned, since=10, until=10, attestations_settle=0)

    wrong = rows.filter(pl.col("unexplained_gwei") != 0)
    assert [(1, 70), (3, -64 * ETH)] == wrong.select("validator_index", "unexplained_gwei").rows()


def test_deposits_without_a_processing_time_are_candidates():
    """M5: deposits of `load_deposits` have the time of the transaction; it names the candidates.

    Two deposits of one transaction may be processed together; a later one, and one that a
    reorganization removed, are no candidates.
    """
    start = datetime(2020, 12, 1, 12, 0, 23, tzinfo=UTC)
    deposits = pl.DataFrame(
        [
            ("0xbb", start, 20 * ETH, False),
            ("0xbb", start, 12 * ETH, False),
            ("0xcc", datetime(2021, 1, 1, tzinfo=UTC), 7, False),
            ("0xcc", start, 8, True),
        ],
        schema=["pubkey", "time", "amount_gwei", "removed"],
        orient="row",
    )
    held = balances((2, 10, 5), (2, 11, 5 + 32 * ETH), (3, 10, 0), (3, 11, 7), (3, 12, 15))

    rows = analysis.reconcile(
        held, EARNED, deposits=deposits, validators=KEYS, attestations_settle=0
    )

    assert [
        (2, 10, 0, 32 * ETH, "deposit of 2020-12-01 12:00:23"),
        (3, 10, 0, 7, None),
        (3, 11, 0, 8, None),
    ] == rows.select(
        "validator_index", "epoch", "deposits_gwei", "unexplained_gwei", "possible_cause"
    ).rows()


@pytest.mark.more
def test_deposits_of_the_loader_explain_a_simulated_chain(chain):
    """M5: without a slot, each top-up is named beside the amount that it left unexplained."""
    compounding = chain.scan("validators").filter(
        pl.col("withdrawal_credentials").str.starts_with("0x02")
    )
    mine = compounding.select("validator_index")
    balances, income = (
        chain.scan(table).join(mine, "validator_index", how="semi").collect()
        for table in ("balance_history", "income_history")
    )
    events = {
        "withdrawals": chain.scan("validator_withdrawals"),
        "validators": chain.scan("validators"),
    }

    rows = analysis.reconcile(balances, income, deposits=chain.scan("deposits"), **events)

    wrong = rows.filter(pl.col("unexplained_gwei") != 0)
    known = analysis.reconcile(balances, income, deposits=chain.scan("slot_deposits"), **events)
    assert 0 == known["unexplained_gwei"].abs().sum()
    assert wrong.height == known.filter(pl.col("deposits_gwei") > 0).height > 2
    assert wrong["possible_cause"].str.starts_with("deposit of 2026-").all()


def test_consolidations_without_a_source_are_candidates():
    """M5: on the Electra chain, each consolidation is named on both sides."""
    frames = build_frames("electra")
    moves = frames.pop("consolidations")

    rows = analysis.reconcile(**frames, chain=CHAIN)

    expected = [
        *(
            (source, epoch, -gwei, f"consolidation into validator {target}")
            for source, target, epoch, gwei in moves.rows()
        ),
        *(
            (target, epoch, gwei, f"consolidation from validator {source}")
            for source, target, epoch, gwei in moves.rows()
        ),
    ]
    assert len(expected) == 6
    assert (
        sorted(expected)
        == rows.filter(pl.col("unexplained_gwei") != 0)
        .select("validator_index", "epoch", "unexplained_gwei", "possible_cause")
        .rows()
    )


def test_queue_events_of_v2_are_candidates():
    """M5: `v2.load_slot` has the sums that were processed in a slot, without validators."""
    slots = pl.DataFrame(
        {
            "slot": [352, 353, 384, 416],
            "processed_deposits_wei": [Decimal(n * ETH) for n in (0, 8, 7, 9)],
            "processed_consolidations_wei": [Decimal(n * ETH) for n in (9, 0, 0, 9)],
        },
        schema_overrides=dict.fromkeys(
            ["processed_deposits_wei", "processed_consolidations_wei"], pl.Decimal(28, 0)
        ),
    )
    held = balances((2, 11, 50), (2, 12, 58), (3, 11, 50), (3, 12, 41))

    rows = analysis.reconcile(held, EARNED, queue_events=slots)

    assert [
        "consolidations processed in slot 352; deposits processed in slot 353",
        "consolidations processed in slot 352",
    ] == rows["possible_cause"].to_list()


def test_withdrawals_of_v2_are_in_wei():
    """M5: `v2.load_slot_withdrawals` has wei and the slot; rejected requests move nothing.

    E16: nor do system withdrawals, which become a deposit.
    """
    withdrawals = pl.DataFrame(
        {
            "slot": [352, 352, 384, 384],
            "validator_index": [2, 2, 3, 3],
            "amount_wei": [Decimal(eth * ETH) for eth in (7, 8, 9, 6)],
            "reject_reason": [None, "no balance", None, None],
            "type": ["partial_sweep", "manual", "full_exit_sweep", "system"],
        },
        schema_overrides={"amount_wei": pl.Decimal(28, 0)},
    )
    held = balances((2, 10, 50), (2, 11, 43), (3, 11, 50), (3, 12, 41))

    rows = analysis.reconcile(held, EARNED, withdrawals=withdrawals, attestations_settle=0)

    assert [(7, 0), (9, 0)] == rows.select("withdrawals_gwei", "unexplained_gwei").rows()
    half = withdrawals.with_columns(amount_wei=pl.lit(Decimal(ETH // 2)))
    with pytest.raises(UsageError, match=r"amount_wei .* fractions of a gwei"):
        analysis.reconcile(held, EARNED, withdrawals=half)


def test_withdrawals_of_a_loader_need_their_slot():
    """The epoch of a withdrawal in its first slot is not the one whose change has it."""
    withdrawals = WITHDRAWALS.with_columns(withdrawal_index=1)

    with pytest.raises(UsageError, match=r"no column slot.*bf\.load_validator_withdrawals"):
        analysis.reconcile(HELD, EARNED, withdrawals=withdrawals)


def test_a_row_with_an_unknown_amount_explains_nothing():
    """A part of an income is not the income."""
    earned = EARNED.with_columns(
        slashing_reward_gwei=pl.when(pl.col("epoch") != 10).then("slashing_reward_gwei")
    )

    rows = analysis.reconcile(HELD, earned, since=10, until=10, attestations_settle=0)

    assert [(1, 0, 70), (3, 0, -64 * ETH)] == rows.select(
        "validator_index", "income_gwei", "unexplained_gwei"
    ).rows()


def explained(dataset, every):
    mine = pl.col("validator_index") % every == every - 1
    return analysis.reconcile(
        dataset.scan("balance_history").filter(mine),
        dataset.scan("income_history").filter(mine),
        deposits=dataset.scan("slot_deposits"),
        withdrawals=dataset.scan("validator_withdrawals"),
        validators=dataset.scan("validators"),
        blocks=dataset.scan("blocks"),
    ).collect()


def assert_explained(dataset, min_rows, every=1):
    rows = explained(dataset, every)
    epochs = dataset.meta["finalized_epoch"]  # the income of the last one is not all known
    covered = (rows["until_epoch"] - rows["epoch"] + 1).sum()
    assert covered > 0.95 * (dataset.meta["validators"] // every) * epochs
    assert rows["until_epoch"].max() == epochs - 1
    assert rows.height > min_rows * covered
    assert [0] == rows["attestations_settle"].unique().to_list()
    assert rows["deposits_gwei"].sum() > 0
    assert rows["withdrawals_gwei"].sum() > 0
    assert 0 == rows["unexplained_gwei"].abs().sum()


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.more)])
def test_nothing_is_unexplained_on_the_simulated_chain(chain, every):
    """470 epochs with deposits, exits, slashings and withdrawals: 0 gwei are unexplained."""
    assert_explained(chain, min_rows=0.4, every=every)


@pytest.mark.more
@pytest.mark.parametrize("seed", [11, 12])
def test_nothing_is_unexplained_with_other_seeds(tmp_path, seed):
    """The same for chains of other seeds."""
    assert_explained(
        simulate(tmp_path / "data", validators=80, epochs=30, seed=seed), min_rows=0.03
    )


def test_wrong_frames_are_explained():
    """Deposits by public key need validators; the delay is a number of epochs."""
    with pytest.raises(UsageError, match="public keys but no validator indices"):
        analysis.reconcile(HELD, EARNED, deposits=DEPOSITS)
    with pytest.raises(UsageError, match=r"attestations_settle=0\.5"):
        analysis.reconcile(HELD, EARNED, attestations_settle=0.5)
    with pytest.raises(UsageError, match="consolidations are validator_index, epoch, amount_gwei"):
        analysis.reconcile(HELD, EARNED, consolidations=WITHDRAWALS)
    with pytest.raises(UsageError, match="no column balance_gwei"):
        analysis.reconcile(EARNED, EARNED)
