"""Changes of withdrawal credentials from a BLS key to an address."""

from __future__ import annotations

from dataclasses import dataclass

from beaconframes.client import Subjects, Values, loader
from beaconframes.endpoint import Endpoint, Identifiers
from beaconframes.schema import Count, Epoch, Hex, Slot, SlotInEpoch, SlotTime, Table


class BlsChanges(Table):
    """Changes of withdrawal credentials. One row per change; a validator has at most one."""

    # The service leaves out fields that are 0, so also the index of validator 0.
    validator_index = Count(
        "Validator.", key=True, wire=("validatorindex", "validator_index"), default=0
    )
    slot = Slot("Slot of the block with the change.", key=True)
    epoch = Epoch("Epoch of the slot.")
    time = SlotTime("Start of the slot, UTC.")
    block_root = Hex("Root of that block.", wire="blockroot")
    bls_pubkey = Hex("BLS key of the old credentials.")
    bls_signature = Hex("Signature of the change by that key.")
    address = Hex("Withdrawal address since the change.")
    withdrawal_credentials_0x00 = Hex(
        "Credentials before the change; null if the service does not know the deposit.",
        wire="withdrawalcredentials_0x00",
        none=("0x",),
        nullable=True,
    )
    withdrawal_credentials_0x01 = Hex(
        "Credentials after the change, derived from the address.", wire="withdrawalcredentials_0x01"
    )

    invariants = (SlotInEpoch(),)


@dataclass(frozen=True)
class ChangedValidators(Identifiers):
    """Validators with credential changes; the service refuses requests with unknown keys."""


BLS_CHANGES = Endpoint(
    "bls_changes",
    route="GET /api/v1/validator/{validators}/blsChange",
    table=BlsChanges,
    parameters=(ChangedValidators("validators", BlsChanges.validator_index, required=False),),
)


@loader(BLS_CHANGES)
def load_bls_changes(validators: Subjects) -> Values:
    """Load the changes of withdrawal credentials from a BLS key to an address, one row per change.

    100 validators per request.

    Parameters
    ----------
    validators
        Indices or public keys: one, or a list, range or Series of them, mixed, of any length. The
        service refuses a request that contains an unknown public key.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``slot``. A validator that never changed has no rows, and is
        not reported as missing.

    Notes
    -----
    ``GET /api/v1/validator/{indexOrPubkey}/blsChange``. A change is final once its epoch is
    finalized; other validators may still change.
    """
    return {"validators": validators}
