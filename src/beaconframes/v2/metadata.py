"""Metadata of validators: depositor, operator and credentials."""

from __future__ import annotations

from beaconframes.active_periods import Lifetime
from beaconframes.client import SubjectsOrSet, Values, loader
from beaconframes.endpoint import ChainName, Cursor, Endpoint, Envelope, ValidatorSelector
from beaconframes.schema import Count, Hex, SamePubkey, Table, Text
from beaconframes.v2._columns import NO_VALIDATORS, Undocumented


class Metadata(Table):
    """Metadata. One row per validator."""

    invariants = (SamePubkey(),)

    validator_index = Count("Validator.", key=True, nullable=True, wire="validator.index")
    pubkey = Hex("BLS public key, 48 bytes.", key=True, wire="validator.public_key", size=48)
    entity = Text("Entity that runs the validator; null from 2026-12-17 on.", optional=True)
    sub_entity = Text("Sub-entity that runs the validator; null from 2026-12-17 on.", optional=True)
    owner = Undocumented("Owner, from 2026-12-17 on; its shape is not published.", optional=True)
    operator = Undocumented(
        "Operator, from 2026-12-17 on; its shape is not published.", optional=True
    )
    deposit_address = Hex("Address of the depositor.", nullable=True)
    withdrawal_type = Text(
        "Kind of the withdrawal credentials: bls or execution_address.",
        wire="withdrawal_credentials.type",
        nullable=True,
    )
    withdrawal_prefix = Hex(
        "First byte of the credentials: 0x00 BLS, 0x01 address, 0x02 compounding.",
        wire="withdrawal_credentials.prefix",
        nullable=True,
    )
    withdrawal_credentials = Hex(
        "Withdrawal credentials, 32 bytes.", wire="withdrawal_credentials.credential", nullable=True
    )
    withdrawal_address = Hex(
        "Withdrawal address; null for BLS credentials.",
        wire="withdrawal_credentials.address",
        nullable=True,
    )


METADATA = Endpoint(
    "metadata",
    route="POST /api/v2/ethereum/validators/metadata",
    table=Metadata,
    parameters=(ChainName(), ValidatorSelector(Metadata.validator_index, pubkey=Metadata.pubkey)),
    pagination=Cursor(),
    envelope=Envelope.V2,
    absent=NO_VALIDATORS,
    lifetime=Lifetime.KNOWN,
)


@loader(METADATA)
def load_metadata(validators: SubjectsOrSet) -> Values:
    """Load depositor, operator and withdrawal credentials of validators, one row per validator.

    100 validators per call, ten rows per request. Requires a larger plan; others raise
    `TierTooLow`.

    Parameters
    ----------
    validators
        Indices, public keys, or a set; see `load_validators`.

    Returns
    -------
    polars.DataFrame
        Sorted by ``validator_index``, ``pubkey``. The service has announced that owner and operator
        replace entity and sub-entity on 2026-12-17. All four are columns; those that the service
        does not send are null.

    Notes
    -----
    ``POST /api/v2/ethereum/validators/metadata``. Never final.
    """
    return {"validators": validators}
