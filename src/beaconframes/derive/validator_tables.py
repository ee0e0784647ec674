"""Other views of validators and of their withdrawals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from beaconframes.consensus.spec import FAR_FUTURE_EPOCH

if TYPE_CHECKING:
    from beaconframes.consensus.registry import Bools, Ints
    from beaconframes.derive.chain_tables import ChainTables

_INACTIVE: Final = ("slashed", "exited", "deposited", "pending")
_ACTIVE: Final = ("slashing", "exiting", "active")
_ONLINE_SLOTS: Final = 64
"""An online validator attested within this many slots of the newest attestation."""


def build_withdrawal_credentials(data: ChainTables) -> pl.DataFrame:
    """Return withdrawal credentials, one row per validator."""
    return data.covered_validators.select(
        "validator_index", "pubkey", credentials="withdrawal_credentials"
    )


def build_validator_withdrawals(data: ChainTables, withdrawals: pl.LazyFrame) -> pl.DataFrame:
    """Return the *withdrawals* in blocks with the roots of the blocks, one row per withdrawal."""
    roots = data.scan("blocks").filter(status="proposed").select("block_root", slot="slot")
    rows = withdrawals.rename({"block_slot": "slot"})
    return (
        rows.join(roots, "slot", how="left", maintain_order="left")
        .with_columns(epoch=data.epoch_of("slot"))
        .collect()
    )


def is_active(epoch: int | pl.Expr) -> pl.Expr:
    """Return whether a validator is active in an epoch, null if it has no activation epoch."""
    has_exited = (pl.col("exit_epoch") <= epoch).fill_null(value=False)
    return (pl.col("activation_epoch") <= epoch) & ~has_exited


def find_statuses(
    epoch: int,
    *,
    slashed: Bools,
    eligibility: Ints,
    activation: Ints,
    exit_epoch: Ints,
    attested: Ints | None = None,
) -> list[str]:
    """Return the status of each validator: the first match, in the order of the service.

    *attested* has the slot of each validator's last attestation. Without it, it is unknown who is
    online, and statuses are ``active`` instead of ``active_online``.
    """
    has_exited = exit_epoch <= epoch
    conditions = [
        has_exited & slashed,
        has_exited,
        eligibility == FAR_FUTURE_EPOCH,
        activation > epoch,
        slashed,
        exit_epoch < FAR_FUTURE_EPOCH,
    ]
    code = np.select(conditions, range(len(conditions)), default=len(conditions))
    if attested is None:
        return list(np.array([*_INACTIVE, *_ACTIVE])[code].tolist())
    oldest = attested.max(initial=0) - _ONLINE_SLOTS
    is_offline = (attested < oldest) & (code >= len(_INACTIVE))
    phases = [f"{phase}_{word}" for word in ("online", "offline") for phase in _ACTIVE]
    code += len(_ACTIVE) * is_offline
    return list(np.array([*_INACTIVE, *phases])[code].tolist())
