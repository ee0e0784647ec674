"""The yield index (ETH.STORE) of days that are worked out by hand, and of recorded chains."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest

from beaconframes.derive import derive_tables, find_obstacles
from beaconframes.derive.yield_index import Day, build_yield_index, sum_days
from beaconframes.v1.yield_index import YieldIndex

from ..support import node_chains
from ..support.chain_tables import (
    CHAIN,
    ETH,
    GENESIS,
    assert_served,
    build_amounts,
    build_balances,
    build_income,
    build_tables,
    build_validators,
)

WEI = 10**9
WHOLE, EXITS_AT_THE_END, EXITS_EARLY, LATE = range(4)


@pytest.fixture
def frames():
    """Day 1 has epochs 4 to 7 and slots 32 to 63; the block of slot 64 is in its end balance."""
    return {
        "validators": build_validators(
            {},
            {"exit_epoch": 8},
            {"exit_epoch": 7},
            {"activation_epoch": 5, "activation_eligibility_epoch": 3},
        ),
        "balance_history": build_balances(
            {
                4: [32 * ETH + 100, 32 * ETH, 32 * ETH, 32 * ETH],
                8: [33 * ETH + 400, 32 * ETH - 500, 32 * ETH + 777, 32 * ETH + 777],
            }
        ),
        "deposit_events": build_amounts(
            (40, WHOLE, ETH),
            (40, LATE, 5 * ETH),
            (32, WHOLE, 7 * ETH),
            (65, WHOLE, 7 * ETH),
        ),
        "withdrawal_events": build_amounts(
            (32, EXITS_AT_THE_END, 999),
            (64, EXITS_AT_THE_END, 700),
            (65, EXITS_AT_THE_END, 999),
            (50, EXITS_EARLY, 32 * ETH),
        ),
        "income_history": build_income(
            (WHOLE, 4, 0, 2 * 10**12),
            (WHOLE, 7, 0, 10**12),
            (WHOLE, 3, 0, 10**18),
            (WHOLE, 8, 0, 10**18),
            (EXITS_EARLY, 5, 0, 10**18),
        ),
    }


def derive_index(tables, **selection):
    """Return the rows of the yield index."""
    rows = dict(derive_tables(tables, names=["yield_index"], **selection))
    return rows[YieldIndex]


def test_a_day_worked_out_by_hand(frames):
    """Step 11: two validators are active throughout; the first block of a day counts before it.

    WHOLE earned 33 ETH + 400 - (32 ETH + 100) - 1 ETH = 300 gwei, and EXITS_AT_THE_END
    -500 + 700 = 200 gwei. The fees are 3000 gwei, so the rewards are 3500 gwei of 64 ETH.
    """
    rows = derive_index(build_tables(frames, epochs=((4, 8),), last=8))

    assert YieldIndex.schema() == rows.schema
    (row,) = rows.to_dicts()
    assert 1 == row["day"]
    assert (GENESIS + timedelta(days=1), GENESIS + timedelta(days=2)) == (
        row["time"], row["day_end"],
    )  # fmt: skip
    assert 500 * WEI == row["consensus_rewards_sum_wei"]
    assert 3000 * WEI == row["tx_fees_sum_wei"]
    assert 3500 * WEI == row["total_rewards_wei"]
    assert 1 * ETH * WEI == row["deposits_sum_wei"]
    assert (64 * ETH + 100) * WEI == row["start_balances_sum_wei"]
    assert (65 * ETH - 100) * WEI == row["end_balances_sum_wei"]
    assert 64 * ETH * WEI == row["effective_balances_sum_wei"]
    assert 365 * 3500 / (64 * 10**9) == row["apr"]
    assert 365 * 500 / (64 * 10**9) == row["cl_apr"]
    assert pytest.approx(365 * 3000 / (64 * 10**9), abs=1e-16) == row["el_apr"]
    # Day 0 is not covered, so no mean is known.
    assert {None} == {value for name, value in row.items() if "_avg_" in name}
    assert_served(YieldIndex, rows)


def test_rates_are_of_the_stake_at_the_start_of_the_day(frames):
    """Effective balances at its end do not count."""
    plain = derive_index(build_tables(frames, epochs=((4, 8),), last=8))
    stake = pl.col("effective_balance_gwei")
    grown = pl.when(pl.col("epoch") == 8).then(stake + ETH).otherwise(stake)
    frames["balance_history"] = frames["balance_history"].with_columns(grown)

    assert plain.equals(derive_index(build_tables(frames, epochs=((4, 8),), last=8)))


def test_means_of_wei_are_rounded():
    """Databases round halves away from zero: 4/3 is 1, and 3/2 is 2."""
    zeros = dict.fromkeys(("start", "end", "deposits", "withdrawals"), 0)
    days = [Day(number, effective=ETH, fees=fees, **zeros) for number, fees in enumerate((1, 2, 1))]

    losses = [replace(day, end=-3) for day in days]

    assert [1, 2, 1] == build_yield_index(days, CHAIN)["tx_fees_avg_7d_wei"].to_list()
    lost = build_yield_index(losses, CHAIN)["consensus_rewards_avg_7d_wei"]
    assert [-3 * WEI] * 3 == lost.to_list()


def test_consolidations_move_ether_without_reward(frames):
    """Step 11: ether that arrives counts as a deposit, ether that leaves as a withdrawal."""
    plain = derive_index(build_tables(frames, epochs=((4, 8),), last=8))
    balances = frames["balance_history"]
    moved = pl.when((pl.col("epoch") == 8) & (pl.col("validator_index") == WHOLE)).then(5 * ETH)
    moved = moved.when((pl.col("epoch") == 8) & (pl.col("validator_index") == 1)).then(-5 * ETH)
    frames["balance_history"] = balances.with_columns(pl.col("balance_gwei") + moved.otherwise(0))
    frames["transfer_events"] = build_amounts((63, WHOLE, 5 * ETH), (63, 1, -5 * ETH))

    rows = derive_index(build_tables(frames, epochs=((4, 8),), last=8))

    changed = {name for name in rows.columns if not rows[name].equals(plain[name])}
    assert {"deposits_sum_wei"} == changed
    assert [6 * ETH * WEI] == rows["deposits_sum_wei"].to_list()


def test_deposits_and_withdrawals_in_blocks(frames):
    """Step 11: before Electra, the tables of the loaders have all that moves balances."""
    expected = derive_index(build_tables(frames, epochs=((4, 8),), last=8))
    keys = pl.DataFrame({"pubkey": ["0xa", "0xb", "0xc", "0xd"]})
    frames["validators"] = frames["validators"].drop("pubkey").hstack(keys)
    deposits = frames.pop("deposit_events").join(
        frames["validators"].select("validator_index", "pubkey"), "validator_index"
    )
    frames["slot_deposits"] = deposits.rename({"slot": "block_slot"})
    events = frames.pop("withdrawal_events")
    frames["slot_withdrawals"] = events.rename({"slot": "block_slot"})
    tables = build_tables(frames, epochs=((4, 8),), last=8)

    assert expected.equals(derive_index(tables))
    assert {} == {k: v for k, v in find_obstacles(tables).items() if k == "yield_index"}

    # Since Electra the chain processes a deposit after its block, so that its slot is unknown.
    frames["deposit_requests"] = pl.DataFrame({"block_slot": [40]})
    tables = build_tables(frames, epochs=((4, 8),), last=8)
    assert (
        "the chain has deposit requests, but no table deposit_events"
        == find_obstacles(tables)["yield_index"]
    )
    assert [] == list(derive_tables(tables, names=["yield_index"]))


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": ((4, 7),)},
        {"epochs": ((5, 8),)},
        {"epochs": ((4, 5), (7, 8))},
        {"last": 7},
        {"balance_history": ((5, 8),)},
        {"income_history": ((4, 6),)},
        {"deposit_events": ((4, 7),)},
        {"withdrawal_events": ((5, 8),)},
    ],
)
def test_a_day_that_is_not_all_there_has_no_row(frames, change):
    """Step 11: each input must cover the day, and its end must be final."""
    arguments = {"epochs": ((4, 8),), "last": 8} | change

    assert YieldIndex.empty().equals(derive_index(build_tables(frames, **arguments)))


def test_balances_at_the_ends_of_the_day_suffice(frames):
    """Step 11: two states a day, as ETH.STORE reads them."""
    tables = build_tables(frames, epochs=((4, 8),), last=8, balance_history=((4, 4), (8, 8)))

    assert [1] == derive_index(tables)["day"].to_list()


def test_a_day_of_the_minimal_preset():
    """Step 11: slots of two seconds, 8 an epoch, so a day has 5400 epochs and 43,200 slots."""
    minimal = replace(CHAIN, name="minimal", seconds_per_slot=2)
    frames = {
        "validators": build_validators({}),
        "balance_history": build_balances({5400: [32 * ETH], 10_800: [32 * ETH + 7]}),
        "deposit_events": build_amounts((43_200, 0, ETH), (86_401, 0, ETH)),
        "withdrawal_events": build_amounts((43_201, 0, 10), (86_400, 0, 20)),
        "income_history": build_income((0, 5400, 0, 5), (0, 10_799, 0, 6), (0, 10_800, 0, 7)),
    }

    rows = derive_index(build_tables(frames, last=10_801, chain=minimal))

    assert [1] == rows["day"].to_list()
    assert [GENESIS + timedelta(days=1)] == rows["time"].to_list()
    assert [37 * WEI] == rows["consensus_rewards_sum_wei"].to_list()
    assert [11] == rows["tx_fees_sum_wei"].to_list()


def test_an_unknown_fee_or_balance_is_no_zero(frames):
    """Step 11: without an execution node fees are null; a balance may be missing by mistake."""
    fee = pl.col("tx_fee_reward_wei")
    unknown = frames["income_history"].with_columns(pl.when(fee != 10**12).then(fee))
    lost = frames["balance_history"].filter(
        (pl.col("epoch") != 8) | (pl.col("validator_index") != WHOLE)
    )
    for change in ({"income_history": unknown}, {"balance_history": lost}):
        tables = build_tables(frames | change, epochs=((4, 8),), last=8)
        assert [] == derive_index(tables)["day"].to_list()


def test_some_validators_have_no_index(frames):
    """Step 11: the index is that of the whole chain."""
    tables = build_tables(frames, epochs=((4, 8),), last=8, validators=frozenset({0, 1}))

    assert "it needs all validators, and 2 are covered" == find_obstacles(tables)["yield_index"]
    assert [] == sum_days(tables)


def test_means_need_all_of_their_days():
    """Step 11: fewer days near genesis, as in the service; none beside a missing day."""
    days = [
        Day(number, start=0, end=number, effective=365, deposits=0, withdrawals=0, fees=0)
        for number in (0, 1, 2, 4, *range(10, 17))
    ]

    rows = build_yield_index(days, CHAIN)

    means = dict(rows.select("day", "cl_apr_avg_7d").iter_rows())
    assert {0: 0, 1: 0.5, 2: 1, 4: None, 16: 13} == {day: means[day] for day in (0, 1, 2, 4, 16)}
    assert [None] * 6 == [means[day] for day in range(10, 16)]
    assert rows["cl_apr_avg_31d"].null_count() == 8


def test_new_days_have_the_means_of_all_days(frames):
    """Step 11: a growing dataset adds days, whose means need the days before."""
    frames["balance_history"] = build_balances(
        {epoch: [32 * ETH + epoch**2] for epoch in (0, 4, 8, 12)}
    )
    frames["validators"] = build_validators({})
    frames["deposit_events"] = frames["withdrawal_events"] = build_amounts()
    tables = build_tables(frames, last=12)

    whole, added = derive_index(tables), derive_index(tables, days=range(2, 3))

    assert [0, 1, 2] == whole["day"].to_list()
    assert whole[2:].equals(added)
    assert 0 == added["apr_avg_31d"].null_count()


@pytest.mark.parametrize("name", ["altair", "capella", "electra"])
def test_a_recorded_chain_pays_what_the_specification_computes(name):
    """Step 11: consensus rewards of each day are the sums of the rewards in its blocks and epochs.

    The days have 8 epochs. The executable specification computed the rewards of the expected side;
    slashed, exited and consolidated validators are among them.
    """
    recorded = node_chains.read_chain(name)
    if name == "altair":
        recorded["slot_income"] = node_chains.compute_slot_income(recorded)
    balances = node_chains.build_balances(recorded).with_columns(effective_balance_gwei=32 * ETH)
    latest = balances["epoch"].max()
    starts = dict(balances.group_by("validator_index").agg(pl.col("epoch").min()).iter_rows())
    # As if all were active from their first balance on: then the sums have all rewards.
    active = [
        {"activation_epoch": epoch, "activation_eligibility_epoch": epoch}
        for _, epoch in sorted(starts.items())
    ]
    # An amount that moves at the end of an epoch has the last slot of it.
    moves = [
        (part, epoch * 8 + 7, index, gwei)
        for epoch, part, index, gwei in recorded.get("epoch_end_moves", ())
    ]
    left = [
        (slot, index, -gwei)
        for slot, part, index, gwei in recorded["slot_income"]
        if part == "withdrawals"
    ]
    queued = [
        (slot, index, gwei)
        for slot, part, index, gwei in recorded["slot_income"]
        if part == "switch_to_compounding"
    ] + [tuple(row) for row in recorded.get("fork_upgrade_moves", ())]
    frames = {
        "validators": build_validators(*active),
        "balance_history": balances,
        "deposit_events": build_amounts(
            *(row[1:] for row in moves if row[0] == "pending_deposits")
        ),
        "withdrawal_events": build_amounts(*left),
        "transfer_events": build_amounts(
            *(row[1:] for row in moves if row[0] == "pending_consolidations"), *queued
        ),
        "income_history": build_income((0, 0, 0, 0)),
    }
    chain = replace(CHAIN, seconds_per_slot=1350)

    found = sum_days(build_tables(frames, last=latest, chain=chain))

    assert [*range(latest // 8)] == [day.number for day in found]
    for day in found:
        start, end = day.number * 8, day.number * 8 + 8
        members = {index for index, epoch in starts.items() if epoch <= start}
        assert day.consensus == sum_rewards(recorded, members, start, end)


def sum_rewards(recorded, members, start, end):
    """Return what the specification adds to the balances of *members* between two epochs.

    Attestations of epoch e move balances at the end of epoch e + 1, correlation penalties at the
    end of their own.
    """
    attestations = (
        recorded.get("attestation_rewards_gwei") or (recorded["attestation_rewards_of_duty_epoch"])
    )
    total = sum(
        gwei
        for epoch in range(max(start - 1, 0), end - 1)
        for part in ("source", "target", "head", "inactivity")
        for index, gwei in enumerate(attestations[str(epoch)][part])
        if index in members
    )
    penalties = [
        (int(epoch), int(index), gwei)
        for epoch, row in recorded.get("correlation_penalties_at_end_of_epoch", {}).items()
        for index, gwei in row.items()
    ] + [
        (epoch, index, gwei)
        for epoch, part, index, gwei in recorded.get("epoch_end_moves", ())
        if part == "slashing_correlation"
    ]
    total += sum(g for epoch, index, g in penalties if start <= epoch < end and index in members)
    paid_out = ("withdrawals", "switch_to_compounding")
    return total + sum(
        gwei
        for slot, part, index, gwei in recorded["slot_income"]
        if start * 8 < slot <= end * 8 and part not in paid_out and index in members
    )
