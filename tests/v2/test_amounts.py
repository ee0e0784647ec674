"""Amounts of V2: wei as text, exact to the last digit, typed when null."""

from __future__ import annotations

import json
from decimal import Decimal

import polars as pl
import pytest

import beaconframes as bf
from beaconframes import errors
from beaconframes.v2.block import Block
from beaconframes.v2.block_rewards import BlockRewards
from beaconframes.v2.rewards import Rewards
from beaconframes.v2.slot_attestation_duties import SlotAttestationDuties
from beaconframes.v2.slot_sync_committee_duties import SlotSyncCommitteeDuties

from ..support.replay import replaying
from ..support.whole_records import whole

WEI = pl.Decimal(28, 0)
KEY = "0x" + "ab" * 48
MOST = "9" * 28


def loaded(load, records, *args, **more):
    """Return the frame of a loader for *records*, or for one of them."""
    reply = json.dumps({"data": records}).encode()
    with (
        replaying({"*": reply}) as server,
        bf.Explorer(server.url, chain="mainnet", rate=1000, store=False) as explorer,
    ):
        return load(*args, **more, explorer=explorer)


def rewards(totals):
    """Return records of rewards with these *totals*; the other amounts are 0."""
    records = [
        whole(Rewards, {"validator": {"index": index, "public_key": KEY}, "total": total})
        for index, total in enumerate(totals)
    ]
    return loaded(bf.v2.load_rewards, records, range(len(totals)), since=300_000, until=300_000)


@pytest.mark.parametrize("around", ["-5", "0", 0])
def test_an_amount_is_exact_up_to_28_digits(around):
    """Either sign, whatever the other rows have; no float in between."""
    texts = ["0", "1", "-1", "9223372036854775808", "-18446744073709551617", MOST, f"-{MOST}"]

    found = rewards([*texts, around])

    assert WEI == found.schema["total_wei"]
    expected = [Decimal(text) for text in [*texts, around]]
    assert expected == found["total_wei"].to_list()
    assert sum(expected) == Decimal(found["total_wei"].sum())


@pytest.mark.parametrize(
    "text", [f"1{'0' * 28}", f"-1{'0' * 28}", "1" * 60, "1.5", "+5", "1e3", "five"]
)
def test_an_invalid_amount_is_an_error(text):
    """Amounts that are too large, fractions or words raise an error."""
    with pytest.raises(errors.SchemaError, match="total is"):
        rewards(["5", text])


def test_a_column_of_nulls_is_typed():
    """A reward that no validator has is null in all rows; the frame has the usual types."""
    found = rewards(["1", "2"])

    amounts = [name for name in found.columns if name.endswith("_wei")]
    assert 31 == len(amounts)
    assert {WEI} == {found.schema[name] for name in amounts}
    assert {0, 2} == {found[name].null_count() for name in amounts}
    assert 2 == found["attestation_inclusion_delay_total_wei"].null_count()
    assert 4 == pl.concat([found, rewards(["-5", MOST])]).height


EXECUTION = {"execution_reference": {"block": 5, "hash": "0x" + "cd" * 32}}


def test_a_block_without_a_builder_has_no_payment_of_one():
    """The payment of the builder and its other columns are null and typed."""
    record = {**EXECUTION, "mev": None, "mining": None, "consensus_reference": None}

    found = loaded(bf.v2.load_block_rewards, whole(BlockRewards, record), 5)

    nothing = {"mev_wei": WEI, "mev_recipient": pl.String, "mev_is_contract": pl.Boolean}
    assert nothing == {name: found.schema[name] for name in nothing}
    assert [None] * 3 == [found[name][0] for name in nothing]


def test_a_block_before_deneb_has_null_blob_gas():
    """Columns of blobs are null, not 0."""
    record = {"block": 5, "hash": "0x" + "cd" * 32, "blob": None}

    found = loaded(bf.v2.load_block, whole(Block, record), 5)

    assert [pl.Int64] * 2 == [found.schema[f"blob_gas_{what}"] for what in ("used", "excess")]
    assert [None] * 2 == [found[f"blob_gas_{what}"][0] for what in ("used", "excess")]


@pytest.mark.parametrize(
    ("load", "table", "amounts"),
    [
        ("slot_attestation_duties", SlotAttestationDuties, 16),
        ("slot_sync_committee_duties", SlotSyncCommitteeDuties, 4),
    ],
)
def test_a_duty_that_is_not_final_has_no_reward_yet(load, table, amounts):
    """Every part is null, with its type."""
    record = {"status": "scheduled", "finality": "not_finalized", "reward": None}
    records = [
        whole(table, {"validator": {"index": n, "public_key": KEY}, **record}) for n in range(2)
    ]

    found = loaded(getattr(bf.v2, f"load_{load}"), records, 9_000_000)

    parts = [name for name in found.columns if name.endswith("_wei")]
    assert amounts == len(parts)
    assert {WEI} == {found.schema[name] for name in parts}
    assert {2} == {found[name].null_count() for name in parts}
