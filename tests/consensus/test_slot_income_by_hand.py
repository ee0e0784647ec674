"""Slot income of hand-made blocks, with amounts worked out by hand.

16 validators of 32 ETH, 8 slots an epoch, 8 sync seats. The base reward of one ETH is
64e9 // isqrt(512e9) = 89,442 gwei, that of a validator 32 times that: 2,862,144 gwei. A seat earns
89,442 * 512 * 2 // 64 // 8 // 8 = 22,360 gwei a block, the proposer 22,360 * 8 // 56 = 3,194.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from beaconframes.consensus.registry import Registry
from beaconframes.consensus.slot_income import EpochRegistry, compute_slot_income
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.errors import ResponseError, UsageError

from ..support.small_blocks import ETH, TOTAL, build_block, build_spec

SEATS = (1, 2, 3, 3, 4, 5, 6, 7)
ADDRESS, OTHER_ADDRESS = "0x" + "aa" * 20, "0x" + "bb" * 20
EVERY_SEAT = "0xff"


def build_pubkey(index):
    """Return the public key of a validator; the keys of 256 validators begin alike."""
    return bytes([0xA0]) + (index // 256).to_bytes(40, "big") + index.to_bytes(7, "big")


def build_validators(credentials=b"\x01" + bytes(11) + b"\xaa" * 20, count=16, **columns):
    """Return active validators; *columns* replace those of the registry."""
    keys = b"".join(map(build_pubkey, range(count)))
    return replace(
        Registry(
            effective_balances=np.full(count, 32 * ETH),
            balances=np.full(count, 32 * ETH),
            slashed=np.zeros(count, np.bool_),
            activation_epochs=np.zeros(count, np.int64),
            exit_epochs=np.full(count, FAR_FUTURE_EPOCH),
            withdrawable_epochs=np.full(count, FAR_FUTURE_EPOCH),
            pubkeys=np.frombuffer(keys, np.uint8).reshape(count, 48),
            withdrawal_credentials=np.frombuffer(credentials * count, np.uint8).reshape(-1, 32),
        ),
        **columns,
    )


def build_registry(fork="capella", before=None, after=None, balances=None, epoch=1, blocks=()):
    """Return the validators before the first block of epoch 1."""
    before = before or build_validators()
    return EpochRegistry.build(
        build_spec(fork),
        epoch,
        before=before,
        after=after or before,
        balances=before.balances if balances is None else np.array(balances),
        sync_committee=np.array(SEATS),
        total_active_balance=TOTAL,
        blocks=blocks,
    )


def list_rows(registry, *blocks, sync=False):
    """Return kind, validator and amount of the rows of blocks."""
    rows = [row[1:] for block in blocks for row in compute_slot_income(registry, block, 0)]
    return [row for row in rows if sync or not row[0].startswith("sync_")]


def slash_proposer(index):
    return {"signed_header_1": {"message": {"proposer_index": str(index)}}}


def slash_attesters(first, second):
    return {
        name: {"attesting_indices": [str(index) for index in indices]}
        for name, indices in (("attestation_1", first), ("attestation_2", second))
    }


def build_deposit(index, amount, credentials="0x01" + "00" * 11 + "aa" * 20):
    return {
        "data": {
            "pubkey": "0x" + build_pubkey(index).hex(),
            "withdrawal_credentials": credentials,
            "amount": str(amount),
        }
    }


def build_request(source, target, address=ADDRESS):
    """Return a consolidation request in the requests of a block."""
    keys = {"source_pubkey": source, "target_pubkey": target}
    request = {name: "0x" + build_pubkey(index).hex() for name, index in keys.items()}
    return {"consolidations": [request | {"source_address": address}]}


def test_seats_that_do_not_sign_lose_what_the_others_earn():
    """Validator 3 has two seats: one row has the sum."""
    rows = list_rows(build_registry(), build_block(signed="0xf5"), sync=True)
    assert sorted(rows) == [
        ("sync_committee", 1, 22_360),
        ("sync_committee", 2, -22_360),
        *(("sync_committee", index, 22_360) for index in (4, 5, 6, 7)),
        ("sync_inclusion", 0, 6 * 3_194),
    ]


@pytest.mark.parametrize(
    ("start", "signed", "moved"),
    [
        pytest.param(100, "0xf7", 0, id="earned, then lost"),
        pytest.param(100, "0xfb", 22_260, id="lost what there is, then earned"),
        pytest.param(30_000, "0xf3", -30_000, id="more than one penalty, less than two"),
        pytest.param(44_720, "0xf3", -44_720, id="two penalties"),
    ],
)
def test_a_penalty_takes_no_more_than_the_balance(start, signed, moved):
    """Validator 3 has two seats, of 22,360 gwei each: they are paid in order."""
    balances = [32 * ETH] * 16
    balances[3] = start
    registry = build_registry(balances=balances)
    rows = list_rows(registry, build_block(signed=signed), sync=True)
    found = [amount for kind, index, amount in rows if (kind, index) == ("sync_committee", 3)]
    assert found == ([moved] if moved else [])
    assert registry.balances[3] == start + moved


@pytest.mark.parametrize(
    ("fork", "penalty", "reward"),
    [("altair", ETH // 2, 62_500_000), ("bellatrix", ETH, 62_500_000),
     ("deneb", ETH, 62_500_000), ("electra", 7_812_500, 7_812_500),
     ("fulu", 7_812_500, 7_812_500)],
)  # fmt: skip
def test_slashings_have_the_amounts_of_the_fork(fork, penalty, reward):
    """Twice in one block and again in the next one: a validator is slashed once."""
    registry = build_registry(fork)
    block = build_block(
        proposer_slashings=[slash_proposer(5)],
        attester_slashings=[slash_attesters([4, 5, 6], [5, 6, 7])],
    )
    again = build_block(9, attester_slashings=[slash_attesters([6], [6])])
    assert list_rows(registry, block, again) == [
        ("slashing_penalty", 5, -penalty),
        ("proposer_slashing_inclusion", 0, reward),
        ("slashing_penalty", 6, -penalty),
        ("attester_slashing_inclusion", 0, reward),
    ]


def test_only_active_or_exiting_unslashed_validators_can_be_slashed():
    """1 is slashed already, 2 not active yet, 3 withdrawable; 4 has a tenth of an ETH left."""
    validators = build_validators()
    validators.slashed[1] = True
    validators.activation_epochs[2] = 2
    validators.withdrawable_epochs[3] = 1
    balances = [32 * ETH] * 16
    balances[4] = ETH // 10
    registry = build_registry(before=validators, balances=balances)
    slashings = [slash_attesters([1, 2, 3, 4], [1, 2, 3, 4])]
    assert list_rows(registry, build_block(attester_slashings=slashings)) == [
        ("slashing_penalty", 4, -ETH // 10),
        ("attester_slashing_inclusion", 0, 62_500_000),
    ]


def test_deposits_before_electra_move_a_balance_in_their_block():
    """16 is new; its first deposit has other credentials than its validator: invalid. 17 is not."""
    deposits = [
        build_deposit(2, ETH, credentials="0x00" + "11" * 31),
        build_deposit(16, 3 * ETH, credentials="0x00" + "11" * 31),
        build_deposit(16, 20 * ETH),
        build_deposit(17, 32 * ETH),
    ]
    later = build_deposit(16, 12 * ETH, credentials="0x00" + "11" * 31)
    blocks = build_block(deposits=deposits), build_block(9, deposits=[later])
    registry = build_registry(after=build_validators(count=17), blocks=blocks)
    assert list_rows(registry, *blocks) == [
        ("deposit", 2, ETH), ("deposit", 16, 20 * ETH), ("deposit", 16, 12 * ETH),
    ]  # fmt: skip
    assert registry.balances[16] == 32 * ETH


@pytest.mark.parametrize("has_one_block", [True, False])
@pytest.mark.parametrize(
    ("left", "withdrawn", "expected"),
    [
        pytest.param(35, 0, [35], id="first signature invalid"),
        pytest.param(32, 3, [35], id="and the excess withdrawn since"),
        pytest.param(67, 0, [32, 35], id="both signatures valid"),
        pytest.param(32, 35, [32, 35], id="both valid, and the excess withdrawn since"),
    ],
)
def test_equal_deposits_of_a_new_key_count_from_the_first_valid_one(
    left, withdrawn, expected, has_one_block
):
    """Both have the credentials of the validator: the balance shows which one created it."""
    deposits = [build_deposit(16, 32 * ETH), build_deposit(16, 35 * ETH)]
    withdrawal = {"validator_index": "16", "amount": str(withdrawn * ETH)}
    payload = {"withdrawals": [withdrawal] if withdrawn else []}
    if has_one_block:
        blocks = [build_block(8, deposits=deposits)]
    else:
        blocks = [build_block(8 + n, deposits=[deposit]) for n, deposit in enumerate(deposits)]
    blocks.append(build_block(10, execution_payload=payload))
    after = build_validators(count=17, balances=np.array([32 * ETH] * 16 + [left * ETH]))
    registry = build_registry(after=after, blocks=blocks)
    rows = list_rows(registry, *blocks)
    assert [row.amount_gwei for row in registry.deposits] == [amount * ETH for amount in expected]
    assert sum(gwei for kind, _, gwei in rows if kind == "deposit") == sum(expected) * ETH
    assert registry.balances[16] == left * ETH


def test_deposits_since_electra_move_nothing_in_their_block():
    registry = build_registry("electra")
    assert list_rows(registry, build_block(deposits=[build_deposit(2, ETH)])) == []


def test_a_switch_to_compounding_takes_the_balance_above_32_eth():
    """Requests before the BLS change and from another address fail; rewards so far count."""
    bls = build_validators(credentials=b"\x00" * 32)
    compounding = build_validators(credentials=b"\x02" + bytes(11) + b"\xaa" * 20)
    registry = build_registry("electra", before=bls, after=compounding)
    change = {"message": {"validator_index": "1", "to_execution_address": ADDRESS}}
    blocks = [
        build_block(8, execution_requests=build_request(1, 1), signed=EVERY_SEAT),
        build_block(
            9,
            bls_to_execution_changes=[change],
            execution_requests=build_request(1, 1, OTHER_ADDRESS),
            signed=EVERY_SEAT,
        ),
        build_block(10, execution_requests=build_request(1, 1), signed=EVERY_SEAT),
        build_block(11, execution_requests=build_request(1, 1), signed=EVERY_SEAT),
    ]
    assert list_rows(registry, *blocks) == [("switch_to_compounding", 1, -2 * 22_360)]
    assert registry.balances[1] == 32 * ETH + 2 * 22_360


@pytest.mark.parametrize("credentials", [1, 2])
def test_other_consolidation_requests_move_nothing(credentials):
    """A source that is not the target; a switch that the exit of the validator prevented."""
    after = build_validators(credentials=bytes([credentials]) + bytes(11) + b"\xaa" * 20)
    registry = build_registry("electra", after=after)
    requests = build_request(1, 1) if credentials == 1 else build_request(1, 2)
    assert list_rows(registry, build_block(execution_requests=requests)) == []


def test_the_genesis_block_moves_nothing():
    assert compute_slot_income(build_registry(epoch=0), build_block(0), 0) == []


def test_blocks_of_phase0_are_refused_by_name():
    with pytest.raises(UsageError, match="epoch 1 belongs to phase0"):
        build_registry("phase0")


def test_a_sync_aggregate_of_another_size_is_an_error():
    with pytest.raises(ResponseError, match="slot 8 has 16 bits for 8 seats"):
        list_rows(build_registry(), build_block(signed="0x0f0f"))


def test_a_validator_that_the_registry_does_not_have_is_an_error():
    withdrawal = {"validator_index": "16", "amount": "1"}
    block = build_block(execution_payload={"withdrawals": [withdrawal]})
    with pytest.raises(ResponseError, match="block of slot 8 names validator 16 of 16"):
        list_rows(build_registry(), block)


def test_a_block_of_another_epoch_is_an_error():
    with pytest.raises(UsageError, match="block of slot 16 is not in epoch 1"):
        list_rows(build_registry(), build_block(16))
