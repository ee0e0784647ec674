"""The validators of a state as a node lists them: rows, their frame, and their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from msgspec import Struct

from beaconframes.beacon_node.client.signed_block import Amount, Index, Pubkey, Root, Uint
from beaconframes.consensus.registry import Registry, decode_hex
from beaconframes.consensus.spec import FAR_FUTURE_EPOCH
from beaconframes.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from beaconframes.consensus.registry import Ints

EPOCHS: Final = (
    "activation_eligibility_epoch",
    "activation_epoch",
    "exit_epoch",
    "withdrawable_epoch",
)


class ValidatorRecord(Struct, gc=False):
    """What a state has of a validator beside its balance."""

    pubkey: Pubkey
    withdrawal_credentials: Root
    effective_balance: Amount
    slashed: bool
    activation_eligibility_epoch: Uint
    activation_epoch: Uint
    exit_epoch: Uint
    withdrawable_epoch: Uint


class ValidatorRow(Struct, gc=False):
    """A validator in a state."""

    index: Index
    balance: Amount
    validator: ValidatorRecord


def read_validators(rows: Sequence[ValidatorRow]) -> pl.DataFrame:
    """Return the validators of a response, in the columns that `build_validators` reads."""
    records = [row.validator for row in rows]
    return pl.DataFrame(
        {
            "validator_index": pl.Series([row.index for row in rows], dtype=pl.Int64),
            "pubkey": pl.Series([each.pubkey.lower() for each in records], dtype=pl.String),
            "slashed": pl.Series([each.slashed for each in records], dtype=pl.Boolean),
            "balance_gwei": pl.Series([row.balance for row in rows], dtype=pl.Int64),
            "effective_balance_gwei": pl.Series(
                [each.effective_balance for each in records], dtype=pl.Int64
            ),
            "withdrawal_credentials": pl.Series(
                [each.withdrawal_credentials.lower() for each in records], dtype=pl.String
            ),
            **{name: _list_epochs(records, name) for name in EPOCHS},
        }
    )


def build_registry(rows: Sequence[ValidatorRow]) -> Registry:
    """Return the registry of some validators, in the order of *rows*."""
    records = [row.validator for row in rows]

    def join(texts: Sequence[str], size: int) -> NDArray[np.uint8]:
        return np.frombuffer(b"".join(map(decode_hex, texts)), np.uint8).reshape(-1, size)

    return Registry(
        effective_balances=np.array([each.effective_balance for each in records], np.int64),
        balances=np.array([row.balance for row in rows], np.int64),
        slashed=np.array([each.slashed for each in records], np.bool_),
        activation_epochs=_list_epochs(records, "activation_epoch"),
        exit_epochs=_list_epochs(records, "exit_epoch"),
        withdrawable_epochs=_list_epochs(records, "withdrawable_epoch"),
        pubkeys=join([each.pubkey for each in records], 48),
        withdrawal_credentials=join([each.withdrawal_credentials for each in records], 32),
    )


def build_whole_registry(rows: Sequence[ValidatorRow]) -> Registry:
    """Return the registry of a state from the *rows* of all validators."""
    ordered = sorted(rows, key=lambda row: row.index)
    indices = [row.index for row in ordered]
    if indices != list(range(len(indices))):
        missing = sorted(set(range(len(indices))) - set(indices))
        raise ResponseError(
            f"the response has {len(indices)} validators without validator {missing[0]}",
            hint="Request all validators of the state",
        )
    return build_registry(ordered)


def _list_epochs(records: Sequence[Any], name: str) -> Ints:
    return np.array([min(getattr(each, name), FAR_FUTURE_EPOCH) for each in records], np.int64)
