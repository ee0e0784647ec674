"""Efficiency of attestations, luck of proposers, and the tables of validators."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.derive import Coverage, derive_tables, find_obstacles
from beaconframes.derive.attestation_efficiency import compute_efficiency
from beaconframes.derive.execution_blocks import scan_payloads
from beaconframes.derive.validator_tables import find_statuses
from beaconframes.v1.attestation_efficiency import AttestationEfficiency
from beaconframes.v1.proposal_luck import ProposalLuck
from beaconframes.v1.validator_withdrawals import ValidatorWithdrawals
from beaconframes.v1.withdrawal_credentials import WithdrawalCredentials

from ..support.chain_tables import (
    CHAIN,
    build_amounts,
    build_blocks,
    build_tables,
    build_validators,
)

LAST = 104
"""The latest epoch; efficiency rates epochs 4 to 103."""


@pytest.fixture
def duties():
    """Validator 0 has delays of 1, 4 and a miss; epochs 3 and 104 are not rated."""
    rows = [
        (0, 3, 24, None, "missed"),
        (0, 4, 32, 33, "included"),
        (0, 50, 400, 404, "included"),
        (0, 103, 830, None, "missed"),
        (0, 104, 832, None, "missed"),
        (7, 103, 824, 825, "included"),
        (8, 103, 824, None, "pending"),
    ]
    names = ["validator_index", "epoch", "attester_slot", "inclusion_slot", "status"]
    return pl.DataFrame(rows, names, orient="row")


def derive(name, frames, **arguments):
    """Return the rows of one table."""
    ((_, rows),) = derive_tables(build_tables(frames, **arguments), names=[name])
    return rows


def test_efficiency(duties):
    """Step 11: 2 less the mean of 1, 1/4 and 0; a duty that can still be included is no miss."""
    frames = {"validators": build_validators({}), "attestations": duties}

    rows = derive("attestation_efficiency", frames, last=LAST)

    assert AttestationEfficiency.schema() == rows.schema
    assert [(0, float(2 - Fraction(5, 4) / 3)), (7, 1.0)] == rows.rows()


@pytest.mark.parametrize("epochs", [((5, LAST),), ((0, 102),), ((0, 50), (52, LAST))])
def test_efficiency_needs_all_rated_epochs(duties, epochs):
    """Step 11: the mean of fewer epochs is not that of the last hundred."""
    frames = {"validators": build_validators({}), "attestations": duties}

    assert AttestationEfficiency.empty().equals(
        derive("attestation_efficiency", frames, last=LAST, epochs=epochs)
    )


def test_efficiency_in_parts(duties):
    """Step 11: the duties of a large chain are read some epochs at a time."""
    rated = duties.filter(pl.col("epoch").is_between(4, 103)).sort("epoch")

    assert compute_efficiency([rated]).equals(compute_efficiency(rated.iter_slices(1)))
    assert 0 == compute_efficiency([]).height


@pytest.mark.parametrize(
    ("epochs", "lucky"), [(((0, 7),), 5), (((4, 7),), 1), (((5, 7),), 0), (((0, 6),), 0)]
)
def test_luck_needs_the_blocks_since_activation(epochs, lucky):
    """Step 11: three validators with a third of the slots each; 2 is active from epoch 4 on.

    Validator 3 has exited in the latest epoch.
    """
    frames = {
        "validators": build_validators(
            {}, {}, {"activation_epoch": 4}, {"exit_epoch": 7}
        ).with_columns(effective_balance_gwei=32),
        "blocks": build_blocks({"slot": 40, "proposer_index": 2}, epochs=range(8)),
    }

    rows = derive("proposal_luck", frames, last=7, epochs=epochs)

    assert ProposalLuck.schema() == rows.schema
    assert lucky == rows.height
    if lucky:
        row = rows.filter(validators="2").row(0, named=True)
        # One block in the two days of 32 slots that there are: five days would have more.
        assert ("5 days", pytest.approx(1 / (2 * 32 / 3))) == (
            row["time_frame"], row["proposal_luck"]
        )  # fmt: skip
        assert CHAIN.time_of("slot", 43) == row["next_proposal_estimate_time"]


def test_luck_is_that_of_the_last_month():
    """A month has 960 slots: with slot 1047 as the head, it begins with slot 88."""
    frames = {
        "validators": build_validators({}).with_columns(effective_balance_gwei=32),
        "blocks": build_blocks({"slot": 87}, {"slot": 88}, {"slot": 1047}, epochs=range(131)),
    }

    row = derive("proposal_luck", frames, last=130).row(0, named=True)

    assert ("month", pytest.approx(2 / 960)) == (row["time_frame"], row["proposal_luck"])


def test_tables_of_validators():
    """Step 11: withdrawals with the root of their block, and credentials."""
    withdrawals = build_amounts((40, 1, 5), (3, 0, 6)).rename({"slot": "block_slot"})
    frames = {
        "validators": build_validators({}, {}),
        "blocks": build_blocks({"slot": 40}, {"slot": 3}),
        "slot_withdrawals": withdrawals.with_columns(
            withdrawal_index=pl.Series([8, 7]),
            address=pl.lit("0xaa"),
            time=CHAIN.time_expr("slot", pl.col("block_slot")),
        ),
    }

    paid = derive("validator_withdrawals", frames)
    credentials = derive("withdrawal_credentials", frames, validators=frozenset({1}))

    assert ValidatorWithdrawals.schema() == paid.schema
    assert [(7, 0, 0, 3, "0x3"), (8, 1, 5, 40, "0x40")] == paid.select(
        "withdrawal_index", "validator_index", "epoch", "slot", "block_root"
    ).rows()
    assert WithdrawalCredentials.schema() == credentials.schema
    assert [("0x01", 1, "0x00")] == credentials.rows()
    assert [7] == [
        index
        for _, rows in derive_tables(
            build_tables(frames), names=["validator_withdrawals"], epochs=range(1)
        )
        for index in rows["withdrawal_index"]
    ]


def test_a_validator_is_online_for_two_epochs_after_its_last_attestation():
    """It attested at most 64 slots before the newest attestation of all."""
    never, none = np.full(3, FAR_FUTURE_EPOCH), np.zeros(3, np.int64)
    attested = np.array([1000, 936, 935])

    assert ["active_online", "active_online", "active_offline"] == find_statuses(
        40, slashed=none > 0, eligibility=none, activation=none, exit_epoch=never, attested=attested
    )


def test_each_status_begins_with_its_epoch():
    """In epoch 40; the first condition that holds, in the order of the service."""
    far = FAR_FUTURE_EPOCH
    cases = {
        "deposited": (False, far, far, far),
        "pending": (False, 30, 41, far),
        "active": (False, 30, 40, far),
        "exiting": (False, 0, 0, 41),
        "exited": (False, 0, 0, 40),
        "slashing": (True, 0, 0, 41),
        "slashed": (True, 0, 0, 40),
    }
    names = ("slashed", "eligibility", "activation", "exit_epoch")
    values = map(np.array, zip(*cases.values(), strict=True))

    assert [*cases] == find_statuses(40, **dict(zip(names, values, strict=True)))


def test_execution_blocks_are_final_with_their_epoch():
    """Payloads of canonical blocks; epoch 5 is final."""
    texts = ["block_hash", "parent_hash", "fee_recipient"]
    numbers = ["gas_limit", "gas_used", "base_fee_per_gas_wei", "transactions_count"]
    blocks = pl.DataFrame(
        {
            "slot": [47, 48, 49, 50],
            "epoch": [5, 6, 6, 6],
            "proposer_index": [1, 2, 3, 4],
            "status": ["proposed", "proposed", "orphaned", "missed"],
            "exec_block_number": [7, 8, 8, None],
            "exec_time": [CHAIN.time_of("slot", 47)] * 4,
            **{f"exec_{name}": ["0x"] * 4 for name in texts},
            **{f"exec_{name}": [0] * 4 for name in numbers},
        }
    )

    found = scan_payloads(build_tables({"blocks": blocks}, last=5)).collect()

    assert [(7, 1, True), (8, 2, False)] == found.select(
        "block_number", "proposer_index", "finalized"
    ).rows()


def test_coverage():
    """Step 11: intervals that touch are one; each table may cover other epochs."""
    coverage = Coverage([(6, 9), (0, 2), (3, 4)], {"blocks": [(0, 1), (2, 9)]})

    assert ((0, 4), (6, 9)) == coverage.epochs_of("balance_history")
    assert [0, None, 6] == [coverage.find_start("income_history", n) for n in (4, 5, 9)]
    assert 0 == coverage.find_start("blocks", 9)
    assert coverage.covers("income_history", range(1, 5))
    assert not coverage.covers("income_history", range(4, 7))
    assert not coverage.covers("income_history", range(9, 11))
    assert coverage.covers("blocks", range(10))
    assert coverage.covers("income_history", range(100, 100))


def test_missing_tables_are_named():
    """Step 11: what cannot be derived is refused by name, with the reason."""
    tables = build_tables({"validators": build_validators({})})

    obstacles = find_obstacles(tables)

    assert "the table execution_blocks is missing" == obstacles["execution_performance"]
    assert (
        "the table balance_history is missing; the table income_history is missing; "
        "the table deposit_events or slot_deposits is missing; "
        "the table withdrawal_events or validator_withdrawals or slot_withdrawals is missing"
    ) == obstacles["yield_index"]
    assert [WithdrawalCredentials] == [table for table, _ in derive_tables(tables)]
