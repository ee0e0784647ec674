"""Who runs the validators: keys, withdrawal credentials, names."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beaconframes.service.simulate.preset import Ints

OPERATORS = (
    "Skerry Staking",
    "Phare d'Ouessant",
    "Pharos Pool",
    "Fyrlykt",
    "Keeper's Cottage",
)


def pubkeys(seed: int, count: int) -> list[str]:
    """Return the public keys: 48 bytes that have the form of a compressed point."""
    keys = []
    for index in range(count):
        key = bytearray(hashlib.blake2b(b"key %d %d" % (seed, index), digest_size=48).digest())
        key[0] = 0x80 | key[0] & 0x3F
        keys.append("0x" + key.hex())
    return keys


def credentials(seed: int, prefix: Ints) -> list[str]:
    """Return the withdrawal credentials; an operator's validators share an address."""
    texts = []
    for index, kind in enumerate(prefix.tolist()):
        digest = hashlib.blake2b(b"address %d %d" % (seed, operator(index)), digest_size=20)
        if kind == 0:
            digest = hashlib.blake2b(b"bls %d %d" % (seed, index), digest_size=31)
        texts.append(f"0x{kind:02x}{digest.hexdigest():0>62}")
    return texts


def operator(index: int) -> int:
    """Return the number of the operator that runs a validator."""
    return index // 24


def names(count: int) -> list[str]:
    """Return the names; most validators have none."""
    return [
        OPERATORS[operator(i) // 3 % len(OPERATORS)] if operator(i) % 3 == 0 else ""
        for i in range(count)
    ]
