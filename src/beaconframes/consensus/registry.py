"""The validator registry: a part of each state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from beaconframes.consensus.spec import Spec

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Bytes = NDArray[np.uint8]
    Floats = NDArray[np.float64]
    Structs = NDArray[np.void]
    Message = Mapping[str, Any]

ADDRESS_PREFIX: Final = 1
COMPOUNDING_PREFIX: Final = 2
"""The first byte of withdrawal credentials: 0x01 has an address, 0x02 compounds too."""


@dataclass(frozen=True, eq=False)
class Registry:
    """All validators at one slot: arrays with one entry per validator."""

    effective_balances: Ints
    balances: Ints
    slashed: Bools
    activation_epochs: Ints
    exit_epochs: Ints
    withdrawable_epochs: Ints
    pubkeys: Bytes
    """Shape (validators, 48)."""
    withdrawal_credentials: Bytes
    """Shape (validators, 32)."""

    def is_active(self, epoch: int) -> Bools:
        """Return for each validator whether it is active in *epoch*."""
        return (self.activation_epochs <= epoch) & (epoch < self.exit_epochs)


class PubkeyIndex:
    """Finds validators by public key among millions, without a dictionary of all keys."""

    def __init__(self, pubkeys: Bytes) -> None:
        """Index *pubkeys* of shape (validators, 48)."""
        self._pubkeys = pubkeys
        self._words: NDArray[np.uint64] | None = None

    def find(self, pubkey: bytes) -> int | None:
        """Return the validator with this public key; None if it has none."""
        if self._words is None:
            # The first byte of a key has flags; eight others are enough to find few candidates.
            self._words = np.ascontiguousarray(self._pubkeys[:, 8:16]).view("<u8")[:, 0]
        word = np.frombuffer(pubkey[8:16], "<u8")[0]
        for index in np.flatnonzero(self._words == word).tolist():
            if self._pubkeys[index].tobytes() == pubkey:
                return int(index)
        return None


def compute_total_active_balance(spec: Spec, registry: Registry, epoch: int) -> int:
    """Return the effective balance of all validators that are active in *epoch*, in gwei."""
    return compute_total_balance(spec, registry, registry.is_active(epoch))


def compute_total_balance(spec: Spec, registry: Registry, chosen: Bools) -> int:
    """Return the effective balance of the *chosen* validators, at least one increment."""
    return max(spec.effective_balance_increment, int(registry.effective_balances @ chosen))


def is_slashable(registry: Registry, slashed: Bools, index: int, epoch: int) -> bool:
    """Return whether a slashing in a block of *epoch* slashes a validator.

    *slashed* has the slashings before that block, *registry* the rest, as of any slot of the epoch
    before that block, or of the end of the epoch before.
    """
    if index >= len(registry.slashed) or slashed[index]:
        return False
    activation = registry.activation_epochs[index]
    return bool(activation <= epoch < registry.withdrawable_epochs[index])


def extend_zeros(values: NDArray[Any], total: int) -> NDArray[Any]:
    """Return a copy with zeros for the validators that blocks created, *total* with them."""
    extended = np.zeros(max(total, len(values)), values.dtype)
    extended[: len(values)] = values
    return extended


def decode_hex(text: str) -> bytes:
    """Return the bytes of hexadecimal text that starts with 0x."""
    return bytes.fromhex(text.removeprefix("0x"))


def find_creating_deposit(
    deposits: Sequence[tuple[bytes, int]], registered: bytes, received: int | None = None
) -> int | None:
    """Return which of the *deposits* of a new public key, in order, created its validator.

    Signatures are not checked here. A deposit without a valid one is dropped; the first valid one
    sets the withdrawal credentials, and all after it reach the balance. *deposits* have credentials
    and amount, *registered* are the credentials of the validator now. They change later only from
    0x00 to another type, or from 0x01 to 0x02. Of several deposits with these credentials, the one
    is chosen whose sum with those after it is next to what the balance has *received*, by default
    the first.
    """
    candidates = [n for n, (each, _) in enumerate(deposits) if each[1:] == registered[1:]]
    if not candidates and registered[0] != 0:
        candidates = [n for n, (each, _) in enumerate(deposits) if each[0] == 0]
    if received is None or not candidates:
        return candidates[0] if candidates else None
    return min(candidates, key=lambda n: abs(sum(gwei for _, gwei in deposits[n:]) - received))


def sum_withdrawals(messages: Iterable[Mapping[str, Any]]) -> Counter[int]:
    """Return what the blocks of *messages* withdraw, by validator."""
    sums: Counter[int] = Counter()
    for message in messages:
        for withdrawal in message["body"].get("execution_payload", {}).get("withdrawals", ()):
            sums[int(withdrawal["validator_index"])] += int(withdrawal["amount"])
    return sums
