"""The validator registry without a state: what the validators route of a node returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from beaconframes.consensus.state import BeaconState

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Bytes = NDArray[np.uint8]

    AnyRegistry: TypeAlias = "Registry | BeaconState"


@dataclass(frozen=True, eq=False)
class Registry:
    """All validators at one slot. The arrays have the names of those of `BeaconState`."""

    effective_balances: Ints
    balances: Ints
    slashed: Bools
    activation_epochs: Ints
    exit_epochs: Ints
    withdrawable_epochs: Ints
    pubkeys: Bytes
    withdrawal_credentials: Bytes

    @classmethod
    def from_api(cls, validators: Sequence[Mapping[str, Any]]) -> Registry:
        """Return the registry in the data of ``/eth/v1/beacon/states/{state_id}/validators``."""
        records = sorted(validators, key=lambda each: int(each["index"]))
        indices = [int(each["index"]) for each in records]
        if indices != list(range(len(records))):
            missing = sorted(set(range(len(records))) - set(indices))
            raise ResponseError(
                f"the response has {len(records)} validators without validator {missing[0]}",
                hint="Request all validators of the state",
            )
        each = [record["validator"] for record in records]
        return cls(
            effective_balances=_parse_integers(each, "effective_balance"),
            balances=_parse_integers(records, "balance"),
            slashed=np.array([record["slashed"] for record in each], np.bool_),
            activation_epochs=_parse_integers(each, "activation_epoch"),
            exit_epochs=_parse_integers(each, "exit_epoch"),
            withdrawable_epochs=_parse_integers(each, "withdrawable_epoch"),
            pubkeys=_parse_bytes(each, "pubkey", 48),
            withdrawal_credentials=_parse_bytes(each, "withdrawal_credentials", 32),
        )


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


def decode_hex(text: str) -> bytes:
    """Return the bytes of hexadecimal text that starts with 0x."""
    return bytes.fromhex(text.removeprefix("0x"))


def has_signed_credentials(deposited: bytes, registered: bytes) -> bool:
    """Return whether a validator may have been created by a deposit with these credentials.

    The first valid deposit of a public key sets the credentials. Later changes are only from 0x00
    to an address, and from 0x01 to 0x02 with the same address.
    """
    return deposited[1:] == registered[1:] or (deposited[0] == 0 and registered[0] != 0)


def _parse_integers(records: Sequence[Mapping[str, Any]], name: str) -> Ints:
    return np.array([min(int(each[name]), FAR_FUTURE_EPOCH) for each in records], np.int64)


def _parse_bytes(records: Sequence[Mapping[str, Any]], name: str, size: int) -> Bytes:
    joined = b"".join(decode_hex(each[name]) for each in records)
    return np.frombuffer(joined, np.uint8).reshape(-1, size)
