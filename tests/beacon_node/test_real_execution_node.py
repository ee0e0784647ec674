"""Blocks that a real EVM has executed: balances show what was paid.

The truth is the change of balances, which the EVM computes from its own rules: the fee recipient
gets the priority fees, and the proposer's address the payment of the builder.
"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from beaconframes.beacon_node.client.slot_blocks import SlotBlock
from beaconframes.beacon_node.execution.deposit_events import (
    DEPOSIT_EVENT,
    GET_DEPOSIT_COUNT,
    read_deposits,
)
from beaconframes.beacon_node.execution.payments import read_payments
from beaconframes.beacon_node.tables.readings import read_address_balances, read_gas_fees
from beaconframes.calendar import MAINNET

from ..support.execution_chains import Anvil, EthTester, to_int
from ..support.node_tables import build_execution_blocks

pytestmark = pytest.mark.more

GWEI, ETH = 10**9, 10**18
REVERT = "0x60006000fd"
DEPOSIT_CONTRACT = bytes.fromhex(
    "3660041460" + "3c" + "57"  # four bytes of call data are get_deposit_count()
    "3660006000" + "37"  # copy the call data
    "7f" + DEPOSIT_EVENT[2:] + "366000a1"  # log it as the event
    "600054600101600055" + "00"  # count it
    "5b6020600052600860205260005460f81b604052" + "60606000f3"  # return the count
)
"""Logs its call data as a deposit, and counts: what the deposit contract does with valid data."""
DEPLOY = "0x60" + f"{len(DEPOSIT_CONTRACT):02x}" + "80600b6000396000f3" + DEPOSIT_CONTRACT.hex()


@pytest.fixture(params=[EthTester, Anvil])
def chain(request):
    """Return a development chain."""
    if request.param is Anvil and "ANVIL" not in os.environ:
        pytest.skip("ANVIL does not name a program")
    made = request.param()
    yield made
    made.close()


def read_balance(chain, address, number):
    answer = chain.api.call([("eth_getBalance", [address, hex(number)])])[0]
    return to_int(answer)


def build_slot(chain, number):
    """Return a slot whose beacon block has this execution block."""
    block = chain.api.call([("eth_getBlockByNumber", [hex(number), False])])[0]
    payload = SimpleNamespace(
        block_number=number,
        block_hash=block["hash"],
        parent_hash=block["parentHash"],
        timestamp=to_int(block["timestamp"]),
        fee_recipient=block["miner"],
        gas_limit=to_int(block["gasLimit"]),
        gas_used=to_int(block["gasUsed"]),
        base_fee_per_gas=to_int(block["baseFeePerGas"]),
        transactions=block["transactions"],
    )
    body = SimpleNamespace(execution_payload=payload)
    block = SimpleNamespace(message=SimpleNamespace(body=body))
    return SlotBlock(number + 100, "proposed", 7, "0x", block)


def test_fees_and_payments_are_the_change_of_balances(chain):
    """Legacy, dynamic, failing and creating transactions; a builder that pays the proposer."""
    user, other, builder, proposer, recipient = chain.accounts[:5]
    high = {"max_fee_per_gas": 9 * GWEI, "max_priority_fee_per_gas": 2 * GWEI}
    numbers = []

    chain.send(**{"from": user}, to=other, value=5, gas_price=7 * GWEI)
    chain.send(**{"from": other}, to=user, value=ETH, **high)
    chain.send(**{"from": user}, data=REVERT, **high)
    numbers.append(chain.mine(recipient)[0])
    numbers.append(chain.mine(recipient)[0])
    chain.send(**{"from": user}, data=DEPLOY, max_fee_per_gas=3 * GWEI,
               max_priority_fee_per_gas=3 * GWEI)  # fmt: skip
    chain.send(**{"from": builder}, to=proposer, value=ETH // 20, gas=50_000,
               max_fee_per_gas=9 * GWEI, max_priority_fee_per_gas=0)  # fmt: skip
    numbers.append(chain.mine(builder)[0])

    slots = [build_slot(chain, number) for number in numbers]
    payments = read_payments(chain.api, slots)

    def gained(address, number):
        return read_balance(chain, address, number) - read_balance(chain, address, number - 1)

    assert [gained(recipient, number) for number in numbers[:2]] == [
        payment.fees_wei for payment in payments[:2]
    ]
    full, empty, paying = payments
    assert (0, 0, None) == (empty.fees_wei, empty.builder_payment_wei, empty.paid_address)
    assert [3, 0, 2] == [len(payment.payload.transactions) for payment in payments]
    assert full.fees_wei > 0
    assert full.producer_reward_wei == full.fees_wei
    assert (gained(proposer, numbers[2]), proposer.lower()) == (
        paying.producer_reward_wei,
        paying.paid_address,
    )
    assert ETH // 20 == paying.builder_payment_wei
    # The builder also paid the base fee of its own transaction, which is burnt.
    burnt = 21_000 * paying.payload.base_fee_per_gas
    assert gained(builder, numbers[2]) == paying.fees_wei - ETH // 20 - burnt

    frame = build_execution_blocks(SimpleNamespace(chain=MAINNET), 0, payments)
    assert [payment.producer_reward_wei for payment in payments] == [
        int(amount) for amount in frame["producer_reward_wei"]
    ]


def test_deposits_of_a_contract(chain):
    """Deposits of several transactions and blocks, encoded by another implementation."""
    import eth_abi

    user, other, recipient = chain.accounts[:3]
    price = {"gas_price": 9 * GWEI}
    chain.send(**{"from": user}, data=DEPLOY, **price)
    first, (contract,) = chain.mine(recipient)
    made = []
    for number in range(5):
        credentials = bytes([1, *[number] * 31])
        amount = (32 + number) * GWEI
        fields = (
            bytes([160 + number] * 48), credentials, amount.to_bytes(8, "little"),
            bytes([number] * 96), number.to_bytes(8, "little"),
        )  # fmt: skip
        data = "0x" + eth_abi.encode(["bytes"] * 5, fields).hex()
        chain.send(**{"from": user if number % 2 else other}, to=contract, data=data, **price)
        if number in {1, 4}:
            last, _ = chain.mine(recipient)
        made.append(("0x" + fields[0].hex(), "0x" + credentials.hex(), amount, data))

    deposits = read_deposits(chain.api, contract, 0, last)

    assert made == [
        (each.pubkey, each.withdrawal_credentials, each.amount_gwei, each.tx_input)
        for each in deposits
    ]
    places = [(each.number, each.block_number - first, each.tx_index) for each in deposits]
    assert [(0, 1, 0), (1, 1, 1), (2, 2, 0), (3, 2, 1), (4, 2, 2)] == places
    senders = [user if number % 2 else other for number in range(5)]
    assert [sender.lower() for sender in senders] == [each.from_address for each in deposits]
    call = {"to": contract, "data": GET_DEPOSIT_COUNT}
    answer = chain.api.call([("eth_call", [call, hex(last)])])[0]
    count = eth_abi.encode(["bytes"], [(5).to_bytes(8, "little")])
    assert "0x" + count.hex() == answer, "so read_deposits checks the end of the range"
    block = chain.api.call([("eth_getBlockByNumber", [hex(last), False])])[0]
    assert to_int(block["timestamp"]) == deposits[-1].time
    assert deposits[2:] == read_deposits(chain.api, contract, last, last, first_number=2)


def test_readings(chain):
    """Balances of new and unknown addresses, and fees that the next block would accept."""
    user, recipient = chain.accounts[:2]
    address = "0x" + "77" * 20
    chain.send(**{"from": user}, to=address, value=10**18 + 1, gas_price=9 * GWEI)
    number, _ = chain.mine(recipient)

    frame = read_address_balances(chain.api, [address, "0x" + "99" * 20], MAINNET)

    assert [10**18 + 1, 0] == [int(amount) for amount in frame["balance_wei"]]
    fees = read_gas_fees(chain.api, MAINNET).row(0, named=True)
    number, _ = chain.mine(recipient)
    base_fee = build_slot(chain, number).block.message.body.execution_payload.base_fee_per_gas
    assert base_fee <= fees["slow_wei"] <= fees["rapid_wei"] < 9 * GWEI
