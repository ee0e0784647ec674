"""Daily statistics of days with four epochs, worked out by hand."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from beaconframes.derive import derive_tables
from beaconframes.v1.validator_stats import ValidatorStats

from ..support.chain_tables import (
    ETH,
    GENESIS,
    assert_served,
    build_amounts,
    build_balances,
    build_blocks,
    build_tables,
    build_validators,
)

SEATS = 32
MEMBER, OTHER, NEW = 0, 1, 2
ALL_SIGNED, NONE_SIGNED, FIRST_TWO = "0xffffffff", "0x00000000", "0x03000000"


@pytest.fixture
def frames():
    """Day 0 has epochs 0 to 3 and slots 0 to 31. NEW has its first balance in epoch 2.

    Seats 0 and 1 of sync period 0 (epochs 0 and 1) are those of MEMBER, all others of OTHER.
    """
    balances = {
        0: [32 * ETH, 32 * ETH, None],
        1: [32 * ETH + 5, 32 * ETH - 5, None],
        2: [32 * ETH + 9, 32 * ETH - 9, 32 * ETH],
        3: [32 * ETH + 2, 32 * ETH - 2, 32 * ETH],
        4: [32 * ETH + 1, 33 * ETH - 7, 32 * ETH],
        5: [32 * ETH + 1, 33 * ETH - 7, 32 * ETH],
    }
    seats = range(SEATS)
    committees = [
        pl.DataFrame(
            {
                "period": [period] * SEATS,
                "seat": seats,
                "validator_index": [members[0] if seat < 2 else members[1] for seat in seats],
            }
        )
        for period, members in enumerate([(MEMBER, OTHER), (OTHER, OTHER), (OTHER, OTHER)])
    ]
    duties = pl.DataFrame(
        [
            (0, 0, "included"),
            (0, 1, "missed"),
            (0, 3, "missed"),
            (1, 3, "pending"),
            (0, 4, "missed"),
        ],
        ["validator_index", "epoch", "status"],
        orient="row",
    )
    keys = pl.Series("pubkey", ["0xa", "0xb", "0xc"])
    return {
        "validators": build_validators(
            {}, {}, {"activation_eligibility_epoch": 3, "activation_epoch": 9}
        ).with_columns(keys),
        "balance_history": build_balances(balances),
        "attestations": duties,
        "blocks": build_blocks(
            {"slot": 1, "proposer_index": OTHER, "sync_aggregate_bits": FIRST_TWO,
             "attester_slashings_count": 2},
            {"slot": 2, "proposer_index": OTHER, "sync_aggregate_bits": ALL_SIGNED},
            {"slot": 9, "proposer_index": OTHER, "sync_aggregate_bits": NONE_SIGNED,
             "status": "orphaned", "proposer_slashings_count": 1},
            {"slot": 20, "proposer_index": MEMBER, "sync_aggregate_bits": NONE_SIGNED},
            # The second block of a double proposal: its slot has a canonical block.
            {"slot": 20, "proposer_index": MEMBER, "sync_aggregate_bits": NONE_SIGNED,
             "status": "orphaned"},
            {"slot": 33, "proposer_index": MEMBER, "sync_aggregate_bits": ALL_SIGNED},
        ),
        "sync_committees": pl.concat(committees),
        "slot_deposits": pl.DataFrame(
            # The first deposit for 0xc had an invalid signature: it created no validator.
            {"block_slot": [3, 12, 30], "pubkey": ["0xc", "0xc", "0xb"],
             "amount_gwei": [ETH, 32 * ETH, ETH]}
        ),
        # The first block of a day is in the balance before it: slot 0 is that of genesis.
        "validator_withdrawals": build_amounts(
            (0, OTHER, 4), (31, OTHER, 6), (32, OTHER, 99), (33, OTHER, 1000)
        ),
    }  # fmt: skip


def derive_stats(tables, **selection):
    """Return the daily statistics."""
    frames = [rows for _, rows in derive_tables(tables, names=["validator_stats"], **selection)]
    return pl.concat(frames)


def select_day(rows, day, *columns):
    """Return some columns of a day, by validator."""
    return rows.filter(day=day).sort("validator_index").select(columns).rows()


def test_deposits_count_from_the_block_after_the_last_balance_without_the_validator(frames):
    """NEW is not in the balance of epoch 1, which is that after slot 8: 9 is the first slot."""
    deposits = {"block_slot": [8, 9, 16], "pubkey": ["0xc"] * 3, "amount_gwei": [1, 2, 4]}
    rows = derive_stats(build_tables(frames | {"slot_deposits": pl.DataFrame(deposits)}, last=5))

    found = select_day(rows, 0, "deposits_count", "deposits_amount_gwei")
    assert [(0, 0), (0, 0), (2, 6)] == found


def test_a_day_worked_out_by_hand(frames):
    """Step 11: balances, duties and payments of the epochs and slots of day 0."""
    rows = derive_stats(build_tables(frames, last=5))

    assert ValidatorStats.schema() == rows.schema
    assert [(-1, 0), (0, 0), (-1, 1), (0, 1), (0, 2)] == sorted(
        rows.select("day", "validator_index").rows(), key=lambda row: row[::-1]
    )
    balances = [f"{kind}_balance_gwei" for kind in ("start", "min", "max", "end")]
    assert [
        (32 * ETH, 32 * ETH, 32 * ETH + 9, 32 * ETH + 1),
        (32 * ETH, 32 * ETH - 9, 32 * ETH, 33 * ETH - 7),
        (0, 32 * ETH, 32 * ETH, 32 * ETH),  # it did not exist when the day started
    ] == select_day(rows, 0, *balances)
    assert [(2,), (0,), (0,)] == select_day(rows, 0, "missed_attestations")
    # Slots without a block are of validator 0: 32 slots, less the four with a block.
    kinds = ("proposed_blocks", "missed_blocks", "orphaned_blocks")
    assert [(1, 28, 1), (2, 0, 1), (0, 0, 0)] == select_day(rows, 0, *kinds)
    slashings = ("attester_slashings", "proposer_slashings")
    assert [(0, 0), (2, 0), (0, 0)] == select_day(rows, 0, *slashings)
    deposits = ("deposits_count", "deposits_amount_gwei")
    assert [(0, 0), (1, ETH), (1, 32 * ETH)] == select_day(rows, 0, *deposits)
    withdrawals = ("withdrawals_count", "withdrawals_amount_gwei")
    assert [(0, 0), (2, 105), (0, 0)] == select_day(rows, 0, *withdrawals)
    # MEMBER: two seats in slots 1 and 2, all signed. OTHER: 30 seats missed slot 1 and signed
    # slot 2, 32 seats missed slot 20. The orphaned block of slot 9 is in epoch 1.
    duties = ("participated_sync", "missed_sync", "orphaned_sync")
    assert [(4, 0, 2), (30, 30 + 32, 30), (0, 0, 0)] == [
        tuple(row) for row in select_day(rows, 0, *duties)
    ]
    assert {(GENESIS, GENESIS + timedelta(days=1), 0)} == set(
        select_day(rows, 0, "time", "day_end", "orphaned_attestations")
    )


@pytest.mark.parametrize(("eligible", "expected"), [(1, [0, 1]), (2, [0, 1, 2])])
def test_a_new_validator_was_not_eligible_before_its_first_balance(frames, eligible, expected):
    """A deposit in epoch 1 makes it eligible in epoch 2 at the earliest, which has its balance.

    One that was eligible before existed already: its earlier balances are missing.
    """
    is_new = pl.col("validator_index") == NEW
    changed = pl.when(is_new).then(eligible).otherwise("activation_eligibility_epoch")
    frames["validators"] = frames["validators"].with_columns(activation_eligibility_epoch=changed)

    rows = derive_stats(build_tables(frames, last=5)).filter(day=0)

    assert expected == rows["validator_index"].to_list()


def test_the_day_of_genesis(frames):
    """Step 11: balances of genesis are sums of deposits; how many deposits is unknown."""
    rows = derive_stats(build_tables(frames, last=5)).filter(day=-1)

    assert [32 * ETH] * 2 == rows["deposits_amount_gwei"].to_list()
    assert [32 * ETH] * 2 == rows["end_balance_gwei"].to_list()
    unknown = ["deposits_count", "start_balance_gwei", "proposed_blocks", "missed_sync"]
    assert {None} == {value for row in rows.select(unknown).rows() for value in row}


@pytest.mark.parametrize(
    ("epochs", "last", "days"),
    [
        (((0, 4),), 5, [-1, 0]),
        (((0, 3),), 5, [-1]),
        (((1, 5),), 5, []),
        (((0, 1), (3, 5)), 5, [-1]),
        (((0, 1), (2, 4)), 5, [-1, 0]),
        (((0, 4),), 3, [-1]),
    ],
)
def test_only_complete_and_final_days_have_rows(frames, epochs, last, days):
    """Step 11: a day needs all of its balances, and the balance after it, from final epochs."""
    rows = derive_stats(build_tables(frames, epochs=epochs, last=last))

    assert days == sorted(rows["day"].unique())
    assert ValidatorStats.schema() == rows.schema


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("attestations", ["missed_attestations"]),
        ("slot_deposits", ["deposits_count", "deposits_amount_gwei"]),
        ("validator_withdrawals", ["withdrawals_count", "withdrawals_amount_gwei"]),
        ("sync_committees", ["participated_sync", "missed_sync", "orphaned_sync"]),
        (
            "blocks",
            ["proposed_blocks", "missed_blocks", "orphaned_blocks", "attester_slashings",
             "proposer_slashings", "participated_sync", "missed_sync", "orphaned_sync"],
        ),
    ],
)  # fmt: skip
def test_columns_without_a_source_are_null(frames, table, columns):
    """Step 11: a table that is missing, or does not cover the day, leaves its columns unknown."""
    whole = derive_stats(build_tables(frames, last=5)).filter(day=0)
    partial = {**frames, "sync_committees": frames["sync_committees"].filter(pl.col("period") > 0)}
    if table == "sync_committees":
        tables = build_tables(partial, last=5)
    else:
        tables = build_tables(frames, last=5, **{table: ((0, 2), (4, 5))})
    lost = {name: rows for name, rows in frames.items() if name != table}

    for found in (derive_stats(tables), derive_stats(build_tables(lost, last=5))):
        rows = found.filter(day=0)
        assert whole.drop(columns).equals(rows.drop(columns))
        assert {rows.height} == {rows[name].null_count() for name in columns}
        assert_served(ValidatorStats, found)


@pytest.mark.parametrize(
    ("table", "column"),
    [("slot_deposits", "deposits_count"), ("validator_withdrawals", "withdrawals_count")],
)
def test_payments_in_the_first_block_of_the_next_day_must_be_covered(frames, table, column):
    """The balance at the end of the day has that block, which is in epoch 4."""
    for last, expected in ((3, {True}), (4, {False})):
        rows = derive_stats(build_tables(frames, last=5, **{table: ((0, last),)})).filter(day=0)
        assert expected == set(rows[column].is_null())


def test_a_validator_with_a_gap_has_no_row(frames):
    """Step 11: its balances start later than it was eligible, or an epoch of it is missing."""
    balances = frames["balance_history"]
    index, epoch = pl.col("validator_index"), pl.col("epoch")
    for lost in ((index == OTHER) & (epoch < 2), (index == OTHER) & (epoch == 2)):
        tables = build_tables(frames | {"balance_history": balances.filter(~lost)}, last=5)
        assert [(MEMBER,), (NEW,)] == select_day(derive_stats(tables), 0, "validator_index")


def test_each_day_is_a_frame_of_its_own(frames):
    """Step 11: memory holds one day, and new days are derived alone."""
    more = build_balances({epoch: [32 * ETH] * 3 for epoch in range(6, 13)})
    frames["balance_history"] = pl.concat([frames["balance_history"], more])
    tables = build_tables(frames, last=12)

    parts = [rows for _, rows in derive_tables(tables, names=["validator_stats"])]

    assert [[-1], [0], [1], [2]] == [rows["day"].unique().to_list() for rows in parts]
    assert parts[2].equals(derive_stats(tables, days=range(1, 2)))
    assert pl.concat(parts[1:2]).equals(derive_stats(tables, days=range(1)))
