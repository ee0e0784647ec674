"""The registry of a state: which validators a slashing slashes, and incomplete responses."""

import numpy as np
import pytest

from beaconframes.beacon_node.client.validator_rows import build_whole_registry
from beaconframes.consensus.registry import find_creating_deposit, is_slashable
from beaconframes.errors import ResponseError

from ..support.beacon_states import parse_rows

FAR_FUTURE_EPOCH = 2**64 - 1
ETH = 10**9


def build_records(*indices, activation_epoch=10, withdrawable_epoch=FAR_FUTURE_EPOCH):
    """Return validators as a beacon node lists them."""
    validator = {
        "pubkey": "0x" + "8a" * 48,
        "withdrawal_credentials": "0x01" + "00" * 31,
        "effective_balance": str(32 * ETH),
        "slashed": False,
        "activation_eligibility_epoch": "0",
        "activation_epoch": str(activation_epoch),
        "exit_epoch": str(FAR_FUTURE_EPOCH),
        "withdrawable_epoch": str(withdrawable_epoch),
    }
    return parse_rows(
        [
            {"index": str(index), "balance": str(32 * ETH), "status": "", "validator": validator}
            for index in indices
        ]
    )


@pytest.mark.parametrize(
    ("epoch", "expected"), [(9, False), (10, True), (19, True), (20, False), (21, False)]
)
def test_slashable_from_activation_until_withdrawable(epoch, expected):
    """is_slashable_validator of the specification: activation <= epoch < withdrawable."""
    registry = build_whole_registry(build_records(0, withdrawable_epoch=20))

    assert expected == is_slashable(registry, np.array([False]), 0, epoch)


def test_a_slashed_validator_is_not_slashable():
    """is_slashable_validator of the specification: not slashed before."""
    registry = build_whole_registry(build_records(0, 1))

    assert [False, True] == [
        is_slashable(registry, np.array([True, False]), index, 15) for index in (0, 1)
    ]


BLS, OTHER_BLS = b"\x00" + b"\x11" * 31, b"\x00" + b"\x22" * 31
ADDRESS, OTHER_ADDRESS = (b"\x01" + bytes(11) + byte * 20 for byte in (b"\xaa", b"\xbb"))
COMPOUNDING = b"\x02" + ADDRESS[1:]


@pytest.mark.parametrize(
    ("credentials", "registered", "received", "expected"),
    [
        ([ADDRESS], ADDRESS, 1, 0),
        ([OTHER_ADDRESS, ADDRESS], ADDRESS, 2, 1),
        ([OTHER_ADDRESS, ADDRESS], COMPOUNDING, 2, 1),
        ([OTHER_ADDRESS, BLS], ADDRESS, 2, 1),
        ([OTHER_BLS, BLS, ADDRESS], ADDRESS, 4, 2),
        ([OTHER_ADDRESS], ADDRESS, 1, None),
        ([OTHER_BLS], BLS, 1, None),
        ([ADDRESS, ADDRESS, ADDRESS], ADDRESS, 7, 0),
        ([ADDRESS, ADDRESS, ADDRESS], ADDRESS, 6, 1),
        ([ADDRESS, ADDRESS, ADDRESS], ADDRESS, 4, 2),
        ([ADDRESS, OTHER_ADDRESS, ADDRESS], ADDRESS, 6, 0),
        ([ADDRESS, ADDRESS], ADDRESS, None, 0),
    ],
)
def test_the_deposit_that_created_a_validator(credentials, registered, received, expected):
    """Of 1, 2 and 4 ETH: its credentials, later changed or not, then the sum from it on.

    6 ETH could be the second deposit and those after it, whose credentials are others.
    """
    deposits = [(each, 2**n * ETH) for n, each in enumerate(credentials)]
    total = None if received is None else received * ETH
    assert find_creating_deposit(deposits, registered, total) == expected


@pytest.mark.parametrize("index", [2, 3])
def test_a_validator_that_the_state_does_not_have_is_not_slashable(index):
    """A block may create a validator; it is active after the epoch of that block."""
    registry = build_whole_registry(build_records(0, 1))

    assert not is_slashable(registry, np.array([False, False]), index, 15)


@pytest.mark.parametrize(
    ("indices", "missing"), [((1, 2), 0), ((0, 2), 1), ((2, 0, 3), 1), ((0, 0, 1), 2)]
)
def test_a_response_without_a_validator_names_it(indices, missing):
    """The registry has all validators; the error names the first one that is missing."""
    words = f"has {len(indices)} validators without validator {missing}"

    with pytest.raises(ResponseError, match=words):
        build_whole_registry(build_records(*indices))
