"""Identities: public keys, addresses, withdrawal credentials, operators, builders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from beaconframes.simulator.hex_text import hash_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.consensus.registry import Ints

OPERATORS: Final = (
    "Skerry Staking",
    "Phare d'Ouessant",
    "Pharos Pool",
    "Fyrlykt",
    "Keeper's Cottage",
)
LARGEST: Final = 0  # operator with nearly half of the validators
RELAYS: Final = ("sim-foghorn", "sim-semaphore", "sim-heliograph")
_BUILDERS: Final = 5


@dataclass(frozen=True)
class Builder:
    """A block builder and its relay."""

    address: str
    pubkey: str
    relay: str


def make_pubkey(seed: int, label: str) -> str:
    """Return a public key: 48 bytes in the form of a compressed point."""
    key = hash_text(seed, label, 48)
    return f"0x{0x80 | int(key[2:4], 16) & 0x3F:02x}{key[4:]}"


def make_pubkeys(seed: int, count: int) -> list[str]:
    """Return the public keys of the validators."""
    return [make_pubkey(seed, f"key {index}") for index in range(count)]


def make_address(seed: int, label: str) -> str:
    """Return the execution address of the owner with this *label*."""
    return hash_text(seed, label, 20)


def find_operator(index: int, count: int) -> int:
    """Return the operator of one of *count* validators."""
    return LARGEST if count // 4 <= index < count * 7 // 10 else index // 24


def find_operators(count: int) -> list[int]:
    """Return the operator of each validator."""
    return [find_operator(index, count) for index in range(count)]


def make_operator_addresses(seed: int, count: int) -> list[str]:
    """Return, for each validator, the address of its operator."""
    numbers = find_operators(count)
    addresses = {
        number: make_address(seed, f"operator {number}") for number in sorted(set(numbers))
    }
    return [addresses[number] for number in numbers]


def is_pool_node(number: int) -> bool:
    """Return whether an operator is a node of the pool, whose validators pay to contracts."""
    return number % 4 == 1


def make_credentials(seed: int, prefix: Ints) -> list[str]:
    """Return the withdrawal credentials; validators of one operator share an address."""
    owners = make_operator_addresses(seed, len(prefix))
    numbers = find_operators(len(prefix))
    texts = []
    for index, kind in enumerate(prefix.tolist()):
        if kind == 0:
            texts.append(make_bls_credentials(seed, index))
            continue
        pooled = kind == 1 and is_pool_node(numbers[index])
        owner = make_address(seed, f"minipool {index}") if pooled else owners[index]
        texts.append(f"0x{kind:02x}{'0' * 22}{owner[2:]}")
    return texts


def make_bls_credentials(seed: int, index: int) -> str:
    """Return the BLS withdrawal credentials of a validator."""
    return "0x00" + hash_text(seed, f"bls {index}", 31)[2:]


def make_names(count: int) -> list[str]:
    """Return the name of each validator; most operators have none."""
    return [
        OPERATORS[number // 3 % len(OPERATORS)] if number % 3 == 0 else ""
        for number in find_operators(count)
    ]


def make_builders(seed: int) -> Sequence[Builder]:
    """Return the block builders."""
    return [
        Builder(
            make_address(seed, f"builder {number}"),
            make_pubkey(seed, f"builder {number}"),
            RELAYS[number % len(RELAYS)],
        )
        for number in range(_BUILDERS)
    ]
