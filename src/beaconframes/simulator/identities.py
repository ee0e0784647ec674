"""Who runs the validators: keys, addresses, withdrawal credentials, names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beaconframes.simulator.preset import Ints

OPERATORS: Final = (
    "Skerry Staking",
    "Phare d'Ouessant",
    "Pharos Pool",
    "Fyrlykt",
    "Keeper's Cottage",
)
LARGEST: Final = 0  # operator of nearly half of the validators
RELAYS: Final = ("sim-foghorn", "sim-semaphore", "sim-heliograph")
_BUILDERS: Final = 5


@dataclass(frozen=True)
class Builder:
    """Who builds blocks for others, and the relay that brings them."""

    address: str
    pubkey: str
    relay: str


def pubkey(seed: int, what: str) -> str:
    """Return a public key: 48 bytes that have the form of a compressed point."""
    key = bytearray(hashlib.blake2b(f"{what} {seed}".encode(), digest_size=48).digest())
    key[0] = 0x80 | key[0] & 0x3F
    return "0x" + key.hex()


def pubkeys(seed: int, count: int) -> list[str]:
    """Return the public keys of the validators."""
    return [pubkey(seed, f"key {index}") for index in range(count)]


def address(seed: int, what: str) -> str:
    """Return the address of something on the execution layer."""
    return "0x" + hashlib.blake2b(f"{what} {seed}".encode(), digest_size=20).hexdigest()


def operator(index: int, count: int) -> int:
    """Return the number of the operator that runs a validator of *count*."""
    return LARGEST if count // 4 <= index < count * 7 // 10 else index // 24


def operators(count: int) -> list[int]:
    """Return the operator of each validator."""
    return [operator(index, count) for index in range(count)]


def operator_addresses(seed: int, count: int) -> list[str]:
    """Return, for each validator, the address of its operator."""
    numbers = operators(count)
    known = {number: address(seed, f"operator {number}") for number in sorted(set(numbers))}
    return [known[number] for number in numbers]


def in_pool(number: int) -> bool:
    """Tell whether an operator is a node of the pool: its validators pay to contracts."""
    return number % 4 == 1


def credentials(seed: int, prefix: Ints) -> list[str]:
    """Return the withdrawal credentials; an operator's validators share an address."""
    owners = operator_addresses(seed, len(prefix))
    numbers = operators(len(prefix))
    texts = []
    for index, kind in enumerate(prefix.tolist()):
        if kind == 0:
            texts.append(bls_credentials(seed, index))
            continue
        pooled = kind == 1 and in_pool(numbers[index])
        owner = address(seed, f"minipool {index}") if pooled else owners[index]
        texts.append(f"0x{kind:02x}{'0' * 22}{owner[2:]}")
    return texts


def bls_credentials(seed: int, index: int) -> str:
    """Return the credentials of a validator that has not chosen an address."""
    return "0x00" + hashlib.blake2b(f"bls {index} {seed}".encode(), digest_size=31).hexdigest()


def names(count: int) -> list[str]:
    """Return the names; most operators have none."""
    return [
        OPERATORS[number // 3 % len(OPERATORS)] if number % 3 == 0 else ""
        for number in operators(count)
    ]


def builders(seed: int) -> Sequence[Builder]:
    """Return the builders."""
    return [
        Builder(
            address(seed, f"builder {number}"),
            pubkey(seed, f"builder {number}"),
            RELAYS[number % len(RELAYS)],
        )
        for number in range(_BUILDERS)
    ]
