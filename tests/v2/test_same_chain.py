"""One chain from V1 and V2: their shared columns are equal to the last wei."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import beaconframes as bf
from beaconframes.errors import UsageError

from ..support.cases import every

ORDINARY, DEPOSITS = range(40), range(990, 1010)


def pairs(explorer):
    """Return the frames of V1 and V2 for each pair of the specification's section 9."""
    head = explorer.service.head
    final = 32 * (head.finalized_epoch + 1) - 1
    slots = [*range(5_000, 5_020), 6_409, head.slot - 5]
    newest = explorer.service.dataset.scan("execution_blocks").collect()["block_number"].max()
    blocks = [0, 1, *range(7_000, 7_012), newest]
    duties = explorer.service.dataset.scan("attestations").collect()
    last = explorer.service.chain.last_slot_of(head.finalized_epoch)
    voted = [last - 8, last - 9]
    here = duties.filter(pl.col("attester_slot").is_in(voted))
    members = here["validator_index"].unique().sort().to_list()[:20]
    roots = (
        bf.load_epoch_slots(since=200, until=200).filter(status="proposed")["slot"].to_list()[:8]
    )
    return {
        "validators": (
            lambda: bf.load_validators([*ORDINARY, *range(500, 560), *DEPOSITS]),
            lambda: bf.v2.load_validators([*ORDINARY, *range(500, 560), *DEPOSITS]),
        ),
        "balances": (
            lambda: bf.load_balance_history(ORDINARY, since=200, until=202),
            lambda: bf.v2.load_balances(ORDINARY, since=200, until=202),
        ),
        "rewards": (
            lambda: bf.load_income_history(ORDINARY, since=300, until=303),
            lambda: bf.v2.load_rewards(ORDINARY, since=300, until=303),
        ),
        "proposal_slots": (
            lambda: bf.load_proposals(ORDINARY, since=0, until=head.finalized_epoch).with_columns(
                # V2 does not count an orphaned block.
                pl.when(status="proposed").then("exec_block_number")
            ),
            lambda: bf.v2.load_proposal_slots(ORDINARY, until=final),
        ),
        "slot": (lambda: bf.load_slots(roots), lambda: bf.v2.load_slot(roots)),
        "slot_attestation_duties": (
            lambda: bf.load_attestations(members).filter(pl.col("attester_slot").is_in(voted)),
            lambda: bf.v2.load_slot_attestation_duties(voted, members),
        ),
        "slot_withdrawals": (
            lambda: bf.load_slot_withdrawals(slots),
            lambda: bf.v2.load_slot_withdrawals(slots),
        ),
        "block": (lambda: bf.load_execution_blocks(blocks), lambda: bf.v2.load_block(blocks)),
        "block_rewards": (
            lambda: bf.load_execution_blocks(blocks),
            lambda: bf.v2.load_block_rewards(blocks),
        ),
        "sync_committee": (
            lambda: bf.load_sync_committees([0, 1]).filter(seat=0),
            lambda: bf.v2.load_sync_committee([0, 1]),
        ),
        "queues": (bf.load_validator_queue, bf.v2.load_queues),
        "yield_index": (
            lambda: bf.load_yield_index(since=0, until=1),
            lambda: bf.v2.load_yield_index(since=0, until=1),
        ),
    }


NAMES = [
    "validators",
    "balances",
    "rewards",
    "proposal_slots",
    "slot",
    "slot_attestation_duties",
    "slot_withdrawals",
    "block",
    "block_rewards",
    "sync_committee",
    "queues",
    "yield_index",
]


UNORDERED = {"slot_withdrawals"}
"""V1 sorts these by a number that V2 does not have."""


@pytest.mark.more
@pytest.mark.parametrize("name", every(3, NAMES))
def test_v1_and_v2_agree(name, explorer):
    """Names, units, order and cells are equal after the documented conversion."""
    first, second = pairs(explorer)[name]

    found = bf.v2.same_as_v1(second())
    expected = first()

    assert found.height > 0
    assert len(found.columns) > 2
    assert_frame_equal(expected.select(found.columns), found, check_row_order=name not in UNORDERED)


def test_the_columns_are_those_that_both_have():
    """Columns written by hand, for two loaders."""
    rewards = bf.v2._v1_comparison.V1_EQUIVALENTS["rewards"].of(
        pl.DataFrame(schema=bf.v2.REWARDS.table.schema())
    )

    assert {
        "validator_index": pl.Int64,
        "epoch": pl.Int64,
        "time": pl.Datetime("us", "UTC"),
        "attestation_head_reward_gwei": pl.Int64,
        "attestation_source_reward_gwei": pl.Int64,
        "attestation_source_penalty_gwei": pl.Int64,
        "attestation_target_reward_gwei": pl.Int64,
        "attestation_target_penalty_gwei": pl.Int64,
        "finality_delay_penalty_gwei": pl.Int64,
        "proposer_attestation_inclusion_reward_gwei": pl.Int64,
        "proposer_sync_inclusion_reward_gwei": pl.Int64,
        "sync_committee_reward_gwei": pl.Int64,
        "sync_committee_penalty_gwei": pl.Int64,
    } == dict(rewards.schema)


def test_a_pandas_frame_stays_one(explorer):
    """A pandas frame is returned, exact to the digit."""
    rows = bf.v2.load_rewards(range(3), since=300, until=300)

    found = bf.v2.same_as_v1(bf.to_pandas(rows))

    assert bf.to_pandas(bf.v2.same_as_v1(rows)).equals(found)


def test_a_frame_without_an_equivalent_raises():
    """Another frame, and one with a missing column, raise."""
    for frame in (pl.DataFrame({"a": [1]}), pl.DataFrame(schema={"period": pl.Int64})):
        with pytest.raises(UsageError, match=r"bf\.v2\.load_rewards"):
            bf.v2.same_as_v1(frame)


def test_a_fraction_of_a_gwei_raises():
    """Amounts are never rounded."""
    row = dict.fromkeys(bf.v2.BALANCES.table.schema()) | {"balance_wei": 1}
    frame = pl.DataFrame([row], schema=bf.v2.BALANCES.table.schema())

    with pytest.raises(UsageError, match="gwei"):
        bf.v2.same_as_v1(frame)


@pytest.mark.parametrize("reject_reason", [None, "not enough balance"])
def test_withdrawals_that_are_not_paid_are_not_those_of_v1(reject_reason):
    """A system withdrawal moves a balance into the deposit queue; V1 has paid ones only.

    By section 3.1 of the specification, system withdrawals may be among those of a slot. V1 counts
    neither them nor rejected requests, whatever else the slot pays.
    """
    schema = bf.v2.SLOT_WITHDRAWALS.table.schema()
    kinds = ["manual", "partial_sweep", "full_exit_sweep", "system", None]
    rows = [
        dict.fromkeys(schema)
        | {"slot": 64, "validator_index": n, "type": kind, "amount_wei": 10**9 * (n + 1)}
        | {"reject_reason": reject_reason if kind == "manual" else None}
        for n, kind in enumerate(kinds)
    ]

    found = bf.v2.same_as_v1(pl.DataFrame(rows, schema=schema))

    paid = [1, 2, 4] if reject_reason else [0, 1, 2, 4]
    assert paid == found["validator_index"].to_list()
    assert sum(n + 1 for n in paid) == found["amount_gwei"].sum()
